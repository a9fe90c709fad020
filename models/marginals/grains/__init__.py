"""Grains of numbers: whole, half, tenth, or heaped at round values, told by one small event.

- `followed`: shares of codes that follow the grains, with the rows of each bin kept
- `measurement`: the event of the grains, and what its noisy counts say
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
