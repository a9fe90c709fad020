from .exact_copies import copies as copies
from .rule_violations import rules as rules
from .summary import coarse as coarse
from .summary import decile_edges as decile_edges
from .summary import fidelity as fidelity
from .total_variation import mean_tvd as mean_tvd
