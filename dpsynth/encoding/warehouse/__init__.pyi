from .capping import counted_rows as counted_rows
from .counting import WarehouseRows as WarehouseRows
from .refusals import require_expressible as require_expressible
from .refusals import require_keys as require_keys
from .unit_sizes import unit_sizes as unit_sizes
