from .line import LineOfCounts as LineOfCounts
from .occupancy import Occupancy as Occupancy
from .smoothing import smoothed as smoothed
