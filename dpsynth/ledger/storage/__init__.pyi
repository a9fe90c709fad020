from .backends import Backend as Backend
from .sqlite import default_path as default_path
from .store import Facts as Facts
from .store import Store as Store
