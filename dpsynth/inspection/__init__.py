"""How a private table fits its schema, before a fit: exact findings for the office alone.

This room reads private rows and spends nothing. So nothing that is released may depend on it: a
contract keeps runs, bundles, ledgers and policies from importing it.

- `acceptance`: which serious findings an office accepts: the setting ``accept`` of `dpsynth run`
- `category_causes`: why a cell is not one of the declared categories, codes or truth words
- `clipped_causes`: why cells lie outside the bounds: a code for a missing value, or another unit
- `check_result`: what the result of every check offers, of one table or of linked ones
- `column_check`: what the cells of one column are: shares by kind, and findings with their causes
- `conversions`: conversions between units that extracts of hospitals mix up
- `date_causes`: why a cell of a column of dates or times cannot be read
- `findings`: what was found in which column, how bad it is, and what it is due to
- `gap_causes`: why the gap between two dates is outside its bounds
- `hints`: the lines that a check proposes for a schema, with placeholders in the place of cells
- `kept`: what a fit does not use of a table, or replaces: what the table says against what coding
  keeps
- `keys`: one patient under several keys, and many patients under one
- `known_words`: words that tables of hospitals use for a missing value or for yes and no; formats
  of dates
- `linked/`: how the linked tables of a package fit their schema, and each other
- `number_causes`: why a cell of a column of numbers cannot be read as a number
- `rows/`: what the rows of a table are: rules that they break, duplicates, and units
- `schema_warnings`: what is known of a schema without data: declarations that are valid and
  rarely meant
- `staying_check`: the check of a table that stays in its warehouse
- `suspects`: the cells of one column that its codec does not take, and a way to try others
- `table_check`: how a private table fits its schema: exact figures, for the office that writes
  the schema
- `values_file`: the file of ``--show-values``: cells for the owner's eyes alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
