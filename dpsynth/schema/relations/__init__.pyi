from .formula import Formula as Formula
from .interval import Interval as Interval
