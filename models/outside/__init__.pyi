from .mechanisms import Columns as Columns
from .mechanisms import Mechanisms as Mechanisms
from .mechanisms import PlugIn as PlugIn
