"""Statistics: counts, means, quantiles and rankings of a table, from one privacy plan.

This room decides what may be asked of a table beside synthetic rows, and what is told of the noise
in each answer. All statistics of a request are calibrated together, charged before the first row is
read, and certified; everything else on disk follows from the noisy answers.

- `answering`: the verb `statistics`: what is asked, and how its rows are read
- `axes`: the cells into which a column's values are sorted
- `charged_answers`: the order of it all: charge, read, answer, save
- `claim`: whether a certificate claims what its statistics cost
- `comparisons/`: do groups differ: survival, differences of means, independence
- `document`: statistics on disk: a request, its certificate and its noisy answers
- `entries/`: entries of a request, read strictly: one reader for each kind of statistic
- `labels/`: labels of public rows by PATE: teachers on disjoint patients vote with noise
- `linkage/`: how many candidate pairs of two registers match, and how good a threshold is
- `linked/`: linked tables: which table an entry is of, and which rows that is
- `package`: the Data Package: what files there are, with their digests and columns
- `page`: statistics as a page of one file
- `periods/`: hours, days, weeks, months and years, by which times are counted
- `pictures/`: curves with their bands, by group, for the page
- `planning`: all events of all statistics, calibrated together, and what to expect
- `publishing`: statistics leave the office: released, signed, and verified by anyone
- `quantiles`: quantiles of a column, from a tree of counts
- `ranking`: the values that most patients have, by the exponential mechanism
- `request`: which statistics an office wants, read strictly from a document
- `results`: from noisy answers to tables
- `rows`: what a statistic reads: coded rows with their units
- `series/`: time series: who is there in each period, and smooth lines
- `statistic`: what a statistic is: its events, its answers, and the table that follows from them
- `staying_rows`: rows that stay in their warehouse, as patterns of units
- `tables/`: tables of cells: counts, means and variances, and what follows from them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
