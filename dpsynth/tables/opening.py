"""From a reference to a table whose header has been checked: one reader for each kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsynth.errors import TableError
from dpsynth.schema import Dialect, Schema
from dpsynth.tables.reference import DATABASE, STATISTICAL, Reference

TAB = "\t"


def open_reference(reference: Reference, needed: tuple[str, ...], schema: Schema) -> Any:
    """Open a private table of any kind; see `dpsynth.tables.open_table`.

    Raises:
        TableError: it cannot be read, lacks columns, or has some that must be text and are not.
    """
    reference.check()
    if reference.kind == DATABASE:
        from dpsynth.tables.databases import DatabaseTable

        return DatabaseTable.open(reference, needed, schema)
    path = reference.path
    assert path is not None
    if reference.kind == ".xlsx":
        from dpsynth.tables.workbooks import WorkbookTable

        return WorkbookTable.open(path, reference.part, needed, schema)
    if reference.kind == ".duckdb":
        from dpsynth.tables.duckdb_tables import DuckdbTable

        return DuckdbTable.open(path, reference.part, needed, schema)
    if reference.kind in STATISTICAL:
        from dpsynth.tables.statistical import StatisticalTable

        return StatisticalTable.open(path, reference.kind, needed, schema)
    if reference.kind == ".parquet":
        from dpsynth.tables.parquet import ParquetTable

        return ParquetTable.open(path, needed, schema)
    from dpsynth.tables.csv import CsvTable

    return CsvTable.open(path, needed, dialect_of(reference, schema.dialect))


def dialect_of(reference: Reference, dialect: Dialect) -> Dialect:
    """Return the dialect of a text file: that of the schema, with tabs in a ``.tsv``.

    Raises:
        TableError: the schema declares another separator than the file's name.
    """
    if not reference.kind.startswith(".tsv"):
        return dialect
    if dialect.delimiter not in (TAB, Dialect().delimiter):
        raise TableError(
            f"{reference.place}: a .tsv file has tabs between its cells, and the schema declares "
            f"dialect.delimiter {dialect.delimiter!r}; remove it, or call the file .csv"
        )
    return replace(dialect, delimiter=TAB)
