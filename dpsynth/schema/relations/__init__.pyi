from .floor import Floor as Floor
from .formula import Formula as Formula
from .grouping import Grouping as Grouping
from .interval import Interval as Interval
