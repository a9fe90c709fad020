"""Is the synthetic table like the source: columns, pairs, queries, classifiers.

- `classifier_test`: how well a model tells synthetic rows from real ones
- `columns`: its distribution in every table, and their distance
- `correlation`: rank correlation of numeric columns, and how far two tables differ in it
- `counting_queries`: what an analyst would read off the table, and how far off it is
- `embedding`: a map of the rows in two dimensions, as shares of squares and never as points
- `exact_copies`: how many synthetic rows are the same as a real one, cell by cell?
- `heaping`: numbers that people round, such as blood pressures at 120 or incomes at 50 000
- `joints`: joint distributions of two and three columns: total variation distance, mutual
  information
- `missingness`: the share of each column, and which columns are missing together
- `outside`: synthetic rows where no real row is
- `pair_facts`: pairs of values that no real row has, rare ones, and the strongest relations
- `rule_formatting`: plain words for a row that breaks a rule: "diastolic pressure is at least
  systolic pressure"
- `rule_violations`: impossible records: rows that break a rule that the schema declares
- `summary`: is the synthetic table like the source: all of it put together, and sdmetrics' own
  reports
- `tails`: how many rows lie beyond the source's first and last percentile
- `total_variation`: half the L1 distance of their histograms
- `undeclared_levels`: levels that nobody declared and no real row has
- `values/`: what decile bins of single modelled columns cannot show: means, tails, derived columns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
