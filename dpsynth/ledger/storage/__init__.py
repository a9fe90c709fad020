"""Where a ledger lies: a SQLite file or a PostgreSQL server, and the transactions on it.

- `backends`: the kinds of databases, each by its URLs; from what a user names (a path, a URL, an
  environment variable) to a ledger's database
- `database`: what a kind of database has to offer to hold a ledger
- `postgres`: for an office whose people fit on several machines
- `sqlite`: made private, locked by the first statement of each writer
- `store`: where the ledger lies: its tables in a database, and the transactions on them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
