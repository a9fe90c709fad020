"""The steps of histories: from each row of a patient to her next, learned from noisy counts.

- `distilled`: a step table's mixture taught to a network
- `events`: the events that read a table's steps, by name, and their public settings
- `first_rows`: codes within the bins of later rows, from what first rows say of them
- `fit`: what is learned of the steps of a table
- `gap_factors`: how much likelier some gaps are, in days, than their ratios say
- `lines`: where a measurement is expected, given a patient's level
- `log_linear`: the network of a wide table's steps, fitted to the released pairs themselves
- `model`: what a fit keeps of the steps of one series
- `pair_weights`: weights between bins of columns, learned from joint shares of pairs
- `pairs`: which pairs of a step table's columns are measured, and how finely
- `released_pairs`: pairs of a step table's columns, released twice, and what they say of columns
- `rows`: the rows of one table of repeated rows, and its steps
- `stack`: steps of all series of a table, counted together
- `table`: the steps of histories, one row for each pair of consecutive rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
