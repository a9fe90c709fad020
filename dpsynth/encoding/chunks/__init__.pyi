from .coded import CodedChunk as CodedChunk
from .coded import CodedRows as CodedRows
from .coded import Coding as Coding
from .coded import Refused as Refused
from .coded import order_of as order_of
from .workers import coded_rows as coded_rows
from .workers import usual_workers as usual_workers
