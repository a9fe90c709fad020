from .resolved_settings import Order as Order
from .runner import Outcome as Outcome
from .runner import State as State
from .runner import planned as planned
from .runner import run_stages as run_stages
from .settings import Settings as Settings
