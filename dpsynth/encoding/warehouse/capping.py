"""At most ``max_rows`` rows of each unit, chosen once, as a temporary table of codes.

This is where one unit's influence is bounded when rows stay in their warehouse, as `cohort` bounds
it elsewhere. Each row draws a random number; of a unit's rows those with the least are kept. They
are kept once: all counts are of one temporary table, which holds the codes of each row and how many
rows its unit has, and no key. Were the rows drawn anew for each query, a unit could enter one
histogram with some rows and the next with others; each count would be bounded, but they would be
of no table, and pairs would not fit their columns.

**Sensitivity.** A row's codes are a function of its own cells. Which rows of a unit are kept, and
how many they are, depends on the unit's own rows and on fresh random numbers. So a unit that comes
or goes changes its own rows of the temporary table and no others, at most ``max_rows`` of them,
which is what the events of a plan account for. Rows without a key are left out, or are a unit each;
they are never one unit together.

**Assumption.** The warehouse's ``random()`` draws independent numbers. They decide which rows of a
unit count, and pay for nothing: the noise comes from the source of the fit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import ibis

from dpsynth.encoding.codec import Codec
from dpsynth.encoding.warehouse.coding import KEY, Relation, Stages, code_name, coded
from dpsynth.encoding.warehouse.counting import ROWS, UNIT, WarehouseRows
from dpsynth.encoding.warehouse.refusals import require_expressible
from dpsynth.errors import NoRowsError, RefusedCellError, TableError
from dpsynth.schema import PrivacyUnit
from dpsynth.schema.column import REFUSE
from dpsynth.tables import WarehouseTable

DRAW, NUMBER = "draw", "number"


@contextmanager
def counted_rows(
    table: WarehouseTable, codec: Codec, *, numbered: bool = False
) -> Iterator[WarehouseRows]:
    """Code and cap the rows of a table where they are, for as long as the block lasts.

    Args:
        table: in its warehouse.
        codec: of its schema.
        numbered: whether units have a number in the temporary table, for `WarehouseRows.patterns`.
            It is that of one of their rows, in no order, and not made of the key.

    Yields:
        Rows that can be counted. They are in a temporary table, which is dropped at the end; a
        connection that breaks drops it too.

    Raises:
        TableError: a column cannot be coded there; there are no rows, or none has a key; or the
            warehouse refuses.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.

    Example:
        >>> with counted_rows(table, codec) as rows:  # doctest: +SKIP
        ...     counts = joint_histograms(rows, codec.sizes, event, entropy)
    """
    schema = codec.published
    require_expressible(schema, table)
    stages = drawn(coded(codec, table))
    rows, names = stages.rows, [code_name(place) for place in range(len(codec.names))]
    refusing = [
        place
        for place, column in enumerate(codec.schema.modelled)
        if REFUSE in (column.on_bad, column.on_unknown)
    ]
    name = f"dpsynth_{secrets.token_hex(8)}"
    kept = [*names, ROWS, *([UNIT] if numbered else [])]
    fill = stages.query(capped(rows, schema.unit, names).select(kept))
    ask = stages.query(found(rows, schema.unit, refusing))
    with table.session() as session:
        ((some, keyed, *refused),) = session.fill(name, kept, fill, [ask])
        try:
            broken = [
                codec.names[place] for place, one in zip(refusing, refused, strict=True) if one
            ]
            _check(table, schema.unit, some=some, keyed=keyed, refused=broken)
            yield WarehouseRows.of(session, table.dialect, name, schema.unit.max_rows, codec.sizes)
        finally:
            with suppress(TableError):  # of a connection that broke, nothing is left
                session.drop(name)


def drawn(stages: Stages) -> Stages:
    """Give each row a random number, and one of its own, once."""
    rows = stages.rows
    number = ibis.row_number().over(ibis.window())
    return stages.then("dpsynth_drawn", rows.mutate(**{DRAW: ibis.random(), NUMBER: number}))


def capped(rows: Relation, unit: PrivacyUnit, codes: list[str]) -> Relation:
    """Return at most ``max_rows`` coded rows of each unit, how many are kept, and its number.

    Args:
        rows: coded, with the key of each, and what `drawn` gives.
        unit: how many rows of one are kept, and what a row without a key is.
        codes: the names of the columns of codes.
    """
    kept = {name: rows[name] for name in codes}
    if unit.column is None:
        one = ibis.literal(1, type="int32")
        return rows.select(**kept, **{ROWS: one, UNIT: rows[NUMBER]})
    key = rows[KEY]
    if unit.missing_key != "own":
        rows = rows.filter(key.notnull())
        kept, key = {name: rows[name] for name in codes}, rows[KEY]
    alone = key.isnull()  # NULL is no key that rows share
    of_unit = ibis.window(group_by=key)
    in_turn = ibis.window(group_by=key, order_by=rows[DRAW])
    ranked = rows.select(
        **kept,
        turn=ibis.ifelse(alone, 0, ibis.row_number().over(in_turn)),
        all_rows=ibis.ifelse(alone, 1, rows.count().over(of_unit)),
        **{UNIT: ibis.ifelse(alone, rows[NUMBER], rows[NUMBER].min().over(of_unit))},
    )
    most = ibis.literal(unit.max_rows, type="int64")
    ranked = ranked.filter(ranked.turn < most)
    own = ibis.ifelse(ranked.all_rows < most, ranked.all_rows, most).cast("int32")
    return ranked.select(
        **{name: ranked[name] for name in codes}, **{ROWS: own, UNIT: ranked[UNIT]}
    )


def found(rows: Relation, unit: PrivacyUnit, refusing: list[int]) -> Relation:
    """Ask whether there are rows, whether any has a key, and which columns refuse a cell."""
    keyed = rows.count() if unit.column is None else rows[KEY].count()
    refused = {f"r{place}": (rows[code_name(place)] < 0).sum() for place in refusing}
    return rows.aggregate(some=rows.count(), keyed=keyed, **refused)


def _check(
    table: WarehouseTable, unit: PrivacyUnit, *, some: int, keyed: int | None, refused: list[str]
) -> None:
    """Stop as `read_cohort` stops: without rows, without keys, or by a cell that is refused."""
    if not some:
        raise NoRowsError(f"{table.place} has a header but no rows")
    if refused:
        raise RefusedCellError(
            f"column '{refused[0]}' declares `refuse`, and a cell is not what it declares; correct "
            "the table, or send such cells to missing, a bound or a category by on_bad and "
            "on_unknown"
        )
    if not keyed and unit.missing_key != "own":
        raise TableError(
            f"no row has a key in column '{unit.column}'; correct the table, the column's "
            "missingValues, or which column has the role unit"
        )
