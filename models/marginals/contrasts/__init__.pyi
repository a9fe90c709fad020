from .measurement import Margins as Margins
from .measurement import relate as relate
from .measurement import target_with as target_with
