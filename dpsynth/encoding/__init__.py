"""Cells to integer codes and back, and rows grouped by privacy unit.

This room decides what one unit can contribute: bounded codes, and at most `max_rows` rows.

- `any_table`: a synthetic table of a schema, whoever wrote it, restated as dpsynth writes it
- `calendar_parts`: weekday, month and hour beside a date, and drawn dates moved to them
- `cell_status`: the status of a column: coded from its cells, and made to agree with them when rows
  are drawn
- `chunks/`: chunks of a private table as codes, read by this process or by several at once
- `code_sets`: cells of several codes to places of one code each
- `code_search`: the codes that units have, up to the private list of those that may be published
- `code_values`: what the codes of a column stand for, and how they are grouped
- `codec`: bounded, declared columns to integer codes and back; missing is a code of its own
- `cohort`: rows grouped by privacy unit, at most ``max_rows`` of each, as codes
- `column_codecs`: numeric columns by points of a lattice, others by their categories
- `conformity`: does a synthetic table hold only what its schema allows: types, bounds,
  resolution, categories
- `drawn_sets`: drawn places of codes as cells of several codes, and such cells read again
- `formulas`: derived columns: computed from the cells of their row by a formula
- `grain`: grains: the round units of a numeric column, and drawn points that follow their shares
- `grid`: the codes of a numeric column: which points of its lattice share a code
- `own_row`: gaps above other columns of the row, groups of codes, and cells left empty
- `relations`: dates and gaps, derived columns, parts of the calendar
- `linked/`: linked tables to coded histories of patients
- `shards/`: coded rows in shards on a disk: a table that does not fit in memory
- `sources/`: coded rows, and what a generator that only counts needs of them, wherever they lie
- `strict_table`: the table of a bundle, in two formats: is each what the schema says, and do they
  hold the same
- `warehouse/`: rows that are coded, capped and counted where they lie, by SQL
- `typed_cells`: the cells of a synthetic table as numbers, and of their declared types, text and
  typed alike
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
