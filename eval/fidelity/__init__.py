"""Is the synthetic table like the source: columns, pairs, queries, classifiers.

- `columns`: its distribution in every table, and their distance
- `facts`: facts about pairs and levels: what never happens, what is rare, which relations are
  strong
- `numbers`: columns of numbers: mean and reach, tails, heaping, and columns that follow from
  others
- `records`: whole records: told apart by a classifier, mapped, copied, and against the declared
  rules
- `relations`: joint distributions of two and three columns: total variation distance, mutual
  information
- `summary`: is the synthetic table like the source: all of it put together, and sdmetrics' own
  reports
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
