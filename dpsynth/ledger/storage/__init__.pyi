from .sqlite import default_path as default_path
from .sqlite import sqlite_path as sqlite_path
from .store import Facts as Facts
from .store import Store as Store
