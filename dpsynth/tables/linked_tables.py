"""The tables of a schema of linked tables, opened together: of patients, and of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from dpsynth._util.messages import did_you_mean, shown
from dpsynth.errors import TableError
from dpsynth.schema import ChildTable, LinkedSchema, Schema
from dpsynth.tables.table import Table, needed_columns, open_columns

Source = str | Path | pd.DataFrame


def open_linked(sources: Mapping[str, Source], schema: LinkedSchema) -> dict[str, Table]:
    """Open every table of a schema, after checking each as `open_table` does.

    Args:
        sources: a file, an address or a DataFrame by the name of its table.
        schema: of the linked tables.

    Returns:
        The tables by name, that of patients first.

    Raises:
        TableError: a table is not given, or no table has such a name; or as `open_table`.
    """
    names = schema.table_names
    for name in sources:
        if name not in names:
            meant = did_you_mean(name, names)
            raise TableError(f"schema {schema.name} has no table {shown(name)}{meant}")
    absent = [name for name in names if name not in sources]
    if absent:
        raise TableError(
            f"no file is given for {', '.join(absent)} of schema {schema.name}; a table without "
            "rows is a file with a header"
        )
    opened = {names[0]: _opened(sources[names[0]], schema.patients, (schema.origin,))}
    for child in schema.children:
        opened[child.name] = _opened(sources[child.name], child.schema, child.needed)
    return opened


def columns_of(child: ChildTable) -> tuple[str, ...]:
    """Return the columns of a child table that are read, in the schema's order."""
    return _needed(child.schema, child.needed)


def _opened(source: Source, schema: Schema, more: tuple[str | None, ...]) -> Table:
    return open_columns(source, schema, _needed(schema, more), private=True)


def _needed(schema: Schema, more: tuple[str | None, ...]) -> tuple[str, ...]:
    wanted = {*needed_columns(schema), *more}
    return tuple(column.name for column in schema.columns if column.name in wanted)
