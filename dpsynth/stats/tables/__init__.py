"""Tables of cells: counts, and what becomes of them by post-processing.

- `counts`: how many patients or rows there are in each cell
- `keys`: counts by codes that nobody declared, of those that enough patients have
- `margins`: tables of counts that share columns, made to agree
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
