"""Chunks of a private table as codes, read by this process or by several at once.

What is read of a row depends on that row alone, so who reads it makes no difference: codes, keys
and places in time are the same, to the bit.

- `coded`: what is kept of a chunk: codes, keys, and what its rows are ordered by
- `workers`: all chunks of a table, in order, however many processes read them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
