"""Periods of time: hours, days, weeks, months and years, by which dates and times are counted.

- `window`: a stretch of time, cut into periods
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
