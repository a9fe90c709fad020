from .summary import usefulness as usefulness
from .tstr import trials as trials
