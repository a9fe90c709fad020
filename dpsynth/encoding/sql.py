"""All coded columns of a schema as expressions on the cells of a table in a warehouse.

Cells as numbers in SQL: missing, bad or a value; gaps between dates; parts of the calendar.

A value is a double: NULL where the cell is missing, infinite where it is bad, and else what
`dpsynth.tables.read_cells` gives, to the last bit.

The codes of numbers, dates and times in SQL: the arithmetic of `Lattice.positions` and `Grid`.

It is the same sequence of operations on doubles, and so has the same results to the last bit. What
could fail in a warehouse is left out before: a value far outside the bounds is moved next to them,
and one that is next to zero becomes zero, which changes no position.

The codes of texts, numbers and truth values that stand for categories, in SQL.

The codec itself is asked for the code of each declared text; all others share the code of an
undeclared one. So nothing of the codec is written twice.

What of a schema cannot be said in SQL exactly, by the names of its columns.

Only the schema and the types that the warehouse declares are looked at, so this comes before any
charge. There is no approximation: a column that SQL would code otherwise is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pandas as pd

from dpsynth.encoding.codec import Codec
from dpsynth.encoding.column_codecs import (
    CategoryCoder,
    Coder,
    NumericCoder,
    coder_of,
    level_values,
)
from dpsynth.encoding.grid import NONE, Grid
from dpsynth.errors import TableError
from dpsynth.schema import Column, Lattice, PrivacyUnit, Schema, part_name
from dpsynth.schema.lattice import MAX_SLACK, ULPS
from dpsynth.schema.relations import SECONDS, Interval
from dpsynth.schema.types import DAY, YEAR
from dpsynth.tables import WarehouseTable, array_of, is_close, missing_words, nearest, read_texts
from dpsynth.tables.cell_values import LAST_BITS, missing_tokens
from dpsynth.tables.warehouse import Stored, cell_in_sql, suits, text_in_sql, trimmed

KEY = "key"
Relation = Any  # an ibis table


def code_name(place: int) -> str:
    """Name the column of codes of a place."""
    return f"c{place}"


def source_in_sql(schema: Schema, table: WarehouseTable) -> str:
    """Return a query for the cells that are read: the key, and numbers and texts by their place."""
    cells = []
    if schema.unit.column is not None:
        cells.append(key_in_sql(schema, table))
    for place, column in enumerate(_read(schema)):
        stored = table.stored[column.name]
        assert stored is not None  # `require_expressible` has seen to that
        cell = cell_in_sql(column, stored, quoted(column.name), table.dialect)
        cells.append(f"{cell} AS v{place}")
    return f"SELECT {', '.join(cells) or '1 AS nothing'} FROM {table.rows_of}"


def key_in_sql(schema: Schema, table: WarehouseTable) -> str:
    """Return expressions for the key of a row: as it is written, and without blanks around it."""
    assert schema.unit.column is not None
    text = text_in_sql(quoted(schema.unit.column), table.dialect)
    return f"{text} AS {KEY}, {trimmed(text, table.dialect)} AS {KEY}_bare"


@dataclass(frozen=True)
class Stages:
    """Named steps of a query, each on the rows of the one before.

    A step is one SELECT, and its expressions are not written out again in the next. PostgreSQL
    would do so by itself, and run out of memory: ``OFFSET 0`` keeps it from that.

    Attributes:
        dialect: of SQL.
        steps: the name and the SQL of each.
        rows: what the last one gives.
    """

    dialect: str
    steps: tuple[tuple[str, str], ...]
    rows: Relation

    def then(self, name: str, rows: Relation) -> Stages:
        """Add a step, by what it gives."""
        return self.then_sql(name, self._compiled(rows), rows.schema())

    def then_sql(self, name: str, query: str, types: Any) -> Stages:
        """Add a step, by its SQL and the types of its columns."""
        fence = " OFFSET 0" if self.dialect == "postgres" else ""
        return Stages(
            self.dialect, (*self.steps, (name, query + fence)), ibis.table(types, name=name)
        )

    def query(self, rows: Relation) -> str:
        """Return the SQL for rows that follow from those of the last step."""
        steps = ", ".join(f"{name} AS ({query})" for name, query in self.steps)
        return f"WITH {steps} SELECT * FROM ({self._compiled(rows)}) AS dpsynth_rows"

    def _compiled(self, rows: Relation) -> str:
        return str(ibis.to_sql(rows, dialect=self.dialect))


def coded(codec: Codec, table: WarehouseTable) -> Stages:
    """Return steps whose rows are codes ``c0``, ``c1``, ... of the codec, and the key.

    The codes are those of `Codec.encode`; a cell that its column refuses has a negative one. Rows
    without a key have NULL for a key.

    Args:
        codec: of a schema that `require_expressible` accepts.
        table: in its warehouse.
    """
    schema = codec.published
    read = _read(schema)
    places = {column.name: place for place, column in enumerate(read)}
    types = {
        f"v{place}": "string" if table.stored[column.name] is Stored.TEXT else "float64"
        for place, column in enumerate(read)
    }
    keys = {KEY: "string", f"{KEY}_bare": "string"} if schema.unit.column is not None else {}
    start = Stages(table.dialect, (), None)
    stages = start.then_sql(
        "dpsynth_cells", source_in_sql(schema, table), keys | types or {"nothing": "int64"}
    )
    cells, key = stages.rows, {KEY: key_of(stages.rows, schema)} if keys else {}
    found = {
        f"v{place}": _value(cells[f"v{place}"], column, table, schema)
        for place, column in enumerate(read)
    }
    stages = stages.then("dpsynth_values", cells.select(**key, **found))
    values = stages.rows
    done: dict[str, Expression] = {}
    lattices: dict[int, NumericCoder] = {}
    numbers: dict[str, Expression] = {}
    parts = {
        part_name(column.name, part): (column, part) for column in read for part in column.calendar
    }
    for place, name in enumerate(codec.names):
        coder = coder_of(codec.schema.modelled[place], schema.dialect.decimal)
        if name in parts:
            column, part = parts[name]
            calendar = calendar_place(values[f"v{places[column.name]}"], column, part)
            missing = whole(fixed_codes(coder)[0])
            done[code_name(place)] = ibis.ifelse(calendar.isnull(), missing, calendar)
            continue
        column = schema.column(name)
        value = values[f"v{places[name]}"]
        if isinstance(coder, NumericCoder):
            lattices[place] = coder
            numbers[f"x{place}"] = _modelled(value, column, schema, places, values)
        else:
            done[code_name(place)] = _category(value, coder, column, table)
    stages = stages.then("dpsynth_numbers", values.select(**_kept(values, key), **done, **numbers))
    return _on_lattices(stages, [*key], lattices, codec)


def _on_lattices(
    stages: Stages, key: list[str], lattices: Mapping[int, NumericCoder], codec: Codec
) -> Stages:
    """Give numbers their codes: steps on the lattice, the nearest position, and its code."""
    rows, names = stages.rows, [code_name(place) for place in range(len(codec.names))]
    others = [name for place, name in enumerate(names) if place not in lattices]
    fixed = {f"f{place}": _fixed(rows[f"x{place}"], coder) for place, coder in lattices.items()}
    steps = {
        f"s{place}": steps_of(rows[f"x{place}"], coder.lattice) for place, coder in lattices.items()
    }
    stages = stages.then(
        "dpsynth_steps", rows.select(**_kept(rows, [*key, *others]), **fixed, **steps)
    )
    rows = stages.rows
    positions = {
        f"p{place}": position_of(rows[f"s{place}"], coder.lattice)
        for place, coder in lattices.items()
    }
    stages = stages.then(
        "dpsynth_points", rows.select(**_kept(rows, [*key, *others, *fixed]), **positions)
    )
    codes = [
        f"CAST({name} AS INTEGER) AS {name}"
        if place not in lattices
        else f"CAST(COALESCE(f{place}, {code_in_sql(f'p{place}', lattices[place].grid)}) "
        f"AS INTEGER) AS {name}"
        for place, name in enumerate(names)
    ]
    query = f"SELECT {', '.join([*key, *codes])} FROM dpsynth_points"
    types = dict.fromkeys(key, "string") | dict.fromkeys(names, "int32")
    return stages.then_sql("dpsynth_coded", query, types)


def _kept(rows: Relation, names: Any) -> dict[str, Expression]:
    return {name: rows[name] for name in names}


def key_of(cells: Relation, schema: Schema) -> Expression:
    """Return the key by which rows are compared, as `dpsynth.tables.unit_keys.normalised` does."""
    unit: PrivacyUnit = schema.unit
    assert unit.column is not None
    tokens = sorted(missing_tokens(schema.column(unit.column)))
    bare, key = cells[f"{KEY}_bare"], cells[KEY]
    if unit.trim:
        key = bare
    if not unit.leading_zeros:
        stripped = key.re_replace("^0+", "")
        key = ibis.ifelse(stripped == "", ibis.literal("0"), stripped)
    return ibis.ifelse(bare.isnull() | bare.isin(tokens), ibis.null("string"), key)


def _value(cell: Expression, column: Column, table: WarehouseTable, schema: Schema) -> Expression:
    stored = table.stored[column.name]
    if stored in (Stored.TEXT, Stored.TRUTH) or stored is None:
        return cell
    return value_of(cell, column, stored, schema.dialect.decimal)


def _modelled(
    value: Expression,
    column: Column,
    schema: Schema,
    places: Mapping[str, int],
    values: Relation,
) -> Expression:
    """Return what a column of numbers is modelled as: its value, or its gap to another date."""
    if column.interval is None:
        return value
    base = schema.column(column.interval.base)
    return gap_of(value, values[f"v{places[base.name]}"], column, base)


def _category(value: Expression, coder: Coder, column: Column, table: WarehouseTable) -> Expression:
    assert isinstance(coder, CategoryCoder)
    stored = table.stored[column.name]
    assert stored is not None
    if stored is Stored.TEXT:
        return code_of_text(value, coder)
    return code_of_number(value, coder, stored)


def _fixed(value: Expression, coder: Coder) -> Expression:
    """Return the code of a missing or bad cell, NULL for one with a value."""
    missing, bad = map(whole, fixed_codes(coder))
    return ibis.cases((value.isnull(), missing), (is_bad(value), bad), else_=ibis.null("int64"))


def _read(schema: Schema) -> tuple[Column, ...]:
    return tuple(c for c in schema.modelled if c.is_read and c.status_of is None)


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


Expression = Any  # an ibis value; ibis builds its classes at run time

LARGEST = 1.7976931348623157e308
WHOLE_FROM = 2.0**53  # every double from here on is whole
WEEK, HOUR = 7, SECONDS["h"]
_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01
_ERA = 146_097  # days of 400 years


def number(value: float) -> Expression:
    """Return a constant as a double, to the last bit: as a text that the warehouse casts.

    A bare 0.1 is a decimal number in SQL.
    """
    return ibis.literal(repr(float(value))).cast("float64")


def whole(value: int) -> Expression:
    """Return a constant as a whole number."""
    return ibis.literal(int(value), type="int64")


def absent() -> Expression:
    """Return what stands for a missing cell."""
    return ibis.null("float64")


def bad() -> Expression:
    """Return what stands for a cell that is none of its column."""
    return ibis.literal("Infinity").cast("float64")


def is_bad(value: Expression) -> Expression:
    """Tell whether a value stands for a bad cell; unknown where it is missing."""
    return value > number(LARGEST)


def tokens_of(column: Column, decimal: str) -> list[float]:
    """Return the numbers that stand for a missing cell of a column."""
    meant = read_texts(array_of(sorted(missing_words(column))), column, decimal)
    return [float(value) for value in np.unique(meant[np.isfinite(meant)])]


def close_to(value: Expression, option: float, *, category: bool = False) -> Expression:
    """Tell whether a value is an option up to the last bits, as `dpsynth.tables.is_close`.

    Args:
        value: to compare.
        option: a number of the schema.
        category: whether it is compared as a category is, by `dpsynth.tables.nearest`.
    """

    def same(other: float) -> bool:
        if category:
            return nearest(other, np.array([option])) is not None
        return bool(is_close(np.array([other]), np.float64(option))[0])

    ends = []
    for side in (-math.inf, math.inf):
        end = option
        while same(float(np.nextafter(end, side))):
            end = float(np.nextafter(end, side))
        ends.append(end)
    return (value >= number(ends[0])) & (value <= number(ends[1]))


def value_of(cell: Expression, column: Column, stored: Stored, decimal: str) -> Expression:
    """Return the value of a cell that its warehouse has made a double of."""
    value = cell
    missing = cell.isnull() | cell.isnan()
    finite = (cell >= number(-LARGEST)) & (cell <= number(LARGEST))
    if column.kind.whole and stored in (Stored.FLOAT, Stored.DECIMAL):
        value = _whole_value(cell, as_written=column.is_categorical)
    branches = [(missing, absent()), (~finite, bad())]
    branches += [
        (close_to(value, token, category=column.is_categorical), absent())
        for token in tokens_of(column, decimal)
    ]
    return ibis.cases(*branches, else_=value)


def _whole_value(cell: Expression, *, as_written: bool) -> Expression:
    """Return the whole number that a cell is up to the last bits; bad where it is none.

    As it is written, the last bits stay: categories are compared with these.
    """
    floor = cell.floor().cast("float64")
    whole_one = floor + ibis.ifelse(cell - floor >= number(0.5), number(1.0), number(0.0))
    is_near = (cell - whole_one).abs() <= number(LAST_BITS) * whole_one.abs()
    large = (cell >= number(WHOLE_FROM)) | (cell <= number(-WHOLE_FROM))
    return ibis.cases((large, cell), (is_near, cell if as_written else whole_one), else_=bad())


def gap_of(own: Expression, other: Expression, column: Column, base: Column) -> Expression:
    """Return the gap between two times of a row, in whole units; as `relations.row_gaps`."""
    interval = column.interval
    assert isinstance(interval, Interval)
    tick = column.kind.seconds
    if base.kind.seconds != tick:
        day = number(DAY)
        shifted = (other / day).floor().cast("float64") if tick == DAY else other * day
        other = ibis.ifelse(is_bad(other), other, shifted)
    first, last = (own, other) if interval.before else (other, own)
    between = last.floor().cast("float64") - first.floor().cast("float64")
    gap = (between / number(interval.length(tick))).floor().cast("float64")
    return ibis.cases(
        (own.isnull() | other.isnull(), absent()), (is_bad(own) | is_bad(other), bad()), else_=gap
    )


def calendar_place(value: Expression, column: Column, part: str) -> Expression:
    """Return the weekday from Monday, the month from January or the hour, from 0; else NULL."""
    moment = value.floor().cast("int64")
    has_days = column.kind.seconds == DAY
    days = moment if has_days else (value / number(DAY)).floor().cast("int64")
    place: Expression
    if part == "hour":
        clock = moment - days * whole(DAY)
        place = _quotient(clock, HOUR)
    elif part == "weekday":  # 1970 began on a Thursday
        place = _rest(days + whole(_MARCH * WEEK + 3), WEEK)
    else:
        place = _month(days)
    return ibis.ifelse(value.isnull() | is_bad(value), ibis.null("int64"), place)


def _month(days: Expression) -> Expression:
    """Return the month of a day of the years from 1 to 9999, from 0 for January.

    Years are counted from March, so that the day that a leap year adds comes last.
    """
    of_era = _rest(days + whole(_MARCH), _ERA)
    leaps = _quotient(of_era, 1_460) - _quotient(of_era, 36_524) + _quotient(of_era, 146_096)
    year = _quotient(of_era - leaps, 365)
    of_year = of_era - (year * whole(365) + _quotient(year, 4) - _quotient(year, 100))
    from_march = _quotient(of_year * whole(5) + whole(2), 153)
    return _rest(from_march + whole(2), 12)


def _quotient(dividend: Expression, divisor: int) -> Expression:
    """Divide a whole number from 0, far below 2^53, without rest."""
    return (dividend.cast("float64") / number(divisor)).floor().cast("int64")


def _rest(dividend: Expression, divisor: int) -> Expression:
    return dividend - _quotient(dividend, divisor) * whole(divisor)


TINY = 1e-200  # nearer to zero, a warehouse may refuse to divide


def steps_of(value: Expression, lattice: Lattice) -> Expression:
    """Return how many steps a value lies above the first point, between the first and the last."""
    scale = float(10**lattice.decimals)
    first, stride, last = float(lattice.first), float(lattice.stride), float(lattice.points - 1)
    low, high = _beyond(lattice)
    value = ibis.cases(
        (value <= number(low), number(low)),
        (value >= number(high), number(high)),
        ((value < number(TINY)) & (value > number(-TINY)), number(0.0)),
        else_=value,
    )
    steps = (value * number(scale) - number(first)) / number(stride)
    return ibis.cases(
        (steps <= number(0.0), number(0.0)), (steps >= number(last), number(last)), else_=steps
    )


def position_of(steps: Expression, lattice: Lattice) -> Expression:
    """Return the nearest position; what is in the middle up to the last bits goes to the even."""
    first, stride = float(lattice.first), float(lattice.stride)
    floor = steps.floor().cast("int64")
    part = steps - floor.cast("float64")
    point = (number(first) + steps * number(stride)).abs()
    size = ibis.ifelse(point >= number(abs(first)), point, number(abs(first)))
    slack = number(ULPS) * size / number(stride)
    off = (part - number(0.5)).abs()
    in_middle = (off <= slack) & (off <= number(MAX_SLACK))
    above = ibis.ifelse(part > number(0.5), whole(1), whole(0))
    return floor + ibis.ifelse(in_middle, floor % whole(2), above)


def code_in_sql(position: str, grid: Grid) -> str:
    """Return the code of a position, as SQL that all warehouses read alike.

    Args:
        position: the name of a column of whole numbers.
        grid: that says which positions share a code.
    """
    if grid.codes == grid.edges[-1]:
        return position
    edges, firsts, rounds = grid.edges.tolist(), grid.first.tolist(), grid.round.tolist()

    def code(span: int) -> str:
        if rounds[span] == NONE:
            return str(firsts[span])
        alone, others = firsts[span], firsts[span] + 1
        return f"CASE WHEN {position} = {rounds[span]} THEN {alone} ELSE {others} END"

    return by_bisection(position, edges[:-1], code)


def by_bisection(value: str, starts: Sequence[int], leaf: Callable[[int], str]) -> str:
    """Return SQL for what the stretch of a whole number gives.

    Args:
        value: the name of a column, from the first start on.
        starts: first value of each stretch, ascending.
        leaf: gives the SQL of a stretch, by its place.
    """

    def between(first: int, end: int) -> str:
        if end - first == 1:
            return leaf(first)
        middle = (first + end) // 2
        low, high = between(first, middle), between(middle, end)
        return f"CASE WHEN {value} < {starts[middle]} THEN {low} ELSE {high} END"

    return between(0, len(starts))


def _beyond(lattice: Lattice) -> tuple[float, float]:
    """Return values below the first point and above the last one; to clip to them is harmless."""
    ends = lattice.values(np.array([-2, lattice.points + 1]))
    scale = float(10**lattice.decimals)
    steps = (ends * scale - lattice.first) / lattice.stride
    assert steps[0] <= 0 and steps[1] >= lattice.points - 1
    return float(ends[0]), float(ends[1])


UNDECLARED = "\x01 is no text of a schema"


def code_of_text(text: Expression, coder: CategoryCoder) -> Expression:
    """Return the code of a trimmed text."""
    column = coder.column
    texts = {*missing_words(column), *column.levels, *column.forms.reason_texts}
    texts |= {word for word, _ in column.forms.values}
    if column.kind.is_truth:
        texts |= {*column.true_values, *column.false_values}
    listed = sorted({word.strip() for word in texts})
    by_code: dict[int, list[str]] = {}
    unknown = _code(coder, UNDECLARED)
    for word, code in zip(listed, _codes(coder, listed), strict=True):
        if code != unknown:
            by_code.setdefault(code, []).append(word)
    branches = [(text.isin(words), whole(code)) for code, words in sorted(by_code.items())]
    branches = [(text.isnull(), whole(_code(coder, None))), *branches]
    return ibis.cases(*branches, else_=whole(unknown))


def code_of_number(value: Expression, coder: CategoryCoder, stored: Stored) -> Expression:
    """Return the code of a cell that is a number or a truth value.

    Args:
        value: as `values.value_of` gives it: NULL if missing, infinite if bad.
        coder: of the column.
        stored: how its warehouse stores it.
    """
    missing, bad = fixed_codes(coder)
    branches = [(value.isnull(), whole(missing)), (is_bad(value), whole(bad))]
    if coder.column.kind.is_truth:
        words = ("false", "true") if stored is Stored.TRUTH else ("0", "1")
        options = list(zip((0.0, 1.0), _codes(coder, words), strict=True))
        others = bad
    else:
        levels = level_values(coder.column).tolist()
        options = [(level, place) for place, level in enumerate(levels)]
        others = _undeclared_number(coder, levels)
    branches += [(close_to(value, option, category=True), whole(code)) for option, code in options]
    return ibis.cases(*branches, else_=whole(others))


def _undeclared_number(coder: CategoryCoder, levels: list[float]) -> int:
    """Return the code of a number that is neither a category nor a token of a missing cell."""
    taken = {*levels, *(value for value in _numbers(missing_words(coder.column)))}
    free = next(value for value in range(1, len(taken) + 2) if float(value) not in taken)
    return _code(coder, str(free))


def _numbers(texts: Iterable[str]) -> Iterable[float]:
    for text in texts:
        try:
            yield float(text.replace(",", "."))
        except ValueError:
            continue


def fixed_codes(coder: Coder) -> tuple[int, int]:
    """Return the codes of a missing cell and of one that cannot be read."""
    missing, bad = _codes(coder, (None, UNDECLARED))
    return missing, bad


def _code(coder: Coder, text: str | None) -> int:
    return _codes(coder, (text,))[0]


def _codes(coder: Coder, texts: Iterable[str | None]) -> list[int]:
    return [int(code) for code in coder.encode(pd.Series([*texts], dtype=object))]


_REMEDY = "leave out --in-warehouse, and dpsynth reads the rows"


def require_expressible(schema: Schema, table: WarehouseTable) -> None:
    """Refuse a table of which a column cannot be coded in its warehouse.

    Args:
        schema: of the table.
        table: in its warehouse.

    Raises:
        TableError: it names every such column, why, and what to do.

    Example:
        A column of numbers that is stored as text::

            column 'weight' is stored as text and its type is number, ...
    """
    reasons = [*_of_unit(schema, table)]
    for column in schema.modelled:
        reason = refusal_of(column, schema, table)
        if reason is not None:
            reasons.append(f"column '{column.name}' {reason}")
    if reasons:
        raise TableError(
            f"{table.place}: the rows cannot stay in the warehouse: {'; '.join(reasons)}; {_REMEDY}"
        )


def require_keys(schema: Schema, table: WarehouseTable) -> None:
    """Refuse a table whose keys SQL compares otherwise than dpsynth does.

    Raises:
        TableError: with the reason, and what to do.
    """
    for reason in _of_unit(schema, table):
        raise TableError(f"{table.place} cannot be checked in the warehouse: {reason}; {_REMEDY}")


def refusal_of(column: Column, schema: Schema, table: WarehouseTable) -> str | None:
    """Say why a modelled column cannot be coded in SQL; None if it can."""
    if column.is_computed:
        return None  # from drawn rows
    if column.status_of is not None:
        return "is the status of another column, which only dpsynth reads"
    reason = _declared(column)
    if reason is not None:
        return reason
    stored = table.stored.get(column.name)
    if stored is None:
        return "is stored with a type that dpsynth does not read in SQL; cast it in a view"
    if not suits(column, stored):
        return (
            f"is stored as {stored} and its type is {column.type}, so SQL could read other values "
            "from its texts; cast it in a view"
        )
    if column.is_categorical and column.kind.is_point:
        return "has dates or times as categories"
    return _of_tokens(column, schema)


def _declared(column: Column) -> str | None:
    """Say which declaration of a column only dpsynth reads."""
    forms = column.forms
    found = {
        "holds several codes in a cell": column.several is not None,
        "declares discover, which needs the codes of each row": column.discovery is not None,
        "rolls codes up": column.codes is not None,
        f"is of type {column.type}": not any(suits(column, stored) for stored in Stored),
        "is a gap above other columns": column.floor is not None,
        "declares present_if": column.present_if is not None,
        "counts completed years": column.interval is not None and column.interval.unit == YEAR,
        "ignores case, and SQL folds letters otherwise": not forms.case,
        "declares a value map": bool(forms.values) and not column.kind.is_text,
        "has limits of detection": forms.is_censored,
        "declares reasons of missing cells": bool(forms.reasons) and not column.kind.is_text,
        "takes its unit from another column": forms.unit is not None,
        "declares a groupChar": bool(forms.thousands),
        "declares a format": column.format is not None or bool(forms.formats),
    }
    return next((reason for reason, holds in found.items() if holds), None)


def _of_tokens(column: Column, schema: Schema) -> str | None:
    if not (column.kind.is_number or column.kind.is_truth) or column.kind.has_decimals:
        return None
    for token in tokens_of(column, schema.dialect.decimal):
        if token != int(token) or abs(token) >= 2**50:
            return "has a missing value that is no whole number, or a very large one"
    return None


def _of_unit(schema: Schema, table: WarehouseTable) -> Iterator[str]:
    unit = schema.unit
    if unit.keep != "random":
        yield "the unit keeps a window of rows in time, and not random ones"
    if unit.column is None:
        return
    if unit.case:
        yield f"keys in column '{unit.column}' ignore case, and SQL folds letters otherwise"
    if table.stored.get(unit.column) not in (Stored.TEXT, Stored.WHOLE):  # both have one text
        yield f"the key of the unit, column '{unit.column}', is not stored as text or whole numbers"
