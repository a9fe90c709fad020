"""How a column follows from others of its row.

- `formula`: arithmetic over the columns of a row, parsed and never executed
- `interval`: a date that is known by how long it lies after, or before, another date of its row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
