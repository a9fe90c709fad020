from .decision import decide as decide
from .decision import disputes as disputes
from .profile import ColumnProfile as ColumnProfile
from .profile import Profile as Profile
from .public_gates import Verdict as Verdict
from .public_gates import judge as judge
from .temporal_rules import temporal_counts as temporal_counts
