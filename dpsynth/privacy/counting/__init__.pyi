from .rows import CodedRows as CodedRows
from .rows import CountedRows as CountedRows
from .rows import Histogram as Histogram
from .rows import Histograms as Histograms
from .rows import UnitBound as UnitBound
from .rows import counts_of as counts_of
