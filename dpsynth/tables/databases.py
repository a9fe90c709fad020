"""A table or a query of a database, streamed in chunks, in a transaction that can only read.

The types of the columns are public facts of the table, never of its rows. They decide which columns
are accepted. Each cell is then text, by itself alone. PostgreSQL writes the text of its cells
itself (``CAST(... AS TEXT)``, as in a CSV that it exports). Of other databases, a cell's text is
that of the value that the driver returns.

Texts of a database's errors may quote cells and passwords, so they are withheld.

What the columns of a table or query of a database hold, by their declared types.

A kind of None means that the database does not say. The kinds of the cells themselves then count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pandas as pd
import sqlalchemy as sa
from sqlalchemy import types

from dpsynth.errors import DpsynthError, TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import Held, check_kinds, must_be_exact
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.reference import Address, Reference, read_query
from dpsynth.tables.text_columns import cell_text

Ints = npt.NDArray[np.int64]
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
        check_kinds(known, schema, reference.place, reference.format.remedy)
        unknown = tuple(name for name in needed if name not in known)
        table = cls(reference, rows_of, needed, header, schema, unknown)
        if unknown:
            table._check_cells()
        if reference.address.backend == "sqlite":
            table._check_stored()
        return table

    @classmethod
    def part_of(cls, reference: Reference) -> str:
        """Return the name of the table that is read: the one that is named, or the only one.

        Raises:
            TableError: there are several and none is named.
        """
        if reference.part is not None:
            return reference.part
        names = cls.parts_in(reference)
        if len(names) != 1:
            raise TableError(
                f"{reference.place} has {len(names)} tables; name the one to read: "
                f"'{reference.title}#TABLE'"
            )
        return next(iter(names))

    @classmethod
    def parts_in(cls, reference: Reference) -> dict[str, str]:
        """Return the tables and views of one schema of the database; see `Format.part`.

        Raises:
            TableError: the database cannot be reached.
        """
        named = reference.part
        with _reading(reference) as connection:
            inspector = sa.inspect(connection)
            names = sorted([*inspector.get_table_names(named), *inspector.get_view_names(named)])
        return {name: name if named is None else f"{named}.{name}" for name in names}

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
        check_kinds(empty, self.schema, self.reference.place, self.reference.format.remedy)

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
            check_kinds(
                {name: kind}, self.schema, self.reference.place, self.reference.format.remedy
            )
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
    address = reference.address
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
    if reference.query is not None:
        name = connection.dialect.name
        if name not in READ_ONLY:
            raise TableError(
                f"{reference.place}: dpsynth knows no transaction of {name} that can only read, so "
                "it runs no query there; make a view of the query, and name that"
            )
        return f"(\n{read_query(reference.query)}\n) dpsynth_source", None
    part = DatabaseTable.part_of(reference)
    inspector = sa.inspect(connection)
    choices: list[tuple[str | None, str]] = [(None, part)]
    if "." in part:
        first, _, rest = part.partition(".")
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
        "its name after the #, with its schema, as the database spells it"
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


_TIMEOUT = 10  # seconds, to reach a server


def engine_of(address: Address) -> sa.Engine:
    """Prepare connections to a database; none is opened.

    Raises:
        TableError: the database has a reader of its own, or there is no such file.
    """
    options: dict[str, Any] = {"poolclass": sa.NullPool, "hide_parameters": True}
    if address.backend == "duckdb":
        raise TableError("name a DuckDB file by its path, such as extract.duckdb#table")
    if address.backend == "sqlite":
        path = Path(address.url.database or "").absolute()
        if not path.is_file():
            raise TableError(f"{path}: there is no such SQLite file")
        uri = f"file:{quote(str(path))}?mode=ro"
        return sa.create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), **options
        )
    if address.url.drivername == "postgresql+psycopg":
        options["connect_args"] = {"connect_timeout": _TIMEOUT, "application_name": "dpsynth"}
    engine = sa.create_engine(address.url, **options)
    return engine.execution_options(no_parameters=True)  # a percent sign is one in a query


def _postgresql(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.exec_driver_sql("SET LOCAL DateStyle = 'ISO, YMD'")
    connection.exec_driver_sql("SET LOCAL IntervalStyle = 'iso_8601'")
    connection.exec_driver_sql("SET LOCAL extra_float_digits = 1")  # the shortest exact text
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")


def _mysql(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
    connection.commit()  # it holds from the next transaction on


def _oracle(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")


def _sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql("PRAGMA query_only = ON")  # the file is opened for reading, besides


READ_ONLY: Mapping[str, Callable[[sa.Connection], None]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
    "oracle": _oracle,
    "sqlite": _sqlite,
}
"""How each kind of database begins a transaction that can only read."""

_DRIVERS = {"psycopg": "pip install 'dpsynth[postgres]'"}
_BY_CODE = {
    "28": "the server refuses this user or password",
    "3D": "the server has no such database",
    "42501": "this user may not read it; ask the database's administrator for SELECT",
    "42P01": "there is no such table",
    "42703": "the query names a column that is not there",
    "42702": "two columns of the query have the same name; rename one with AS",
    "42": "the database does not accept the query; try it with the database's own tool",
    "25006": "the query would write, and dpsynth only reads",
    "57": "the server ended the connection; try again",
    "53": "the server has no room or connection left; try again later",
}


@contextmanager
def driver_errors(place: str, backend: str) -> Iterator[None]:
    """Replace the errors of a driver: their texts may quote cells, users and passwords.

    Raises:
        TableError: in their place; not chained to them.
    """
    try:
        yield
    except DpsynthError:
        raise
    except (sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise TableError(f"{place}: {_absent(error, backend)}") from None
    except sa.exc.DBAPIError as error:
        raise TableError(f"{place}: {_reason(error, backend)}") from None
    except Exception as error:  # of whatever driver
        raise TableError(
            f"{place}: the database's driver failed ({type(error).__name__}; its text is withheld, "
            "because it may quote cells)"
        ) from None


def _absent(error: Exception, backend: str) -> str:
    name = getattr(error, "name", None)
    if name is None:
        return f"SQLAlchemy knows no database '{backend}' here; install its SQLAlchemy dialect"
    how = _DRIVERS.get(name, f"pip install {name}")
    return f"the driver {name} is not installed; run: {how}"


def _reason(error: sa.exc.DBAPIError, backend: str) -> str:
    code = getattr(error.orig, "sqlstate", None)
    kind = type(error.orig).__name__
    if isinstance(code, str):
        for start in (code, code[:2]):
            if start in _BY_CODE:
                return f"{_BY_CODE[start]} (SQLSTATE {code})"
        return f"the database refused ({kind}, SQLSTATE {code})"
    if backend == "postgresql" and isinstance(error, sa.exc.OperationalError):
        return (
            "the server cannot be reached, or refuses this user; check host, port, database and "
            "user, and the password in PGPASSWORD or ~/.pgpass"
        )
    return (
        f"the database refused ({kind}; its text is withheld, because it may quote cells); check "
        "the address, the user, and the name of the table or the query"
    )


# of PostgreSQL's catalog, pg_type.oid
_BY_OID: Mapping[int, Held] = {
    **dict.fromkeys((20, 21, 23, 26), Held.WHOLE),
    **dict.fromkeys((18, 19, 25, 1042, 1043, 2950), Held.TEXT),  # 2950: uuid
    16: Held.TRUTH,
    700: Held.SINGLE,
    701: Held.FLOAT,
    1700: Held.DECIMAL,
    1082: Held.TIME,
    1114: Held.TIME,
    1184: Held.ZONED,
    1083: Held.CLOCK,
    1266: Held.ZONED,
    705: Held.TEXT,  # unknown: a bare literal
}
_NUMERIC = 1700
_FIRST_OWN = 16_384  # from here on, types are made by users and extensions


def declared_kinds(
    connection: sa.Connection, table: str, schema: str | None
) -> dict[str, Held | None]:
    """Return the kinds of a table's columns, by the names that a result has."""
    name = connection.dialect.name
    normalises = connection.dialect.requires_name_normalize  # Oracle spells names in capitals
    spelled = connection.dialect.denormalize_name if normalises else str
    return {
        str(spelled(column["name"])): kind_of_sql(column["type"], name)
        for column in sa.inspect(connection).get_columns(table, schema)
    }


def described_kinds(connection: sa.Connection, described: Sequence[Any]) -> dict[str, Held | None]:
    """Return the kinds of a result's columns, as far as the driver describes them."""
    if connection.dialect.name != "postgresql":
        return {}
    codes = sorted({column[1] for column in described if column[1] >= _FIRST_OWN})
    texts: set[int] = set()
    if codes:
        numbers = ", ".join(map(str, codes))
        texts = set(
            connection.exec_driver_sql(
                f"SELECT oid FROM pg_catalog.pg_type WHERE oid IN ({numbers}) "
                "AND (typtype = 'e' OR typname = 'citext')"
            ).scalars()
        )
    return {
        str(column[0]): Held.TEXT
        if column[1] in texts
        else Held.WHOLE
        if column[1] == _NUMERIC and column[5] == 0
        else _BY_OID.get(column[1], Held.OTHER)
        for column in described
    }


def kind_of_sql(kind: Any, backend: str) -> Held | None:
    """Return what a column of a SQLAlchemy type holds."""
    if isinstance(kind, types.NullType):
        return None
    if isinstance(kind, types.Date | types.DateTime):
        if backend == "sqlite":  # which keeps them as text
            return Held.TEXT
        return Held.ZONED if getattr(kind, "timezone", False) else Held.TIME
    if isinstance(kind, types.Time):
        zoned = getattr(kind, "timezone", False)
        return Held.TEXT if backend == "sqlite" else Held.ZONED if zoned else Held.CLOCK
    if isinstance(kind, types.Boolean):
        return Held.WHOLE if backend == "sqlite" else Held.TRUTH
    if isinstance(kind, types.Float):
        single = isinstance(kind, types.REAL) or (backend == "mysql" and _is_float(kind))
        return Held.SINGLE if single and backend != "sqlite" else Held.FLOAT
    if isinstance(kind, types.Numeric) and kind.scale == 0:
        return Held.WHOLE
    for family, content in (
        (types.Integer, Held.WHOLE),
        (types.Numeric, Held.DECIMAL),
        (types.String, Held.TEXT),
        (types.Uuid, Held.TEXT),
    ):
        if isinstance(kind, family):
            return content
    return Held.OTHER


def _is_float(kind: Any) -> bool:
    return str(kind.__visit_name__).upper() == "FLOAT"


def kind_of_value(value: Any) -> Held:
    """Return what one cell holds whose type nobody declares.

    >>> kind_of_value("7"), kind_of_value(7)
    (<Held.TEXT: 'text'>, <Held.WHOLE: 'whole numbers'>)
    """
    if isinstance(value, datetime):
        return Held.TIME if value.tzinfo is None else Held.ZONED
    if isinstance(value, time):
        return Held.CLOCK if value.tzinfo is None else Held.ZONED
    for family, content in (
        (str, Held.TEXT),
        (bool, Held.TRUTH),
        (int, Held.WHOLE),
        (float, Held.FLOAT),
        (Decimal, Held.DECIMAL),
        (date, Held.TIME),
    ):
        if isinstance(value, family):
            return content
    return Held.OTHER
