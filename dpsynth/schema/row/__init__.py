"""The columns of a row taken together.

- `coded`: what is modelled of each row, in place of what is published
- `declarations`: intervals, derived columns, parts of the calendar: checked against other columns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
