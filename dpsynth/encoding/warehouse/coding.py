"""All coded columns of a schema as expressions on the cells of a table in a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis

from dpsynth.encoding.codec import Codec
from dpsynth.encoding.column_codecs import CategoryCoder, Coder, NumericCoder, coder_of
from dpsynth.encoding.warehouse.categories import (
    code_of_number,
    code_of_text,
    fixed_codes,
)
from dpsynth.encoding.warehouse.lattices import code_in_sql, position_of, steps_of
from dpsynth.encoding.warehouse.values import (
    Expression,
    calendar_place,
    gap_of,
    is_bad,
    value_of,
    whole,
)
from dpsynth.schema import Column, PrivacyUnit, Schema, part_name
from dpsynth.tables import WarehouseTable
from dpsynth.tables.cell_values import missing_tokens
from dpsynth.tables.warehouse import Stored, cell_in_sql, text_in_sql, trimmed

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
