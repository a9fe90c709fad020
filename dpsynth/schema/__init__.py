"""The schema: every public fact that dpsynth may use about a table.

This room decides what a schema document may say and what it means. Nothing in it is ever learned
from private rows.

- `bounds`: values inside a schema document: bounds of each type, and the canonical text of
  categories
- `cell_forms`: how the cells of a column are written: value maps, dates, limits of detection and
  units
- `code_systems/`: thousands of codes become a few public categories
- `coded`: the schema as generators see it: what is modelled of each row, in place of what is
  published
- `column`: the facts that a schema states: a column, the privacy unit, public numbers, the
  dialect
- `columns`: one field of a schema document becomes one `Column`; what is wrong with it is noted
- `declarations`: columns that lean on others of their row: intervals, derived columns, parts of the
  calendar
- `descriptions`: a column in words: what kind it is, its unit, the labels of its categories
- `discovered`: codes that a fit discovers: as columns declare them, and as a fit has found them
- `files`: found by name or path, read without running anything in them, written whole
- `formula`: a derived column's formula: arithmetic over the columns of a row, parsed and never
  executed
- `lattice`: declared bounds and resolution
- `linked/`: linked tables: patients, and tables of what happened to them
- `orders`: orders: rules of the form ``a <= b`` that hold by construction, because b is a gap above
  a
- `reader`: from a parsed document to a `Schema`: every mistake is noted before any is reported
- `relations`: columns that lean on others of their row: floors, groupings and intervals
- `rules`: what must hold within one row, such as ``admitted <= discharged``
- `schema`: every public fact that dpsynth may use about a table, checked, and never learned
- `solver`: whether a row can meet several rules at once: a search over the declared values of its
  columns
- `status`: the status of a column, beside it: whether its cell is censored, or why it is missing
- `types`: everything that dpsynth knows about each column type, in one table
- `writer`: from a `Schema` back to documents: its own form, and plain Table Schema for the
  synthetic
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
