from .coded import coded_schema as coded_schema
from .coded import is_related as is_related
from .coded import part_name as part_name
from .declarations import in_order as in_order
