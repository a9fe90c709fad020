"""Tables on disk and in memory, read in chunks of the columns that a schema declares.

This room decides how a cell, a key and a row of a source are read, always by that unit's rows
alone.

- `cell_forms`: cells whose writing a schema declares: value maps, letter case, limits of detection,
  units
- `cell_kinds`: the kinds of cells that each column of a private table may arrive with
- `cell_values`: numbers, dates and times, from text or typed cells
- `checks`: what every table must be, whatever its format: a file with the needed columns, and
  with rows
- `csv`: CSV files, plain or gzipped, in the dialect that a schema declares
- `databases`: a table or a query of a database, streamed in chunks, in a transaction that can only
  read
- `duckdb_tables`: tables and views of a DuckDB file, opened for reading only, as Arrow batches
- `formats`: the formats of sources: each is one entry of `FORMATS`, over which everything else
  loops
- `frames`: tables in memory: DataFrames of pandas, and whatever hands its columns over as Arrow
  does
- `json_lines`: an object a line, plain or gzipped, each line read by itself
- `opt_out`: the keys of units that no part of a table may be made from
- `parquet`: flat columns of any type that a schema can mean, as typed frames
- `records`: the records of a text file: the one scanner by which readers and the check tell them
  apart
- `reference`: what a user names as a private table: a file, a part of one, or a table or query of a
  database
- `rows_where`: the rows of a source that are those of a table, where several tables lie in one
  source
- `simulated`: the demo cohort: hospital visits of simulated patients, drawn from a process known
  in full
- `splitting`: splitting a private table into train and holdout, by privacy unit
- `statistical`: files of statistics programs: SPSS, SAS (its tables, and its transport files) and
  Stata
- `table`: tables of any kind, or a DataFrame, read in chunks of the columns that a schema needs
- `text_columns`: columns of any kind as columns of text: what a cell would be in a CSV file
- `text_table`: the cells of a file as text: the way to hand a private table over as a DataFrame
- `unit_keys`: which rows belong to one privacy unit: keys, compared as the schema declares
- `warehouse`: tables that stay in their warehouse: a connection, and cells of columns by SQL
- `workbooks`: sheets of Excel workbooks (``.xlsx``): each cell becomes text, by itself alone
- `writer`: synthetic tables to CSV and Parquet: streamed, whole or not at all, repeatable to the
  byte
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
