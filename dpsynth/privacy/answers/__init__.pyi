from .choice import top_choice as top_choice
from .choice_event import TopChoice as TopChoice
from .event import RowSums as RowSums
from .laplace_event import LaplaceCounts as LaplaceCounts
from .sums import Contributions as Contributions
from .sums import laplace_counts as laplace_counts
from .sums import row_sums as row_sums
