"""What all parts of an evaluation share: tables, bins, estimates with intervals.

- `estimate`: a number that an evaluation measured: never without its interval, its size and its
  references
- `features`: columns of a table for analysis: as matrices for classifiers and regressions, and
  as levels
- `paired`: the tables of a comparison at equal sizes, cut into the same bins, dealt into groups
  of units
- `scores`: how well scores foretell what is true, and how ranks agree
- `tables`: the tables of an evaluation, all read in the same way: source, synthetic, holdout
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
