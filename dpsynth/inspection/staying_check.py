"""The check of a table that stays in its warehouse: the same figures, from different cells.

The cells of a column are judged one by one, so it is enough to know which ones there are, and how
often. A column whose cells are judged beside others, such as a date that is counted from another
one, comes with them; so do the columns of a rule. Units and repeated rows are counted there. What
comes over the connection are cells of single columns, without the key and without their rows. They
are of real patients, as the file of ``--show-values`` is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.dependencies import need
from dpsynth.errors import NoRowsError
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.findings import DUPLICATES, REPEATED
from dpsynth.inspection.row_check import RowCheck, RowFacts
from dpsynth.inspection.table_check import TableReading, opened
from dpsynth.schema import Column, Schema, part_name
from dpsynth.tables import Progress, Source, needed_columns

Ints = npt.NDArray[np.int64]


class Distinct(Protocol):
    """A table that says which different rows some of its columns have."""

    def distinct(self, names: Sequence[str]) -> Iterator[tuple[pd.DataFrame, Ints]]:
        """Yield them in chunks, with how often each is there."""


def check_staying(source: Source, schema: Schema, progress: Progress | None) -> CheckResult:
    """Compare a table with its schema where it is, in DuckDB or PostgreSQL: see `check`.

    It finds what a check that reads finds, from as many columns at a time as are judged together.

    Raises:
        TableError: it is in no such database, cannot be read, or has no rows; its keys are such as
            SQL compares otherwise; or it is not the table that the schema describes.
    """
    need("ibis")
    from dpsynth.encoding import require_keys, unit_sizes
    from dpsynth.tables import warehouse_table

    needed = {*needed_columns(schema), schema.order_column}
    names = [column.name for column in schema.columns if column.name in needed]
    table = opened(source, schema)
    warehouse = warehouse_table(table)
    require_keys(schema, warehouse)
    cells = cast(Distinct, table)
    sizes = unit_sizes(warehouse, schema, names)
    if not sizes.rows:
        raise NoRowsError(f"{warehouse.place} has a header but no rows")
    reading, rules = TableReading(schema), RowCheck(schema)
    reading.begin(table)
    parts = len(reading.columns) + len(schema.rules)
    for done, name in enumerate(reading.columns):
        for chunk, numbers in cells.distinct(_beside(schema, [name])):
            reading.add_cells(_widened(chunk, names), [name], numbers)
        if progress is not None:
            progress((done + 1) / parts)
    judge = TableReading(schema)  # whose own counts are not looked at
    for place, rule in enumerate(schema.rules):
        if set(rule.columns) <= set(judge.columns):
            for chunk, numbers in cells.distinct(_beside(schema, rule.columns)):
                wide = _widened(chunk, names)
                kinds = judge.add_cells(wide, rule.columns, numbers)
                rules.add_rules(wide, kinds, judge.columns, [place], numbers)
        if progress is not None:
            progress((len(reading.columns) + place + 1) / parts)
    for name in reading.in_rows.names:
        beside = [c.name for c in schema.columns if c.name in reading.in_rows.beside(name)]
        for chunk, numbers in cells.distinct(beside):
            reading.in_rows.add(_widened(chunk, [*names, name]), [name], numbers)
    again = {DUPLICATES: sizes.whole, REPEATED: sizes.ordered}
    counts = rules.judged, rules.broken
    return reading.found(RowFacts(schema, sizes.rows, sizes.keyless, sizes.units, *counts, again))


def _beside(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return the columns of the table that are looked at where cells of some columns are judged."""
    parts = {part_name(one.name, part): one for one in schema.modelled for part in one.calendar}
    found: dict[str, None] = {}
    for name in names:
        column = parts.get(name) or schema.column(name)
        found |= dict.fromkeys(_looked_at(column))
    return list(found)


def _looked_at(column: Column) -> list[str]:
    unit = column.forms.unit
    base = [] if column.interval is None else [column.interval.base]
    return [column.name, *base, *([] if unit is None else [unit.column])]


def _widened(chunk: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a chunk with all columns that a fit reads; those that were not asked are empty."""
    empty: pd.Series[str] = pd.Series([None] * len(chunk), dtype=object)
    return pd.DataFrame({name: chunk[name] if name in chunk else empty for name in names})
