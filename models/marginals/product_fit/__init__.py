"""How a mixture of products is fitted to noisy counts: a distance, its slope, and Adam.

- `descent`: rounds of Adam steps, until the fit is as close to the counts as noise allows
- `distance`: how far component tables are from a target, with the gradient written out
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
