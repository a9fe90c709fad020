"""A table that was opened for reading, as one that is counted where it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import TableError
from dpsynth.tables.cell_kinds import Held
from dpsynth.tables.sources.addresses import Address
from dpsynth.tables.sources.connections import READ_ONLY, driver_errors, engine_of
from dpsynth.tables.sources.database_tables import DatabaseTable
from dpsynth.tables.sources.duckdb_tables import DuckdbTable, reading
from dpsynth.tables.sources.sql_kinds import described_kinds
from dpsynth.tables.sources.warehouse.cells import Stored
from dpsynth.tables.sources.warehouse.sessions import Session, duckdb_session, postgres_session

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
    assert url is not None
    backend = Address.of(url).backend
    if backend != "postgresql":
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
