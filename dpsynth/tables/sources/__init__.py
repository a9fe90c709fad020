"""The kinds of private tables beside CSV and Parquet, and what a user calls each of them.

- `addresses`: the URL of a database: never with a password in it, and shown without credentials
- `connections`: connections that can only read, and the errors of drivers in words that quote
  nothing
- `database_tables`: a table or a query of a database, streamed in chunks
- `duckdb_tables`: tables and views of a DuckDB file
- `opening`: from a reference to a table whose header has been checked
- `queries`: a query in a file: one SELECT, and nothing else
- `reference`: what a user names as a private table: a file, a part of a file, or a table or query
  of a database
- `sheet_cells`: what the cells of a sheet hold, column by column
- `sql_kinds`: what the columns of a database hold, by their declared types
- `statistical`: files of SPSS, SAS and Stata
- `statistical_dates`: dates of SPSS, SAS and Stata: numbers since a day of each program's own
- `warehouse/`: a table that stays in its database: the cells of its columns in SQL, and sessions
- `workbook_file`: the file of an Excel workbook: what it is, before any of its rows is read
- `workbooks`: sheets of Excel workbooks: each cell becomes text, by itself alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
