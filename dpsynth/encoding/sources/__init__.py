"""Coded rows, and what a generator that only counts needs of them, wherever they lie.

- `recoding`: other cells for codes, and rows that are counted where they lie
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
