"""Entries of a request, read strictly: one reader for each kind of statistic.

- `checks`: the schema of a request, the keys of its objects, pairs of numbers
- `columns`: what the readers of some kinds ask of the reader of all
- `events`: times to an event, or to one of several
- `reader`: one reader for each kind of statistic
- `series`: who is there in each period, and counts with a smooth line
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
