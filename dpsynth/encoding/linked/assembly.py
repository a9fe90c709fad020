"""The rows of a child table put to their patients: days in the window, in order, and capped.

Everything here is done within a patient. A day is moved into the window, and up to the end of the
patient's own follow-up. Rows are ordered by time, then by the declared order, then by their codes:
never by their place in the file, which depends on who wrote other rows and when. Rows that are
equal in all of these are the same row. Of a patient with more rows than the cap, a random subset or
a window from a random start is kept, by fresh randomness; the first rows would tell of themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.encoding.cohort import select
from dpsynth.encoding.linked.codec import ChildCodec, HistoryCodec
from dpsynth.encoding.linked.histories import NEVER, SeriesRows
from dpsynth.encoding.linked.patients import SECONDS, Patients, is_in_seconds
from dpsynth.encoding.linked.rows import ChildRows

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class PlacedRows:
    """Rows that have a patient, a day, and a test or event that is declared; in order.

    Attributes:
        patients: the patient of each row, ascending.
        named: which test or event it is about.
        days: within the window and follow-up; 0 without time.
        values: codes, ``[rows, values]``.
        keyless, strangers, undeclared, timeless, early, late: how many rows of the table had no
            key, no patient, an undeclared test, no time; and how many were moved to the first day,
            or to the last one. All of them are private.
    """

    patients: Ints
    named: Ints
    days: Ints
    values: Codes
    keyless: int
    strangers: int
    undeclared: int
    timeless: int
    early: int
    late: int


def place_rows(
    rows: ChildRows, codec: ChildCodec, patients: Patients, whole: HistoryCodec
) -> PlacedRows:
    """Put rows to their patients, in order."""
    owners = patients.of_rows(rows.units, rows.keys)
    declared = np.ones(len(owners), dtype=bool)
    if codec.naming is not None:
        declared = rows.named < len(codec.names)
    days = _days(rows, codec, patients, owners)
    timed = np.isfinite(days)
    at = np.flatnonzero((owners >= 0) & declared & timed & rows.accepted)
    keys = [rows.values[at, column] for column in reversed(range(rows.values.shape[1]))]
    at = at[np.lexsort([*keys, rows.named[at], rows.ranks[at], rows.times[at], owners[at]])]
    owner, day = owners[at], days[at]
    ends = np.minimum(patients.ends[owner], whole.last)
    if codec.child.time is None:
        bounded = np.zeros(len(at), dtype=np.int64)
        early = late = 0
    else:
        bounded = np.clip(day, whole.first, ends).astype(np.int64)
        early, late = int((day < whole.first).sum()), int((day > ends).sum())
    return PlacedRows(
        owner,
        rows.named[at],
        bounded,
        rows.values[at],
        keyless=int((rows.units < 0).sum()),
        strangers=int(((owners < 0) & (rows.units >= 0)).sum()),
        undeclared=int((~declared & (owners >= 0)).sum()),
        timeless=int((~timed & declared & (owners >= 0)).sum()),
        early=early,
        late=late,
    )


def capped_series(
    placed: PlacedRows, codec: ChildCodec, entropy: Entropy
) -> tuple[SeriesRows, ...]:
    """Keep at most ``max_rows`` rows of a patient in each series of a table."""
    unit = codec.child.schema.unit
    found = []
    for number in range(len(codec.series)):
        mine = np.flatnonzero(placed.named == number)
        order = np.arange(len(mine)) if unit.keep == "window" else None
        kept, _ = select(placed.patients[mine], unit.max_rows, entropy, order=order)
        mine = mine[np.sort(kept)]
        found.append(SeriesRows(placed.patients[mine], placed.days[mine], placed.values[mine]))
    return tuple(found)


def first_days(placed: PlacedRows, codec: ChildCodec, patients: int) -> Ints:
    """Return the first day of each event of each patient, ``[patients, events]``."""
    onsets = np.full((patients, len(codec.names)), np.iinfo(np.int64).max)
    np.minimum.at(onsets, (placed.patients, placed.named), placed.days)
    return np.where(onsets == np.iinfo(np.int64).max, NEVER, onsets)


def _days(
    rows: ChildRows, codec: ChildCodec, patients: Patients, owners: Ints
) -> npt.NDArray[np.float64]:
    """Return whole days since each patient's origin; NaN where there is none."""
    child = codec.child
    if child.time is None or child.origin is None:
        return rows.times
    days = rows.times
    if is_in_seconds(child.schema.column(child.time)):
        days = np.floor(days / SECONDS)
    origins = np.append(patients.origins, np.nan)  # the last one is nobody's
    return np.asarray(days - origins[owners])
