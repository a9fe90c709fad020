"""The cells of a column of SQL as text or as a number, in DuckDB and in PostgreSQL.

What differs between warehouses is here and in `sessions`; the rest of the coding is one expression
for all of them. A text is compared byte by byte, whatever the column's collation. A number, day or
time is a double precision number: NULL or NaN where the cell is missing, infinite where it is
outside of what dpsynth reads. No expression can fail by what a cell holds: a cast that might is
guarded, because an error would be seen, and might quote the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial

from dpsynth.schema import Column, Family

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
    return _OF_DIALECT[dialect][stored](name, column.kind.in_days)


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


def _cast(name: str, in_days: bool, *, double: str) -> str:
    return f"CAST({name} AS {double})"


def _truth(name: str, in_days: bool, *, double: str) -> str:
    return f"CASE WHEN {name} THEN CAST(1 AS {double}) WHEN NOT {name} THEN CAST(0 AS {double}) END"


def _duckdb_decimal(name: str, in_days: bool) -> str:
    return f"CAST(CAST({name} AS VARCHAR) AS DOUBLE)"  # a text is read to the last bit


def _duckdb_time(name: str, in_days: bool) -> str:
    """Days, or seconds to the microsecond, of a date or a date with a time."""
    readable = f"{name} >= DATE '0001-01-01' AND {name} < DATE '10000-01-01'"
    if in_days:
        days = f"date_diff('day', DATE '1970-01-01', CAST({name} AS DATE))"
        return _guarded(readable, f"CAST({days} AS DOUBLE)", name, "DOUBLE")
    micros = f"epoch_us(CAST({name} AS TIMESTAMP))"
    rest = f"((({micros} % 1000000) + 1000000) % 1000000)"
    whole = f"CAST(({micros} - {rest}) // 1000000 AS DOUBLE)"
    value = f"{whole} + CAST({rest} AS DOUBLE) / CAST(1000000 AS DOUBLE)"
    return _guarded(readable, value, name, "DOUBLE")


def _duckdb_clock(name: str, in_days: bool) -> str:
    micros = f"epoch_us({name})"
    value = (
        f"CAST({micros} // 1000000 AS DOUBLE)"
        f" + CAST({micros} % 1000000 AS DOUBLE) / CAST(1000000 AS DOUBLE)"
    )
    return _guarded(f"{micros} < 86400000000", value, name, "DOUBLE")


def _postgres_decimal(name: str, in_days: bool) -> str:
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


def _postgres_time(name: str, in_days: bool) -> str:
    readable = f"{name} >= DATE '0001-01-01' AND {name} < DATE '10000-01-01'"
    double = "DOUBLE PRECISION"
    if in_days:
        value = f"CAST(CAST({name} AS DATE) - DATE '1970-01-01' AS {double})"
        return _guarded(readable, value, name, double)
    return _guarded(readable, _postgres_seconds(f"CAST({name} AS TIMESTAMP)"), name, double)


def _postgres_seconds(name: str) -> str:
    double = "DOUBLE PRECISION"
    seconds = f"CAST(EXTRACT(EPOCH FROM {name}) AS NUMERIC)"
    whole = f"FLOOR({seconds})"
    rest = f"CAST(ROUND(({seconds} - {whole}) * 1000000) AS {double})"
    return f"CAST({whole} AS {double}) + {rest} / CAST(1000000 AS {double})"


def _postgres_clock(name: str, in_days: bool) -> str:
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
