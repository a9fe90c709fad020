"""The two networks of `ctgan`: a critic that sees private rows, a generator that never does.

- `critic`: it scores whether a row, under a condition, is real or generated
- `distance`: how far generated rows lie from noisy columns and pairs: it holds against a
  noisy critic
- `network`: what the generator adds to a mixture of products, under a condition
- `trainer`: it sees a critic and released counts, never a real row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
