"""Few patients: a few numbers for each pair of columns first, then the tables that are worth it.

- `factors`: a factor model of a table, fitted to products
- `measurement`: the events of products and departures, in their order
- `scores`: contrasts: scores of the bins of a column
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
