from .window import PERIODS as PERIODS
from .window import Window as Window
from .window import window_of as window_of
