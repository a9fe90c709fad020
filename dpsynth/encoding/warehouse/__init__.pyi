from .capping import counted_rows as counted_rows
from .counting import WarehouseRows as WarehouseRows
from .refusals import require_expressible as require_expressible
