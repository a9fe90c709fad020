"""What a ledger says to people who do not run dpsynth: balances, a JSON export, a page for a board.

- `balances`: the accounts of a ledger: what each budget has spent and has left, for people
- `export`: the ledger for those who do not run dpsynth: one JSON document, or one page for a
  board
- `page`: the ledger as one page for a board: plain words first, then a picture of every cap,
  every fit
- `snapshot`: what a ledger says at one moment, without its key
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
