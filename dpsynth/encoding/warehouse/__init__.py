"""Rows that are coded, capped and counted where they lie: in a database, by SQL.

The codes are those of the codec, cell by cell, and so are the counts. What SQL cannot say exactly
is refused by name, before anything is charged. Expressions are written with ibis, which makes the
SQL of each warehouse from them; dpsynth runs it on a connection of its own.

- `capping`: at most ``max_rows`` rows of each unit, chosen once, as a temporary table of codes
- `categories`: the codes of texts, numbers and truth values that stand for categories
- `coding`: all coded columns of a schema as expressions on the cells of a table
- `counting`: counts of columns and pairs of columns, and other cells for their codes
- `lattices`: the codes of numbers, dates and times on their lattices
- `patterns`: units that are alike, counted where they lie
- `refusals`: what of a schema cannot be said in SQL, by the names of its columns
- `unit_sizes`: how rows form units, and which of them repeat another one
- `values`: cells as numbers: missing, bad, whole; gaps between dates; parts of the calendar
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
