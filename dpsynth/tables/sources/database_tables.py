"""A table or a query of a database, streamed in chunks, in a transaction that can only read.

The types of the columns are public facts of the table, never of its rows. They decide which columns
are accepted. Each cell is then text, by itself alone. PostgreSQL writes the text of its cells
itself (``CAST(... AS TEXT)``, as in a CSV that it exports). Of other databases, a cell's text is
that of the value that the driver returns.

Texts of a database's errors may quote cells and passwords, so they are withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sqlalchemy as sa

from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import Held, check_kinds, must_be_exact
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.sources.addresses import Address
from dpsynth.tables.sources.connections import READ_ONLY, driver_errors, engine_of
from dpsynth.tables.sources.queries import read_query
from dpsynth.tables.sources.reference import Reference
from dpsynth.tables.sources.sql_kinds import declared_kinds, described_kinds, kind_of_value
from dpsynth.tables.text_columns import cell_text

Ints = npt.NDArray[np.int64]
_REMEDY = "select the column as text, straight from the source: CAST(... AS TEXT) in a query"
_STORED = (
    "SQLite stores whole numbers of 2^63 or more so, whatever type the column declares; load it "
    "from the source into a column of type TEXT"
)


@dataclass(frozen=True)
class DatabaseTable:
    """A table or query whose columns have been checked."""

    reference: Reference
    rows_of: str
    columns: tuple[str, ...]
    header: tuple[str, ...]
    schema: Schema
    unknown: tuple[str, ...]

    @classmethod
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> DatabaseTable:
        """Connect, and read the names and types of the columns.

        Most databases but PostgreSQL declare no types for a query. The kinds of such a column's
        cells are then checked here, before anything is charged. A column without any cell is
        judged as that of a DataFrame is: whether ``NA`` was read as missing may have depended on
        the cells of every patient.

        Raises:
            TableError: the database cannot be reached, has no such table, or would have to run
                something else than one SELECT; or columns are missing or of a type that is not
                allowed.
        """
        with _reading(reference) as connection:
            rows_of, kinds = _target(reference, connection)
            described = _description(connection, f"SELECT * FROM {rows_of} WHERE 1 = 0")
            header = tuple(str(column[0]) for column in described)
            check_names(header, needed, reference.place)
            if kinds is None:
                kinds = described_kinds(connection, described)
        known = {name: kind for name in needed if (kind := kinds.get(name)) is not None}
        check_kinds(known, schema, reference.place, _REMEDY)
        unknown = tuple(name for name in needed if name not in known)
        table = cls(reference, rows_of, needed, header, schema, unknown)
        if unknown:
            table._check_cells()
        if Address.of(str(reference.url)).backend == "sqlite":
            table._check_stored()
        return table

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is NULL; each call reads a fresh state."""
        has_rows = False
        for rows in self._rows(self.columns):
            has_rows = True
            yield self._frame(self.columns, rows)
        if not has_rows:
            raise no_rows(self.reference.place)
        if progress is not None:
            progress(1.0)  # how many rows there are is not asked

    def distinct(self, names: Sequence[str]) -> Iterator[tuple[pd.DataFrame, Ints]]:
        """Yield the different rows of some columns, and how often each is there: of PostgreSQL."""
        for rows in self._rows(tuple(names), counted=True):
            cells = [row[:-1] for row in rows]
            yield self._frame(names, cells), np.array([row[-1] for row in rows], dtype=np.int64)

    def _rows(self, columns: tuple[str, ...], *, counted: bool = False) -> Iterator[Sequence[Any]]:
        """Stream rows of some of the columns, a chunk at a time; counted, each of them once."""
        size = chunk_rows(len(columns))
        with _reading(self.reference) as connection:
            names = [_quoted(connection, name) for name in columns]
            if connection.dialect.name == "postgresql":
                names = [f"CAST({name} AS TEXT)" for name in names]
            groups = ""
            if counted:  # byte by byte, whatever the collation of a column calls equal
                places = ", ".join(str(place) for place in range(1, len(names) + 1))
                names = [*(f'{name} COLLATE "C"' for name in names), "count(*)"]
                groups = f" GROUP BY {places}"
            options = {"stream_results": True, "yield_per": min(size, 10_000)}
            result = connection.execution_options(**options).exec_driver_sql(
                f"SELECT {', '.join(names)} FROM {self.rows_of}{groups}"
            )
            while rows := result.fetchmany(size):
                yield rows

    def _check_cells(self) -> None:
        """Check the kinds of all cells whose type nobody declares."""
        filled = set()
        for rows in self._rows(self.unknown):
            for name, cells in zip(self.unknown, zip(*rows, strict=True), strict=True):
                if self._check_kinds(name, cells):
                    filled.add(name)
        empty = {name: Held.NOTHING for name in self.unknown if name not in filled}
        check_kinds(empty, self.schema, self.reference.place, _REMEDY)

    def _check_stored(self) -> None:
        """Refuse floating-point numbers that SQLite keeps in a key or a text of another type."""
        with _reading(self.reference) as connection:
            for name in self.columns:
                if name in self.unknown or not must_be_exact(self.schema, name):
                    continue
                floats = f"SELECT 1 FROM {self.rows_of} WHERE typeof({_quoted(connection, name)})"
                found = connection.exec_driver_sql(f"{floats} = 'real' LIMIT 1").first()
                if found is not None:
                    check_kinds({name: Held.FLOAT}, self.schema, self.reference.place, _STORED)

    def _check_kinds(self, name: str, cells: Sequence[Any]) -> bool:
        """Check the kinds of cells whose type nobody declares; return whether there is any."""
        kinds = {type(cell): kind_of_value(cell) for cell in cells if cell is not None}
        for kind in kinds.values():
            check_kinds({name: kind}, self.schema, self.reference.place, _REMEDY)
        return bool(kinds)

    def _frame(self, names: Sequence[str], rows: Sequence[Any]) -> pd.DataFrame:
        columns = zip(*rows, strict=True)
        return pd.DataFrame(
            {
                name: pd.Series(self._texts(name, cells), dtype=object)
                for name, cells in zip(names, columns, strict=True)
            }
        )

    def _texts(self, name: str, cells: Sequence[Any]) -> list[str | None]:
        """Return the text of each cell; check the kinds of cells whose type nobody declares."""
        if name in self.unknown:
            self._check_kinds(name, cells)  # again: the table may have changed since
        elif must_be_exact(self.schema, name) and any(isinstance(cell, float) for cell in cells):
            check_kinds({name: Held.FLOAT}, self.schema, self.reference.place, _STORED)
        decimal, truth = self.schema.dialect.decimal, self.schema.column(name).kind.is_truth
        return [
            cell
            if isinstance(cell, str) or cell is None
            else cell_text(cell, decimal=decimal, boolean=truth)
            for cell in cells
        ]


@contextmanager
def _reading(reference: Reference) -> Iterator[sa.Connection]:
    """Open a transaction that can only read; replace the errors of the driver."""
    assert reference.url is not None
    address = Address.of(reference.url)
    with driver_errors(reference.place, address.backend):
        engine = engine_of(address)
        with engine.connect() as connection:
            READ_ONLY.get(address.backend, _nothing)(connection)
            yield connection
            connection.rollback()


def _nothing(connection: sa.Connection) -> None:
    """Do without, for a table whose SELECT dpsynth itself writes."""


def _target(reference: Reference, connection: sa.Connection) -> tuple[str, dict[str, Any] | None]:
    """Return what stands behind FROM, and the kinds of a table's columns, if they are declared."""
    from dpsynth.errors import TableError

    if reference.path is not None:
        name = connection.dialect.name
        if name not in READ_ONLY:
            raise TableError(
                f"{reference.place}: dpsynth knows no transaction of {name} that can only read, so "
                "it runs no query there; make a view of the query, and name that"
            )
        return f"(\n{read_query(Path(reference.path))}\n) dpsynth_source", None
    assert reference.part is not None
    inspector = sa.inspect(connection)
    choices: list[tuple[str | None, str]] = [(None, reference.part)]
    if "." in reference.part:
        first, _, rest = reference.part.partition(".")
        choices.append((first, rest))
    for schema, table in choices:
        if inspector.has_table(table, schema):
            quote = connection.dialect.identifier_preparer.quote
            parts = [quote(part).replace("%%", "%") for part in (schema, table) if part]
            if connection.dialect.name == "postgresql":  # which describes every result itself
                return ".".join(parts), None
            return ".".join(parts), declared_kinds(connection, table, schema)
    raise TableError(
        f"{reference.place}: there is no such table or view, or this user may not see it; write "
        "URL#schema.table as the database spells it"
    )


def _description(connection: sa.Connection, statement: str) -> Sequence[Any]:
    with connection.exec_driver_sql(statement) as result:
        described: Sequence[Any] = result.cursor.description or ()
    return described


def _quoted(connection: sa.Connection, name: str) -> str:
    """Quote a name as the database itself spells it."""
    signs = connection.dialect.identifier_preparer
    opening, closing = signs.initial_quote, signs.final_quote
    return f"{opening}{name.replace(closing, closing * 2)}{closing}"
