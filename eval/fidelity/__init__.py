"""Is the synthetic table like the source: columns, pairs, queries, classifiers.

- `columns`: each column on its own: its distribution in every table, their distance, and
  undeclared levels
- `numbers`: columns of numbers: mean and reach, tails, heaping, and columns that follow from
  others
- `records`: whole records: told apart by a classifier, mapped, copied, and against the declared
  rules
- `relations`: relations of columns: joint distributions, correlations, and facts about pairs
- `summary`: is the synthetic table like the source: all of it put together, and sdmetrics' own
  reports
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
