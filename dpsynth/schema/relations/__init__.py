"""How a column follows from others of its row.

- `floor`: columns of its row that a number or date is never below, so that it is kept as a gap
- `formula`: arithmetic over the columns of a row, parsed and never executed
- `grouping`: a column that is the group of another column's code, such as its chapter
- `interval`: a date that is known by how long it lies after, or before, another date of its row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
