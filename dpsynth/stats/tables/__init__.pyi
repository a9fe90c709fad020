from .counts import Counts as Counts
from .counts import counting as counting
from .keys import KeyTable as KeyTable
from .keys import undeclared_in as undeclared_in
from .margins import agreed as agreed
