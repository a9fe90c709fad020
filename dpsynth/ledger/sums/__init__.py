"""Sums of what was spent, sealed by each record, so that a write need not read the whole ledger.

- `nodes`: nodes of the sums that a ledger's records seal, in the ledger's database
- `sums`: exact sums of what fits have spent: the same numbers in whatever order they are added up
- `tally`: what counts as spent, in sums that each record of the chain seals
- `tree`: sums over spendings, kept in a tree whose root the ledger's chain seals
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
