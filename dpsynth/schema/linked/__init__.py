"""Linked tables: patients, and tables of what happened to them.

This room decides what a Data Package of table schemas may say. Nothing in it is ever learned from
private rows.

- `any_schema`: the schema of one table or of linked ones: which of the two, its document says
- `base_time`: the time of a table as the date from which other dates of its rows count
- `children`: one child table of a document, read: its key, its time, its series or events
- `discovering`: tables whose columns have codes that a fit discovers: as declared, and as found
- `facts`: the facts of linked tables, as values
- `keys`: keys from table to table: found, checked, and never in a circle
- `linked_schema`: every public fact about linked tables, checked
- `published`: what the tables of a synthetic cohort are: the columns that are written
- `reader`: from a parsed document to a `LinkedSchema`: every mistake is noted before any is
  reported
- `resources`: the table schema of one resource, read as a schema of its own
- `series`: the tests of a long table, each with the bounds of its values
- `synthetic`: the synthetic tables that a schema stands for: one of a single table, several of
  linked ones
- `table_names`: the name of the table that a file holds, from the name of the file
- `temporal/`: temporal rules: what must hold between the rows of one patient, in all of her tables
- `writer`: from a `LinkedSchema` back to a document
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
