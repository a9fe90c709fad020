"""Days of the synthetic patients of a bundle: origins, ends of follow-up, and rows as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth.bundle.format import table_path
from dpsynth.encoding import typed_frames, values_of
from dpsynth.schema import Column, LinkedSchema, SyntheticTable

Floats = npt.NDArray[np.float64]

DAY = 86_400_000_000  # microseconds, in which times are read
_DAY_ONE = datetime(1970, 1, 1).toordinal()


@dataclass(frozen=True, eq=False)
class PatientDays:
    """What the table of patients says of the days of each one.

    Attributes:
        keys: in the order of the rows.
        origins: the day of the origin, in days since year 1; NaN without one.
        ends: the last day of follow-up since the origin.
    """

    keys: Floats
    origins: Floats
    ends: Floats

    @classmethod
    def of(cls, folder: Path, table: SyntheticTable, schema: LinkedSchema) -> PatientDays:
        """Read them."""
        assert table.key is not None
        end = None if schema.end is None else table.schema.column(schema.end)
        base = schema.origin
        if end is not None and end.interval is not None:
            base = end.interval.base  # which is the origin, if there is one
        names = {table.key, *filter(None, (base, schema.end))}
        values = read_columns(folder, table, names)
        keys = values[table.key]
        last = np.inf if schema.window is None else schema.window.last
        origins = np.full(len(keys), np.nan)
        if base is not None:
            origins = days_of(values[base], table.schema.column(base))
        ends = np.full(len(keys), last, dtype=np.float64)
        if end is not None:
            days = values[end.name]
            if end.kind.is_time:
                days = days_of(days, end) - origins
            ends = np.fmin(days, last)  # a missing end is the window's
        return cls(keys, origins, ends)


def read_columns(folder: Path, table: SyntheticTable, names: set[str]) -> dict[str, Floats]:
    """Read some columns of a table as numbers."""
    columns = [column for column in table.schema.modelled if column.name in names]
    parts: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in columns}
    for frame in typed_frames(folder / table_path(table.name), table):
        for column in columns:
            parts[column.name].append(values_of(frame, column, table))
    return {name: np.concatenate(part) for name, part in parts.items()}


def days_of(values: Floats, column: Column) -> Floats:
    """Turn dates, or dates and times, into days since year 1."""
    return values if column.kind.in_days else np.floor(values / DAY) + _DAY_ONE
