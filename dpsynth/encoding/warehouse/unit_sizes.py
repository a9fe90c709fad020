"""How the rows of a table in a warehouse form units, and which of them repeat another one.

Keys are compared as `dpsynth.tables.unit_keys` compares them, and stay where they are: what comes
over the connection are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ibis

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.warehouse.coding import KEY, Relation, Stages, key_in_sql, key_of, quoted
from dpsynth.schema import Schema
from dpsynth.tables import WarehouseTable
from dpsynth.tables.warehouse import Stored, text_in_sql, trimmed

ORDER = "place_in_order"


@dataclass(frozen=True, repr=False)
class UnitSizes:
    """Exact counts of rows and units; private.

    Attributes:
        rows: of the table.
        keyless: rows without a key.
        units: by how many rows a unit has, how many units have so many.
        whole: rows that repeat another one of their unit in every column, and of how many.
        ordered: rows that repeat another one's place in the order, and of how many.
    """

    rows: int
    keyless: int = 0
    units: Mapping[int, int] = field(default_factory=dict)
    whole: tuple[int, int] = (0, 0)
    ordered: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "rows and units of a table in a warehouse")


def unit_sizes(table: WarehouseTable, schema: Schema, columns: Sequence[str]) -> UnitSizes:
    """Count rows and units.

    Args:
        table: in its warehouse.
        schema: of the table; its key is one that `require_keys` accepts.
        columns: by which whole rows are compared.

    Raises:
        TableError: the warehouse refuses.
    """
    if schema.unit.column is None:
        with table.session() as session:
            [[(rows,)]] = session.asked([f"SELECT COUNT(*) FROM {table.rows_of}"])
        return UnitSizes(int(rows))
    stages = _keyed(table, schema, columns)
    rows, keyed = stages.rows, stages.rows.filter(stages.rows[KEY].notnull())
    own = keyed.group_by(keyed[KEY]).aggregate(n=keyed.count())
    queries = [
        rows.aggregate(rows=rows.count(), keyless=rows[KEY].isnull().sum()),
        own.group_by(own.n).aggregate(units=own.count()),
        _repeated(keyed, [f"v{place}" for place in range(len(columns))]),
    ]
    if schema.order_column is not None:
        placed = keyed.filter(keyed[ORDER].notnull() & (keyed[ORDER] != ""))
        queries.append(_repeated(placed, [KEY, ORDER]))
    with table.session() as session:
        [total], units, *again = session.asked([stages.query(query) for query in queries])
    sizes = {int(rows): int(number) for rows, number in units}
    pairs = [(int(one or 0), int(every or 0)) for [(one, every)] in again]
    return UnitSizes(int(total[0]), int(total[1] or 0), sizes, *pairs)


def _keyed(table: WarehouseTable, schema: Schema, columns: Sequence[str]) -> Stages:
    """Return rows with their key as it is compared, and their cells."""
    cells = [key_in_sql(schema, table)]
    for place, name in enumerate(columns):
        cell = quoted(name)
        if table.stored.get(name) is Stored.TEXT:
            cell = f"COALESCE({text_in_sql(cell, table.dialect)}, '')"
        cells.append(f"{cell} AS v{place}")
    kept = [f"v{place}" for place in range(len(columns))]
    if schema.order_column is not None:
        text = text_in_sql(quoted(schema.order_column), table.dialect)
        cells.append(f"{trimmed(text, table.dialect)} AS {ORDER}")
        kept.append(ORDER)
    types = dict.fromkeys([KEY, f"{KEY}_bare", *kept], "string")  # cells are compared, not read
    start = Stages(table.dialect, (), None)
    query = f"SELECT {', '.join(cells)} FROM {table.rows_of}"
    stages = start.then_sql("dpsynth_cells", query, types)
    rows = stages.rows
    named = {name: rows[name] for name in kept}
    return stages.then("dpsynth_keyed", rows.select(**{KEY: key_of(rows, schema)}, **named))


def _repeated(rows: Relation, names: Sequence[str]) -> Relation:
    """Count rows that repeat another one in some columns, and all of them."""
    groups = rows.group_by([rows[name] for name in names]).aggregate(n=rows.count())
    return groups.aggregate(again=(groups.n - ibis.literal(1)).sum(), every=groups.n.sum())
