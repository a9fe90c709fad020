"""What all parts of an evaluation share: tables, bins, estimates with intervals.

- `bin_names`: what a bin of a column is called: a category, or the span of the source's values
- `bins`: the bins in which tables are compared: the schema's codes, wide columns cut at the
  source
- `estimate`: a number that an evaluation measured: never without its interval, its size and its
  references
- `features`: typed tables as matrices for classifiers and regressions: one way for all of an
  evaluation
- `jackknife`: a figure of one table against another, with what it would be without each group of
  units
- `levels`: categories, or bands of a number, by which figures are told apart
- `paired`: the tables of a comparison at equal sizes, cut into the same bins, dealt into groups
  of units
- `rates`: rates seen in repeated trials, with bounds that hold however few the trials were
- `result`: what one part of an evaluation found: named figures, and details for tables and
  pictures
- `tables`: the tables of an evaluation, all read in the same way: source, synthetic, holdout
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
