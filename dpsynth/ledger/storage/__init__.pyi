from .backends import Backend as Backend
from .sqlite import default_path as default_path
from .store import LedgerFacts as LedgerFacts
from .store import Store as Store
