"""Time series: who is there in each period, and a smooth line through noisy numbers.

- `line`: counts by periods, with a smooth line beside them
- `occupancy`: how many units are there in each period of a window
- `smoothing`: a smooth line through a series of known noise, with its interval
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
