"""What error to expect of a fit, before anything is spent: from rows that belong to no patient.

A forecast reads no private row. It fits the generator, under the plan as it will be, to rows drawn
from public facts or from an earlier release, and measures what comes out as an evaluation does.

- `capacity_words`: what a table can carry, in words: before any data is opened
- `errors`: how far a synthetic table is from its source: columns, pairs of columns, small subgroups
- `forecast`: the verb `forecast`: what error to expect of a fit
- `page`: a forecast as a page of one file, with its pictures
- `plan_words`: a plan in words: its events, and what to expect before any data is opened
- `rows`: the rows that a forecast is made from: of public facts alone, or of an earlier release
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
