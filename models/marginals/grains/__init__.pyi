from .followed import followed as followed
from .measurement import GrainCounts as GrainCounts
from .measurement import cell_of as cell_of
from .measurement import measure_grains as measure_grains
from .measurement import points_of as points_of
