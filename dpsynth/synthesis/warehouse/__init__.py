"""Fits whose rows stay in their warehouse.

- `staying_rows`: what such a fit refuses before it is charged, and what codes the rows after
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
