"""How a private table fits its schema, before a fit: exact findings for the office alone.

This room reads private rows and spends nothing. So nothing that is released may depend on it: a
contract keeps runs, bundles, ledgers and policies from importing it.

- `causes`: likely causes of cells that are not taken as they stand, and a way to try other forms
- `check_result`: what a check found, of one table or of linked ones
- `checking`: the verb `check`: how private tables fit their schema; and what an office accepts of
  it
- `column_check`: what the cells of one column are: shares by kind, and findings with their causes
- `findings`: what was found in which column, how bad it is, and what it is due to
- `hints`: the lines that a check proposes for a schema, with placeholders in the place of cells
- `kept`: what a fit does not use of a table, or replaces: what the table says against what coding
  keeps
- `keys`: one patient under several keys, and many patients under one
- `linked_check`: how the linked tables of a package fit their schema: exact figures, for the office
  alone
- `linked_findings`: findings of linked tables: keys, links, counts, times and temporal rules
- `linked_read`: tables of a package, read once: what is kept of each row, and of the table of
  patients
- `row_check`: what the rows of a table are: rules that they break, duplicates, and how they divide
  into units
- `schema_warnings`: what is known of a schema without data: declarations that are valid and
  rarely meant
- `staying_check`: the check of a table that stays in its warehouse
- `table_check`: how a private table fits its schema: exact figures, for the office that writes
  the schema
- `unlike_rows`: rows that are unlike all others: totals, other footers, and lines that explain the
  header
- `values_file`: the file of ``--show-values``: cells for the owner's eyes alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
