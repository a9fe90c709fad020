"""Connections that can only read, and the errors of drivers in words that quote nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from dpsynth.errors import DpsynthError, TableError
from dpsynth.tables.sources.addresses import Address

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
