"""Tables that stay in their warehouse: a connection, and cells of columns by SQL.

One connection to a warehouse, with temporary tables that nobody else sees and that end with it.

The source is read in one transaction that can only read: it sees one state of the table, however
many queries it takes, and can write nothing but into a temporary table, which was made before.
Errors of the warehouse may quote cells, so their texts are withheld.

The cells of a column of SQL as text or as a number, in DuckDB and in PostgreSQL.

What differs between warehouses is here; the rest of the coding is one expression
for all of them. A text is compared byte by byte, whatever the column's collation. A number, day or
time is a double precision number: NULL or NaN where the cell is missing, infinite where it is
outside of what dpsynth reads. No expression can fail by what a cell holds: a cast that might is
guarded, because an error would be seen, and might quote the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import TableError
from dpsynth.schema import Column, Family
from dpsynth.schema.types import DAY
from dpsynth.tables.cell_kinds import Held
from dpsynth.tables.databases import (
    READ_ONLY,
    DatabaseTable,
    described_kinds,
    driver_errors,
    engine_of,
)
from dpsynth.tables.duckdb_tables import DuckdbTable, connected, duckdb_errors, reading
from dpsynth.tables.reference import Address

Row = Sequence[Any]


class Session(Protocol):
    """A connection that reads a source into temporary tables, and answers queries on these."""

    def fill(
        self, table: str, columns: Sequence[str], select: str, ask: Sequence[str] = ()
    ) -> list[Row]:
        """Make a temporary table of integers, and fill it by a query on the source.

        Args:
            table: its name.
            columns: its columns, all of them integers.
            select: what fills it.
            ask: queries of one row each, on the same state of the source; they come first.

        Returns:
            The rows of these queries.

        Raises:
            TableError: the warehouse refuses; its own words are withheld.
        """

    def derive(self, table: str, select: str) -> None:
        """Make another temporary table by a query on those that there are.

        Raises:
            TableError: as `fill`.
        """

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query on temporary tables.

        Raises:
            TableError: as `fill`.
        """

    def asked(self, queries: Sequence[str]) -> list[list[Row]]:
        """Return the rows of queries on the source, all on one state of it; nothing is written.

        Raises:
            TableError: as `fill`.
        """

    def drop(self, table: str) -> None:
        """Drop a temporary table."""


def _made(table: str, columns: Sequence[str]) -> str:
    return f"CREATE TEMPORARY TABLE {table} ({', '.join(f'{name} INTEGER' for name in columns)})"


@dataclass(frozen=True, repr=False)
class DuckdbSession:
    """A connection to a DuckDB file that is open for reading only."""

    connection: Any
    path: Path

    def __repr__(self) -> str:
        """Show the file."""
        return short_repr(self, str(self.path))

    def fill(
        self, table: str, columns: Sequence[str], select: str, ask: Sequence[str] = ()
    ) -> list[Row]:
        """See `Session`."""
        self.rows(_made(table, columns))
        self.rows("BEGIN TRANSACTION")
        answers = [row for query in ask for row in self.rows(query)]
        self.rows(f"INSERT INTO {table} {select}")
        self.rows("COMMIT")
        return answers

    def derive(self, table: str, select: str) -> None:
        """See `Session`."""
        self.rows(f"CREATE TEMPORARY TABLE {table} AS {select}")

    def rows(self, query: str) -> list[Row]:
        """See `Session`."""
        with duckdb_errors(self.path):
            return list(self.connection.execute(query).fetchall())

    def asked(self, queries: Sequence[str]) -> list[list[Row]]:
        """See `Session`."""
        self.rows("BEGIN TRANSACTION")
        answers = [self.rows(query) for query in queries]
        self.rows("ROLLBACK")
        return answers

    def drop(self, table: str) -> None:
        """See `Session`."""
        self.rows(f"DROP TABLE IF EXISTS temp.{table}")


@dataclass(frozen=True, repr=False)
class PostgresSession:
    """A connection to a PostgreSQL server."""

    connection: sa.Connection
    place: str

    def __repr__(self) -> str:
        """Show the place; the connection may hold a password."""
        return short_repr(self, self.place)

    def fill(
        self, table: str, columns: Sequence[str], select: str, ask: Sequence[str] = ()
    ) -> list[Row]:
        """See `Session`."""
        with self._errors():
            self.connection.exec_driver_sql(_made(table, columns))
            self.connection.commit()
            READ_ONLY["postgresql"](self.connection)  # but the temporary table may be filled
            answers = [row for query in ask for row in self.rows(query)]
            self.connection.exec_driver_sql(f"INSERT INTO pg_temp.{table} {select}")
            self.connection.commit()
            self.connection.exec_driver_sql(f"ANALYZE pg_temp.{table}")
            self.connection.commit()
        return answers

    def derive(self, table: str, select: str) -> None:
        """See `Session`."""
        with self._errors():
            self.connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {table} AS {select}")
            self.connection.commit()

    def rows(self, query: str) -> list[Row]:
        """See `Session`."""
        with self._errors():
            return list(self.connection.exec_driver_sql(query).fetchall())

    def asked(self, queries: Sequence[str]) -> list[list[Row]]:
        """See `Session`."""
        with self._errors():
            READ_ONLY["postgresql"](self.connection)
            answers = [self.rows(query) for query in queries]
            self.connection.rollback()
        return answers

    def drop(self, table: str) -> None:
        """See `Session`."""
        with self._errors():
            self.connection.rollback()
            self.connection.exec_driver_sql(f"DROP TABLE IF EXISTS pg_temp.{table}")
            self.connection.commit()

    def _errors(self) -> AbstractContextManager[None]:
        return driver_errors(self.place, "postgresql")


@contextmanager
def duckdb_session(path: Path) -> Iterator[DuckdbSession]:
    """Open a DuckDB file for reading; temporary tables are in memory and end with the connection.

    Raises:
        TableError: it cannot be opened, or a query failed.
    """
    with duckdb_errors(path):
        connection = connected(path)
    try:
        yield DuckdbSession(connection, path)
    finally:
        connection.close()


@contextmanager
def postgres_session(url: str, place: str) -> Iterator[PostgresSession]:
    """Connect to a PostgreSQL server; temporary tables end with the connection.

    Raises:
        TableError: the server cannot be reached, or refuses a query.
    """
    with driver_errors(place, "postgresql"):
        connection = engine_of(Address.of(url)).connect()
    try:
        yield PostgresSession(connection, place)
    finally:
        connection.close()


BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What `str.strip` and Arrow take for blanks around a text."""


class Stored(StrEnum):
    """How a warehouse stores the cells of a column, in the words of messages."""

    TEXT = "text"
    WHOLE = "whole numbers"
    FLOAT = "floating-point numbers"
    DECIMAL = "decimal numbers"
    TRUTH = "truth values"
    DAY = "dates"
    MOMENT = "dates with times"
    CLOCK = "times of day"


NUMBERS = frozenset({Stored.WHOLE, Stored.FLOAT, Stored.DECIMAL})
_OF_FAMILY: Mapping[Family, frozenset[Stored]] = {
    Family.TEXT: frozenset({Stored.TEXT}),
    Family.NUMBER: NUMBERS,
    Family.TRUTH: NUMBERS | {Stored.TRUTH},
    Family.TIME: frozenset({Stored.DAY, Stored.MOMENT}),
    Family.CLOCK: frozenset({Stored.CLOCK}),
}


def suits(column: Column, stored: Stored) -> bool:
    """Tell whether a column's cells can be read in SQL as they are stored."""
    if column.kind.is_time and not column.kind.seconds:
        return False
    return stored in _OF_FAMILY.get(column.kind.family, ())


def cell_in_sql(column: Column, stored: Stored, name: str, dialect: str) -> str:
    """Return an expression for the cells of a column: a trimmed text, or a number.

    Args:
        column: of the schema; `suits` holds.
        stored: how the warehouse stores it.
        name: quoted.
        dialect: ``duckdb`` or ``postgres``.
    """
    if stored is Stored.TEXT:
        return trimmed(text_in_sql(name, dialect), dialect)
    return _OF_DIALECT[dialect][stored](name, column.kind.seconds == DAY)


def text_in_sql(name: str, dialect: str) -> str:
    """Return an expression for a text as it stands, compared byte by byte."""
    return f"CAST({name} AS TEXT) COLLATE {'C' if dialect == 'duckdb' else _POSTGRES_BYTES}"


def trimmed(text: str, dialect: str) -> str:
    """Return an expression for a text without the blanks around it."""
    return f"{'trim' if dialect == 'duckdb' else 'btrim'}({text}, '{BLANKS}')"


_POSTGRES_BYTES = '"C"'
_NONE = "'Infinity'"
_INFINITE = 2**1024 - 2**970  # from here on, the nearest double is infinite
_ZERO = f"{5**1075}e-1075"  # up to here, which is half of the least double, the nearest is zero


def _guarded(condition: str, value: str, name: str, double: str) -> str:
    """Return a value where a condition holds, and what dpsynth does not read elsewhere."""
    return (
        f"CASE WHEN {name} IS NULL THEN NULL WHEN {condition} THEN {value} "
        f"ELSE CAST({_NONE} AS {double}) END"
    )


def _cast(name: str, days: bool, *, double: str) -> str:
    return f"CAST({name} AS {double})"


def _truth(name: str, days: bool, *, double: str) -> str:
    return f"CASE WHEN {name} THEN CAST(1 AS {double}) WHEN NOT {name} THEN CAST(0 AS {double}) END"


def _duckdb_decimal(name: str, days: bool) -> str:
    return f"CAST(CAST({name} AS VARCHAR) AS DOUBLE)"  # a text is read to the last bit


def _duckdb_time(name: str, days: bool) -> str:
    """Days, or seconds to the microsecond, of a date or a date with a time."""
    readable = f"{name} >= DATE '0001-01-01' AND {name} < DATE '10000-01-01'"
    if days:
        count = f"date_diff('day', DATE '1970-01-01', CAST({name} AS DATE))"
        return _guarded(readable, f"CAST({count} AS DOUBLE)", name, "DOUBLE")
    micros = f"epoch_us(CAST({name} AS TIMESTAMP))"
    rest = f"((({micros} % 1000000) + 1000000) % 1000000)"
    whole = f"CAST(({micros} - {rest}) // 1000000 AS DOUBLE)"
    value = f"{whole} + CAST({rest} AS DOUBLE) / CAST(1000000 AS DOUBLE)"
    return _guarded(readable, value, name, "DOUBLE")


def _duckdb_clock(name: str, days: bool) -> str:
    micros = f"epoch_us({name})"
    value = (
        f"CAST({micros} // 1000000 AS DOUBLE)"
        f" + CAST({micros} % 1000000 AS DOUBLE) / CAST(1000000 AS DOUBLE)"
    )
    return _guarded(f"{micros} < 86400000000", value, name, "DOUBLE")


def _postgres_decimal(name: str, days: bool) -> str:
    """Cast what a double can hold; what is nearer to zero becomes a number that is as small."""
    double = "DOUBLE PRECISION"
    return (
        f"CASE WHEN {name} = 'NaN' THEN CAST('NaN' AS {double}) "
        f"WHEN {name} >= {_INFINITE} OR {name} <= -{_INFINITE} THEN CAST({_NONE} AS {double}) "
        f"WHEN {name} > 1e300 THEN CAST(1e300 AS {double}) "
        f"WHEN {name} < -1e300 THEN CAST(-1e300 AS {double}) "
        f"WHEN {name} <= {_ZERO} AND {name} >= -{_ZERO} THEN CAST(0 AS {double}) "
        f"WHEN {name} > -1e-300 AND {name} < 1e-300 THEN CAST(1e-300 AS {double}) "
        f"ELSE CAST({name} AS {double}) END"
    )


def _postgres_time(name: str, days: bool) -> str:
    readable = f"{name} >= DATE '0001-01-01' AND {name} < DATE '10000-01-01'"
    double = "DOUBLE PRECISION"
    if days:
        value = f"CAST(CAST({name} AS DATE) - DATE '1970-01-01' AS {double})"
        return _guarded(readable, value, name, double)
    return _guarded(readable, _postgres_seconds(f"CAST({name} AS TIMESTAMP)"), name, double)


def _postgres_seconds(name: str) -> str:
    double = "DOUBLE PRECISION"
    seconds = f"CAST(EXTRACT(EPOCH FROM {name}) AS NUMERIC)"
    whole = f"FLOOR({seconds})"
    rest = f"CAST(ROUND(({seconds} - {whole}) * 1000000) AS {double})"
    return f"CAST({whole} AS {double}) + {rest} / CAST(1000000 AS {double})"


def _postgres_clock(name: str, days: bool) -> str:
    value = _postgres_seconds(name)
    return _guarded(f"{name} < TIME '24:00:00'", value, name, "DOUBLE PRECISION")


_OF_DIALECT: Mapping[str, Mapping[Stored, Callable[[str, bool], str]]] = {
    "duckdb": {
        Stored.WHOLE: partial(_cast, double="DOUBLE"),
        Stored.FLOAT: partial(_cast, double="DOUBLE"),
        Stored.DECIMAL: _duckdb_decimal,
        Stored.TRUTH: partial(_truth, double="DOUBLE"),
        Stored.DAY: _duckdb_time,
        Stored.MOMENT: _duckdb_time,
        Stored.CLOCK: _duckdb_clock,
    },
    "postgres": {
        Stored.WHOLE: partial(_cast, double="DOUBLE PRECISION"),
        Stored.FLOAT: partial(_cast, double="DOUBLE PRECISION"),
        Stored.DECIMAL: _postgres_decimal,
        Stored.TRUTH: partial(_truth, double="DOUBLE PRECISION"),
        Stored.DAY: _postgres_time,
        Stored.MOMENT: _postgres_time,
        Stored.CLOCK: _postgres_clock,
    },
}


_OF_DUCKDB = {
    "VARCHAR": Stored.TEXT,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Stored.WHOLE),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), Stored.WHOLE),
    "DOUBLE": Stored.FLOAT,
    "DECIMAL": Stored.DECIMAL,
    "BOOLEAN": Stored.TRUTH,
    "DATE": Stored.DAY,
    "TIMESTAMP": Stored.MOMENT,
    "TIME": Stored.CLOCK,
    "ENUM": Stored.TEXT,
}
_OF_HELD = {
    Held.TEXT: Stored.TEXT,
    Held.WHOLE: Stored.WHOLE,
    Held.FLOAT: Stored.FLOAT,
    Held.DECIMAL: Stored.DECIMAL,
    Held.TRUTH: Stored.TRUTH,
    Held.TIME: Stored.MOMENT,  # or a date: both are read alike
    Held.CLOCK: Stored.CLOCK,
}


@dataclass(frozen=True, repr=False)
class WarehouseTable:
    """A table or view whose rows are coded and counted where they are.

    Attributes:
        dialect: of SQL: ``duckdb`` or ``postgres``.
        place: what messages call the table.
        rows_of: what stands behind FROM.
        stored: how each of its columns is stored; None for a type that is not read in SQL.
    """

    dialect: str
    place: str
    rows_of: str
    stored: Mapping[str, Stored | None]
    _path: Path | None = None
    _url: str | None = None

    def __repr__(self) -> str:
        """Name the table; a URL may hold a password."""
        return short_repr(self, self.place)

    def session(self) -> AbstractContextManager[Session]:
        """Connect; see `Session`."""
        if self._path is not None:
            return duckdb_session(self._path)
        assert self._url is not None
        return postgres_session(self._url, self.place)


def warehouse_table(table: object) -> WarehouseTable:
    """Return an opened table as one that is counted where it is; only its types are looked up.

    Args:
        table: as `dpsynth.tables.open_table` gives it: its names and types have been checked.

    Raises:
        TableError: it is not in DuckDB or PostgreSQL, or the database cannot be reached.
    """
    if isinstance(table, DuckdbTable):
        name = ".".join(_quoted(part) for part in table.table)
        with reading(table.path) as connection:
            described = connection.execute(f"DESCRIBE SELECT * FROM {name}").fetchall()
        stored = {str(row[0]): _OF_DUCKDB.get(str(row[1]).partition("(")[0]) for row in described}
        place = f"{table.path}#{'.'.join(table.table)}"
        return WarehouseTable("duckdb", place, name, stored, _path=table.path)
    if not isinstance(table, DatabaseTable):
        raise TableError(
            "rows can stay in a warehouse only where there is one: name a table of DuckDB or "
            "PostgreSQL, such as 'postgresql://office@host/db#ward.stays'"
        )
    url = table.reference.url
    backend = table.reference.address.backend
    if url is None or backend != "postgresql":
        raise TableError(
            f"{table.reference.place}: rows can stay in DuckDB and PostgreSQL; of {backend}, "
            "dpsynth reads them"
        )
    return WarehouseTable(
        "postgres", table.reference.place, table.rows_of, _postgres_types(table, url), _url=url
    )


def _postgres_types(table: DatabaseTable, url: str) -> dict[str, Stored | None]:
    address = Address.of(url)
    with (
        driver_errors(table.reference.place, address.backend),
        engine_of(address).connect() as connection,
    ):
        READ_ONLY["postgresql"](connection)
        with connection.exec_driver_sql(f"SELECT * FROM {table.rows_of} WHERE 1 = 0") as result:
            described = result.cursor.description or ()
        kinds = described_kinds(connection, described)
        connection.rollback()
    return {name: _OF_HELD.get(kind) for name, kind in kinds.items() if kind is not None}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
