"""Tables and views of a DuckDB file, opened for reading only, as Arrow batches.

The types of the columns are those of the table. A view cannot read other files: access to anything
outside the database is switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import DpsynthError, TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import check_layout
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.parquet import cells_of
from dpsynth.tables.reference import Reference

Ints = npt.NDArray[np.int64]
_MAIN = "main"
_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_catalog = current_database() ORDER BY 1, 2"
)


@dataclass(frozen=True)
class DuckdbTable:
    """A table whose columns have been checked."""

    path: Path
    table: tuple[str, str]
    columns: tuple[str, ...]
    header: tuple[str, ...]

    @classmethod
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> DuckdbTable:
        """Find the table, and check the names and types of its columns.

        Raises:
            TableError: not a DuckDB file, or one that another program writes to; no such table, or
                several and none is named; columns are missing or of a type that is not allowed.
        """
        path = cast(Path, reference.path)
        table = table_of(path, reference.part)
        with reading(path) as connection:
            rows = connection.sql(f"SELECT * FROM {_quoted(*table)} LIMIT 0")
            layout = rows.to_arrow_reader(1).schema
            del rows  # a result that is open keeps the connection open
        place = f"{path}#{'.'.join(table)}"
        check_names(layout.names, needed, place)
        check_layout(layout, needed, schema, place, reference.format.remedy)
        return cls(path, table, needed, tuple(layout.names))

    @classmethod
    def part_of(cls, reference: Reference) -> str:
        """Return the name of the table that is read, with its schema; see `table_of`."""
        return ".".join(table_of(cast(Path, reference.path), reference.part))

    @classmethod
    def parts_in(cls, reference: Reference) -> dict[str, str]:
        """Return the tables and views of one schema of the database; see `Format.part`."""
        wanted = reference.part or _MAIN
        tables = _tables(cast(Path, reference.path))
        return {name: f"{schema}.{name}" for schema, name in tables if schema == wanted}

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield typed frames, as those of a Parquet file."""
        names = ", ".join(_quoted(name) for name in self.columns)
        step, done = chunk_rows(len(self.columns)), 0
        with reading(self.path) as connection:
            source = _quoted(*self.table)
            total = connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0]
            reader = connection.sql(f"SELECT {names} FROM {source}").to_arrow_reader(step)
            for batch in reader:
                if batch.num_rows:
                    yield pd.DataFrame(
                        {name: cells_of(batch.column(name)) for name in self.columns}
                    )
                    done += batch.num_rows
                    if progress is not None:
                        progress(min(1.0, done / max(1, total)))
        if not done:
            raise no_rows(str(self.path))

    def distinct(self, names: Sequence[str]) -> Iterator[tuple[pd.DataFrame, Ints]]:
        """Yield the different rows of some columns, and how often each is there."""
        cells = ", ".join(_quoted(name) for name in names)
        query = f"SELECT {cells}, count(*) FROM {_quoted(*self.table)} GROUP BY {cells}"
        with reading(self.path) as connection:
            for batch in connection.sql(query).to_arrow_reader(chunk_rows(len(names) + 1)):
                frame = {name: cells_of(batch.column(place)) for place, name in enumerate(names)}
                yield pd.DataFrame(frame), batch.column(len(names)).to_numpy().astype(np.int64)


def table_of(path: Path, part: str | None) -> tuple[str, str]:
    """Return the schema and name of the table that is read: the one that is named, or the only one.

    Raises:
        TableError: there is no such table, or there are several and none is named.
    """
    tables = _tables(path)
    if part is None:
        if len(tables) != 1:
            raise TableError(
                f"{path} has {len(tables)} tables; name the one to read: '{path.name}#TABLE'"
            )
        return tables[0]
    schema, _, name = part.rpartition(".")
    for table in ((_MAIN, part), (schema or _MAIN, name)):
        if table in tables:
            return table
    raise TableError(f"{path} has no table or view called {part}; write it as the database does")


def _tables(path: Path) -> list[tuple[str, str]]:
    with reading(path) as connection:
        found = connection.execute(_TABLES).fetchall()
    return [(str(schema), str(name)) for schema, name in found]


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """Open the file for reading; the errors of DuckDB may quote cells."""
    with duckdb_errors(path), connected(path) as connection:
        yield connection


def connected(path: Path) -> Any:
    """Open the file for reading; nothing outside of it can be reached."""
    import duckdb

    settings: dict[str, Any] = {
        "enable_external_access": "false",
        "autoload_known_extensions": "false",
    }
    return duckdb.connect(str(path), read_only=True, config=settings)


@contextmanager
def duckdb_errors(path: Path) -> Iterator[None]:
    """Replace the errors of DuckDB, which may quote cells.

    Raises:
        TableError: in their place; not chained to them.
    """
    try:
        yield
    except DpsynthError:
        raise
    except Exception as error:
        raise TableError(
            f"{path} cannot be read as a DuckDB file ({type(error).__name__}): it is damaged, of a "
            "newer version than the installed duckdb, or another program is writing to it"
        ) from None


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
