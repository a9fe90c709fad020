from .resolved_settings import ResolvedSettings as ResolvedSettings
from .runner import Outcome as Outcome
from .runner import RunState as RunState
from .runner import planned as planned
from .runner import run_stages as run_stages
from .settings import Settings as Settings
from .subjects import Subject as Subject
