"""The schema: every public fact that dpsynth may use about a table.

This room decides what a schema document may say and what it means. Nothing in it is ever learned
from private rows.

- `bounds`: values inside a schema document: bounds of each type, and the canonical text of
  categories
- `categories`: a declared list with labels, or a code list with its roll-up
- `cells/`: how the cells of a column are written, beyond its type: what a schema declares, read and
  written
- `code_systems/`: thousands of codes become a few public categories
- `column`: the facts that a schema states: a column, the privacy unit, public numbers, the
  dialect
- `columns`: one field of a schema document becomes one `Column`; what is wrong with it is noted
- `descriptions`: a column in words: what kind it is, its unit, the labels of its categories
- `discovered/`: columns whose codes a fit discovers
- `document`: what a schema of one table and one of linked tables share: their documents
- `facts`: the facts of one table, as values; `Schema` reads them from a document and writes them
  back
- `files`: found by name or path, read without running anything in them, written whole
- `invalid_cells`: where cells go that a column does not declare: `on_bad` and `on_unknown`, with
  their defaults
- `lattice`: declared bounds and resolution
- `linked/`: linked tables: patients, and tables of what happened to them
- `reader`: from a parsed document to a `Schema`: every mistake is noted before any is reported
- `relations/`: how a column follows from others of its row: an interval, a formula
- `row/`: the columns of a row taken together: what is modelled of them, and how they follow
  from each other
- `rule_parser`: from the text of a rule to its tree: a small recursive-descent parser, nothing is
  evaluated
- `rules`: what must hold within one row, such as ``admitted <= discharged``
- `schema`: every public fact that dpsynth may use about a table, checked, and never learned
- `share`: the schema of a part of a table: the same columns, and public sizes of the part
- `types`: everything that dpsynth knows about each column type, in one table
- `writer`: from a `Schema` back to documents: its own form, and plain Table Schema for the
  synthetic
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
