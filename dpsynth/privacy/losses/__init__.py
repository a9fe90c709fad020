"""Privacy losses: the pair of laws by which an event is accounted, and its distribution.

- `loss`: four kinds of pairs, how often they are composed, and what they add to delta
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
