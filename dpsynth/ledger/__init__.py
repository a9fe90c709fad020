"""The ledger: what the patients of each dataset have spent, append-only and chained.

This room decides that a fit is charged before its first row is read, and keeps the proof of it.

- `actions`: the office's verbs on a ledger: adopt a policy, void, sign, close, forfeit; permit a
  release
- `backup`: a copy of the whole file as of one moment, while others may write
- `book`: what is written in it, and the one way to write more
- `chain`: numbered records, each sealed with the hash of all before it
- `charging`: how a fit uses the ledger: reserved, then reading, then closed whatever happens
- `checks`: what a ledger accepts to be written: names, budgets, texts, and a person to answer for
  them
- `entry`: what a ledger's records say: each fit with its history, and the sum of fits
- `evidence`: what runs and bundles say of the ledger that charged them, held against a ledger
- `fields`: what the fields of a ledger's records may hold: plain values that a terminal can show
- `ledger`: what the patients of each dataset have spent, append-only and chained
- `marks`: how far a ledger was seen: its id, and the end of its chain, written down outside of it
- `notes`: what became of a fit, as its entry in a ledger holds it: one value for each kind of
  record
- `resuming`: how a fit that stopped goes on within its own entry: from the last checkpoint, and
  only once
- `sources`: whether the same data were read under another name
- `state`: what all records of a ledger say together: its head, its fits, its policy
- `statements/`: what a ledger says to people who do not run dpsynth: balances, a JSON export, a
  page for a board
- `storage/`: where a ledger lies: a SQLite file or a PostgreSQL server, and the transactions on
  it
- `sums/`: sums of what was spent, sealed by each record, so that a write need not read the whole
  ledger
- `verification`: does its chain hold, and is it the one that certificates speak of
- `view`: a ledger as of one moment, without reading all of it: what a fit's records cost and need
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
