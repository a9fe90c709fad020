"""Columns that lean on others of their row.

- `coded`: what is modelled of each row, in place of what is published
- `declarations`: intervals, derived columns, parts of the calendar
- `formula`: arithmetic over the columns of a row, parsed and never executed
- `interval`: a date that is known by how long it lies after, or before, another date of its row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
