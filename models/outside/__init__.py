"""Generators of other packages: they ask for noisy results, and get no row.

- `desk`: the side that holds the rows: it runs each event of the plan once, and hands out the
  answer
- `mechanisms`: what such a generator is handed: each event of its plan, once, and nothing else
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
