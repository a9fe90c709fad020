"""The calendar of rows of histories: weekday, month and hour, coded beside a row and put back.

**Sensitivity.** A part of the calendar is a function of the time of its own row, so it is a value
of the row like any other, and a patient moves the codes of nobody else.

**Back.** A drawn row moves to the nearest day with its drawn parts, within the window and the
follow-up, and never past another row of its patient: rows of one day stay together, and later ones
stay later. This reads what a generator drew, and so is post-processing (Dwork and Roth, The
Algorithmic Foundations of Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.relations import HOUR, calendar_part, nearest_days, place_of
from dpsynth.schema import ChildTable, Column, part_name
from dpsynth.schema.coded import calendar_columns

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
HALF_YEAR = 184  # days; how far a row moves to its month at most


def part_columns(child: ChildTable) -> tuple[Column, ...]:
    """Return the columns of the parts of the calendar that the time of a table keeps.

    None of them is ever missing: a row without a time is left out.
    """
    if child.time is None:
        return ()
    return tuple(calendar_columns(replace(child.schema.column(child.time), required=True)))


def with_parts(chunk: pd.DataFrame, child: ChildTable) -> pd.DataFrame:
    """Return the cells of a table with a column for each part, from the time of the same row."""
    if not child.calendar or child.time is None:
        return chunk
    column, decimal = child.schema.column(child.time), child.schema.dialect.decimal
    parts = {
        part_name(child.time, part): calendar_part(chunk, column, part, decimal)
        for part in child.calendar
    }
    return chunk.reset_index(drop=True).assign(**parts)


def with_calendar_of(values: Codes, days: Ints, child: ChildTable) -> Codes:
    """Return the codes of rows with the weekday and month of other days since 1970-01-01."""
    values = values.copy()
    for place, part in enumerate(child.calendar, values.shape[1] - len(child.calendar)):
        if part != "hour":
            values[:, place] = place_of(days, part)
    return values


@dataclass(frozen=True, eq=False)
class RowLimits:
    """Where rows may lie: days since 1970-01-01, of each row.

    Attributes:
        first, last: day of the window, and of the patient's follow-up, ``[rows]``.
        longest: days between two rows of a patient at most.
    """

    first: Ints
    last: Ints
    longest: int


def moved_days(patients: Ints, days: Ints, wanted: Mapping[str, Ints], limits: RowLimits) -> Ints:
    """Move each row to the nearest day with its drawn month and weekday.

    A row stays where no day within its limits has them.

    Args:
        patients: the patient of each row, ascending, ``[rows]``.
        days: since 1970-01-01, ascending within a patient, ``[rows]``.
        wanted: places of the drawn parts, from 0, by part, ``[rows]``.
        limits: of the rows.
    """
    moved = days.copy()
    another = np.append(False, (np.diff(patients) == 0) & (np.diff(days) > 0))[: len(days)]
    nth = np.cumsum(another)  # of the days on which there are rows
    later = nth[np.searchsorted(patients, patients, side="right") - 1] - nth
    places = np.arange(len(patients)) - np.searchsorted(patients, patients)
    order = np.argsort(places, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(places))[:-1]) if len(order) else ():
        first, last = limits.first[rows], limits.last[rows] - later[rows]  # room for those
        together = np.zeros(len(rows), dtype=bool)
        before = moved[rows - 1]
        if places[rows[0]]:
            gap = days[rows] - days[rows - 1]
            together = gap == 0
            first, last = before + ~together, np.minimum(last, before + limits.longest)
        first = np.minimum(first, last)
        own = np.clip(days[rows], first, last)
        if "month" in wanted:
            ends = np.maximum(first, own - HALF_YEAR), np.minimum(last, own + HALF_YEAR)
            own = nearest_days(own, wanted["month"][rows], "month", ends)
        if "weekday" in wanted:
            own = nearest_days(own, wanted["weekday"][rows], "weekday", (first, last))
        moved[rows] = np.where(together, before, own)
    return moved


def drawn_seconds(
    patients: Ints, days: Ints, hours: Ints, step: int, rng: np.random.Generator
) -> Ints:
    """Return the second of the day of each row: within its drawn hour, and in order within a day.

    Args:
        patients: the patient of each row, ascending, ``[rows]``.
        days: ascending within a patient, ``[rows]``.
        hours: as they were drawn, ``[rows]``.
        step: seconds between two times that can be written; it divides an hour.
        rng: draws the time within the hour.
    """
    seconds = hours * HOUR + rng.integers(0, HOUR // step, len(hours)) * step
    return np.asarray(seconds[np.lexsort((seconds, days, patients))])
