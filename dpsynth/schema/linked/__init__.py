"""Linked tables: patients, and tables of what happened to them.

This room decides what a Data Package of table schemas may say. Nothing in it is ever learned from
private rows.

- `declared`: what histories keep by declaration: read, checked against each other, and what breaks
  it
- `facts`: the facts of linked tables, as values
- `linked_schema`: every public fact about linked tables, checked
- `reader`: from a parsed document to a `LinkedSchema`: every mistake is noted before any is
  reported
- `resources`: the table schema of one resource, read as a schema of its own
- `synthetic`: the synthetic tables that a schema stands for: one of a single table, several of
  linked ones
- `temporal`: temporal rules: read, checked against the tables, and for which patients they hold
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
