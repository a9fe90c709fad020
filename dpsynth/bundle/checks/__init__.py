"""The parts of a verification: files and signature, certificate, tables.

- `certificate`: does it add up, and does it fit the schema and the table
- `cohort`: what holds between the tables of a synthetic cohort: keys, days, caps, and events once
- `figures`: documents that a bundle need not have: quality figures that were paid for, and audits
- `files`: the files of a bundle against its manifest: none missing, none more, none changed, and
  signed
- `findings`: what a verification found so far: checks that passed, and differences with their
  places
- `tables`: both formats of a table of a bundle: allowed cells, the same rows, and no byte beside
  them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
