"""Answers under differential privacy: statistics, labels, linkage, counts of perturbed answers.

This room decides what may be asked of private rows beside synthetic ones, and what is told of the
noise in each answer. All events of a request are calibrated together, charged before the first row
is read, and certified; everything else on disk follows from the noisy numbers. Answers that each
person perturbs at the source need no trusted curator, and no ledger.

- `answer_request`: a request of answers: its events, what to expect of them, its tables, its page
- `answering`: the verb `statistics`: how the rows of a request are read
- `answers`: answers on disk, and outside: saved, loaded, released, signed and verified by anyone
- `axes`: the cells into which a column's values are sorted
- `charged_answers`: the order of it all: charge, read, answer, save
- `comparisons`: comparisons of groups and of columns, and a test of several differences at once
- `counts`: how many patients or rows there are in each cell, and the cells with the largest numbers
- `entries`: entries of a request: one reader for each kind of statistic, strict, from plain values
- `estimating`: the verb `estimate`: what perturbed answers say of all people
- `keys`: counts by codes that nobody declared: the keys that enough patients have, with their
  numbers
- `labelling`: the verb `labels`: teachers on disjoint patients vote with noise
- `labels`: labels of public rows by PATE: the task, the public rows, and the student
- `linkage`: how many candidate pairs of two registers match, and how good a threshold is
- `linking`: the verb `linkage`: how pairs are read and counted
- `local`: the local model: randomisers, tables of reports, and the estimates
- `means`: means, totals, proportions and variances, by cells of a table, and by small areas
- `page`: pages of answers: tables with their intervals, and curves
- `perturbing`: the verb `perturb`: each person's answers are randomised at the source
- `quantiles`: quantiles of a column, from a tree of counts
- `series`: time series: counts and occupancy by period, with a smooth line beside them
- `statistic`: what a statistic is: its events, its answers, and the table that follows from them
- `statistics_request`: which statistics an office wants of a table, their plan, and their tables
- `survival`: times to events by groups: survival, incidence, their bands, and tests
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
