"""The steps of histories: from each row of a patient to her next, learned from noisy counts.

- `distilled`: a step table's mixture taught to a network
- `events`: the events that read a table's steps, by name, and their public settings
- `fit`: what is learned of the steps of a table
- `gap_factors`: how much likelier some gaps are, in days, than their ratios say
- `lines`: where a measurement is expected, given a patient's level
- `model`: what a fit keeps of the steps of one series
- `pairs`: which pairs of a step table's columns are measured, and how finely
- `rows`: the rows of one table of repeated rows, and its steps
- `stack`: steps of all series of a table, counted together
- `table`: the steps of histories, one row for each pair of consecutive rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
