from .counts import Counts as Counts
from .counts import counting as counting
from .margins import agreed as agreed
