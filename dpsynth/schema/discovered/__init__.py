"""Columns whose codes a fit discovers.

- `found_codes`: a schema with the codes that a fit has found, and without them
- `reader`: what a column declares of them: read, and every mistake noted
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
