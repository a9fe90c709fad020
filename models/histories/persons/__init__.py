"""The table of patients: one row each, with hidden columns that describe her histories.

- `crosses`: interactions: what two columns say together of a patient's number of rows
- `emphasis`: what counts more in the table: pairs that are measured better, ties, finer bins
- `ending`: when and how follow-up ended, as one column of the table
- `network`: draws rows of the table, in the place of the mixture that it learned from
- `released`: what steps take over of the table, as it was released
- `table`: the table of patients with hidden columns that describe their histories
- `thinning`: how numbers of rows thin out: far codes, which noise hides, from those before them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
