"""One connection to a warehouse, with temporary tables that nobody else sees and that end with it.

The source is read in one transaction that can only read: it sees one state of the table, however
many queries it takes, and can write nothing but into a temporary table, which was made before.
Errors of the warehouse may quote cells, so their texts are withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from dpsynth._util.short_repr import short_repr
from dpsynth.tables.sources.addresses import Address
from dpsynth.tables.sources.connections import READ_ONLY, driver_errors, engine_of
from dpsynth.tables.sources.duckdb_tables import connected, duckdb_errors

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
