"""What the columns of a table or query of a database hold, by their declared types.

A kind of None means that the database does not say. The kinds of the cells themselves then count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy import types

from dpsynth.tables.cell_kinds import Held

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
