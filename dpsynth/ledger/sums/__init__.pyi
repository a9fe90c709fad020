from .nodes import StoredNodes as StoredNodes
from .tally import Spending as Spending
from .tally import Tally as Tally
from .tally import orders_of as orders_of
from .tally import pointer as pointer
from .tree import MemoryNodes as MemoryNodes
