"""Statistics: counts, means, quantiles and rankings of a table, from one privacy plan.

This room decides what may be asked of a table beside synthetic rows, and what is told of the noise
in each answer. All statistics of a request are calibrated together, charged before the first row is
read, and certified; everything else on disk follows from the noisy answers.

- `answering`: the verb `statistics`: what is asked, and how its rows are read
- `axes`: the cells into which a column's values are sorted
- `charged_answers`: the order of it all: charge, read, answer, save
- `claim`: whether a certificate claims what its statistics cost
- `comparisons`: comparisons of groups and of columns, and a test of several differences at once
- `counts`: how many patients or rows there are in each cell of a table
- `document`: statistics on disk: a request, its certificate and its noisy answers
- `entries`: entries of a request: one reader for each kind of statistic, strict, from plain values
- `keys`: counts by codes that nobody declared: the keys that enough patients have, with their
  numbers
- `labels/`: labels of public rows by PATE: teachers on disjoint patients vote with noise
- `linkage/`: how many candidate pairs of two registers match, and how good a threshold is
- `linked`: the tables of a schema that can be asked, and the codes of their columns; public facts
  alone
- `means`: means, totals, proportions and variances, by cells of a table, and by small areas
- `package`: the Data Package: what files there are, with their digests and columns
- `page`: statistics as a page of one file
- `periods`: a stretch of time, cut into hours, days, weeks, months or years; a public fact
- `pictures`: curves of statistics as pictures: survival, incidence, time series
- `planning`: all events of all statistics, calibrated together, and what to expect
- `publishing`: statistics leave the office: released, signed, and verified by anyone
- `quantiles`: quantiles of a column, from a tree of counts
- `ranking`: the values that most patients have, by the exponential mechanism
- `request`: which statistics an office wants, read strictly from a document
- `results`: from noisy answers to tables
- `series`: time series: counts and occupancy by period, with a smooth line beside them
- `statistic`: what a statistic is: its events, its answers, and the table that follows from them
- `survival`: times to events by groups: survival, incidence, their bands, and tests
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
