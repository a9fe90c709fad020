"""The rows of a child table, coded one by one: each is a function of its own cells.

A row of a long table is coded by the test that it names, so only that test's column looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.chunks.coded import Refused, order_of
from dpsynth.encoding.cohort import ranks_of
from dpsynth.encoding.column_codecs import REFUSED
from dpsynth.encoding.linked.codec import ChildCodec
from dpsynth.errors import NoRowsError, RefusedCellError
from dpsynth.tables import Keys, read_cells

if TYPE_CHECKING:
    from dpsynth.tables import Progress, Table

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class ChildRows:
    """The rows of a table, as they come.

    Attributes:
        units: the number of each row's key, `NO_KEY` without one.
        keys: the keys, by number.
        named: which test or event a row is about, by code; 0 in a wide table. A code beyond the
            last one means none that is declared.
        values: codes of the values of a row, ``[rows, values]``.
        times: in the unit of the column, NaN where missing or bad; zeros without a time.
        ranks: of the column that orders rows; zeros without one.
        accepted: whether no cell is refused.
    """

    units: Ints
    keys: Keys
    named: Ints
    values: Codes
    times: Floats
    ranks: Ints
    accepted: Bools


def read_rows(
    table: Table, codec: ChildCodec, refused: Refused, progress: Progress | None
) -> ChildRows:
    """Read a child table; one without rows is empty.

    Raises:
        TableError: the table is damaged. RefusedCellError: a cell broke a column that opts in to
            ``refuse``, and such rows stop.
    """
    child = codec.child
    keys, width = Keys(child.schema), len(codec.others) + bool(codec.tests)
    units, named = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    values, times = [np.empty((0, width), dtype=np.uint16)], [np.empty(0)]
    accepted: list[Bools] = [np.empty(0, dtype=bool)]
    order: list[Any] = []
    try:
        for chunk in table.chunks(progress):
            tests, codes, sound = _coded(chunk, codec)
            if refused == "stop" and not sound.all():
                raise _refusal(chunk, codec)
            units.append(keys.units(chunk))
            named.append(tests)
            values.append(codes)
            accepted.append(sound)
            times.append(_times(chunk, codec))
            if child.order is not None:
                column = child.schema.column(child.order)
                order.append(order_of(chunk[child.order], column, child.schema.dialect))
    except NoRowsError:
        pass
    unit_of_row = np.concatenate(units)
    ranks = ranks_of(np.concatenate(order)) if order else np.zeros(len(unit_of_row), dtype=np.int64)
    return ChildRows(
        unit_of_row,
        keys,
        np.concatenate(named),
        np.concatenate(values),
        np.concatenate(times),
        ranks,
        np.concatenate(accepted),
    )


def _coded(chunk: pd.DataFrame, codec: ChildCodec) -> tuple[Ints, Codes, Bools]:
    """Return what each row is about, the codes of its values, and whether none is refused."""
    coded, sound = codec.codec.accepted(chunk)
    place, others = codec.naming, list(codec.others)
    named = np.zeros(len(chunk), dtype=np.int64)
    if place is not None:
        named = coded[:, place].astype(np.int64)
    if not codec.tests:
        return named, coded[:, others], sound
    assert codec.child.series is not None
    cells = chunk[codec.child.series.value]
    first = np.zeros(len(chunk), dtype=np.int32)
    for code, coder in enumerate(codec.tests):
        rows = np.flatnonzero((named == code) & sound)
        if len(rows):
            first[rows] = coder.encode(cells.iloc[rows])
    sound &= first != REFUSED
    first[~sound] = 0
    return named, np.column_stack([first.astype(np.uint16), coded[:, others]]), sound


def _refusal(chunk: pd.DataFrame, codec: ChildCodec) -> RefusedCellError:
    """Word the error for a chunk with a cell that its column, or its test, refuses."""
    place = f"table {codec.child.name}"
    try:
        codec.codec.encode(chunk)
    except RefusedCellError as error:
        return RefusedCellError(f"{place}: {error}")
    return RefusedCellError(
        f"{place}: a test declares `refuse`, and a value in column "
        f"'{codec.child.series and codec.child.series.value}' is not what it declares; correct the "
        "table, or send such values to missing, a bound or a category by on_bad and on_unknown"
    )


def _times(chunk: pd.DataFrame, codec: ChildCodec) -> Floats:
    child = codec.child
    if child.time is None:
        return np.zeros(len(chunk))
    column = child.schema.column(child.time)
    values, missing = read_cells(chunk[child.time], column, child.schema.dialect.decimal)
    return np.where(missing | ~np.isfinite(values), np.nan, values)
