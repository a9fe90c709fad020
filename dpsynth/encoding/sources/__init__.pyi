from .recoding import Cells as Cells
from .recoding import Derived as Derived
from .recoding import Lookup as Lookup
from .recoding import RowSource as RowSource
from .recoding import UnitRows as UnitRows
from .recoding import cells_of as cells_of
