"""The ledger: what the patients of each dataset have spent, append-only and chained.

This room decides that a fit is charged before its first row is read, and keeps the proof of it.

- `actions`: the office's verbs on a ledger: adopt a policy, void, sign, close, forfeit; permit a
  release
- `balances`: the accounts of a ledger: what each budget has spent and has left, for people
- `board_page`: the ledger as one page for a board: plain words first, then a picture of every cap,
  every fit
- `book`: what is written in it, and the one way to write more
- `chain`: numbered records, each sealed with the hash of all before it
- `charging`: how a fit uses the ledger: reserved, then reading, then closed whatever happens
- `database`: databases that hold a ledger: one SQLite file, or a PostgreSQL server, each by its
  URLs
- `entry`: what a ledger's records say: each fit with its history, and the sum of fits
- `evidence`: what runs and bundles say of the ledger that charged them, held against a ledger
- `ledger`: what the patients of each dataset have spent, append-only and chained
- `marks`: how far a ledger was seen: its id, and the end of its chain, written down outside of it
- `state`: what all records of a ledger say together: its head, its fits, its policy
- `store`: where the ledger lies: its tables in a database, and the transactions on them
- `sum_tree`: sums over spendings, kept in a tree whose root the ledger's chain seals
- `tally`: the tally of a ledger: what counts as spent, in sums that each record of the chain seals
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
