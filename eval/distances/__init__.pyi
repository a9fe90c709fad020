from .density import log_density as log_density
from .density import width_among as width_among
from .density import width_of as width_of
from .metric import Metric as Metric
from .metric import Points as Points
from .metric import row_kinds as row_kinds
from .nearest import Neighbours as Neighbours
