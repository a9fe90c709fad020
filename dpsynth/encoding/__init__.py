"""Cells to integer codes and back, and rows grouped by privacy unit.

This room decides what one unit can contribute: bounded codes, and at most `max_rows` rows.

- `any_table`: a synthetic table of a schema, whoever wrote it, restated as dpsynth writes it
- `chunks`: all chunks of a table, in order, whoever reads them
- `code_sets`: cells of several codes to places of one code each
- `code_search`: the codes that units have, up to the private list of those that may be published
- `code_values`: what the codes of a column stand for, and how they are grouped
- `codec`: bounded, declared columns to integer codes and back; missing is a code of its own
- `cohort`: rows grouped by privacy unit, at most ``max_rows`` of each, as codes
- `column_codecs`: numeric columns by points of a lattice, others by their categories
- `conformity`: does a synthetic table hold only what its schema allows: types, bounds,
  resolution, categories
- `grain`: grains: the round units of a numeric column, and drawn points that follow their shares
- `grid`: the codes of a numeric column: which points of its lattice share a code
- `histories`: coded histories of patients: what a generator of histories learns from, and what it
  emits
- `history_calendar`: the calendar of rows of histories: weekday, month and hour, coded beside a row
  and put back
- `history_codec`: what the tables of a schema are coded as: columns, series and events; from the
  schema alone
- `history_reading`: the tables of a schema, read into histories
- `relations`: dates and gaps, derived columns, parts of the calendar
- `shards`: rows in shards on a disk: read, dealt by unit, seated, and counted shard by shard
- `sql`: all coded columns of a schema as expressions on the cells of a table in a warehouse
- `sql_counts`: counts of columns and pairs of columns, and other cells for their codes, by GROUP BY
- `strict_table`: the table of a bundle, in two formats: is each what the schema says, and do they
  hold the same
- `summaries`: one row that sums up each patient's history: a single table, which attacks on tables
  can read
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
