"""Pairs of columns: which are measured, and what their counts say of single columns.

- `margins`: what the counts of pairs say of each single column: shares of its bins, and its tails
- `selection`: which are measured, with what noise each, and which turn out to be related
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
