"""How far rows lie apart, and which are nearest.

- `density`: how dense a table is around a record: Gaussian kernels on the schema's scale
- `metric`: how far two rows lie apart, on the schema's scale: categories and numbers together
- `nearest`: candidates by a matrix product in float32, distances in float64
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
