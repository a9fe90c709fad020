"""A table that stays in its warehouse: what its columns hold, and a session that counts there.

The two things that differ between warehouses: how a cell becomes a number or a text, and how a
connection reads the source and writes nothing but temporary tables of its own.

- `cells`: the cells of a column of SQL as text or as a number, in DuckDB and in PostgreSQL
- `opening`: a table that was opened for reading, as one that is counted where it is
- `sessions`: one connection, with temporary tables that nobody else sees and that end with it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
