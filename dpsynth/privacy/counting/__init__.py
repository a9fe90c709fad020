"""Rows that histograms are counted of: in memory, or where they lie.

- `rows`: what mechanisms ask of rows, and the checks of counts that came from elsewhere
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
