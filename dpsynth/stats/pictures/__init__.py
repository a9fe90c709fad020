"""Pictures of statistics: curves with their bands, by group, for the page.

- `curves`: which columns of a table are a curve, and of which groups
- `panel`: lines with bands between two axes, as inline SVG
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
