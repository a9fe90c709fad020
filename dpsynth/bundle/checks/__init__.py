"""The parts of a verification: files and signature, certificate, tables.

- `certificate`: does it add up, and does it fit the schema and the table
- `files`: the files of a bundle against its manifest: none missing, none more, none changed, and
  signed
- `tables`: both formats of a table of a bundle: allowed cells, the same rows, and no byte beside
  them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
