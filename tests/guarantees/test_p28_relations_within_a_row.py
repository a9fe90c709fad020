"""P28: what is modelled of a row is a function of that row, for intervals and calendars as well.

The check: each row of a table is coded alone, and in tables with one patient more or less, some of
them odd. Its codes must be the same, so a patient moves its own coded rows and no others. The
broken version measures the gap against the table's first date, or against the row before, as code
for "days since the start of the study" easily does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, relations
from dpsynth.schema import Column, Schema

from ..support.neighbours import moved_codes
from ..support.related_columns import (
    ADMITTED,
    AGE,
    BASIS,
    BMI,
    BORN,
    DISCHARGED,
    SEEN,
    SIZES,
    document,
)
from ..support.schema_fields import schema_field

Gaps = Callable[[pd.DataFrame, Column, Column, str], np.ndarray]

DATE = {**ADMITTED, "dpsynth": ADMITTED["dpsynth"] | {"calendar": ["weekday", "month"]}}
CALLED = schema_field(
    "called",
    "datetime",
    BASIS | {"calendar": ["weekday", "hour"]},
    minimum="2010-01-01T00:00:00",
    maximum="2014-12-31T23:59:00",
)
SCHEMA = Schema.from_dict(document(DISCHARGED, DATE, BORN, SEEN, CALLED, *SIZES, BMI, AGE))
ROWS = 60
ODD = {
    "earliest of all": {"admitted": "0001-01-01", "discharged": "0001-01-01"},
    "latest of all": {"admitted": "9999-12-31", "discharged": "9999-12-31"},
    "longest of all": {"admitted": "2010-01-01", "discharged": "9999-01-01", "born": "0001-01-01"},
    "nothing": {"admitted": "", "discharged": "", "born": "", "seen": "", "weight": ""},
    "no dates": {"admitted": "x", "discharged": "?", "born": "31.12.", "seen": "soon"},
    "first second of all": {"called": "0001-01-01T00:00:00"},
    "last second of all": {"called": "9999-12-31T23:59:59"},
    "no time": {"called": "noon"},
}


def table() -> pd.DataFrame:
    """Rows as text, as a CSV file holds them."""
    rng, codec = np.random.default_rng(3), Codec(SCHEMA)
    codes = np.stack([rng.integers(0, size, ROWS) for size in codec.sizes], axis=1)
    frame = codec.decode(codes, rng).drop(columns=["bmi", "age"])
    return frame.astype(object).where(frame.notna(), "").astype(str)


def moved() -> set[str]:
    frame = table()
    odd = {name: frame.iloc[[0]].assign(**cells) for name, cells in ODD.items()}
    return moved_codes(SCHEMA, frame, odd)


def test_each_row_has_the_codes_that_it_has_alone() -> None:
    assert moved() == set()


def _dates(cells: pd.Series) -> pd.Series:
    return pd.to_datetime(cells, format="ISO8601", errors="coerce")


def since_the_first(frame: pd.DataFrame, column: Column, base: Column, decimal: str) -> np.ndarray:
    """A broken version: the gap to the first date of the table."""
    first = _dates(frame[base.name]).min()
    return (_dates(frame[column.name]) - first).dt.days.to_numpy(dtype=float)


def since_the_row_before(
    frame: pd.DataFrame, column: Column, base: Column, decimal: str
) -> np.ndarray:
    """A broken version: the gap to the other date of the row before."""
    return ORIGINAL(frame.assign(**{base.name: frame[base.name].shift()}), column, base, decimal)


ORIGINAL: Gaps = relations.row_gaps


@pytest.mark.parametrize("broken", [since_the_first, since_the_row_before])
def test_the_check_finds_gaps_that_look_at_other_rows(
    broken: Gaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "row_gaps", broken)
    assert len(moved()) >= 2


def hours_since_the_first(
    frame: pd.DataFrame, column: Column, part: str, decimal: str
) -> pd.Series:
    """A broken version: the hour of the day, counted from the table's first one."""
    cells = PART(frame, column, part, decimal)
    if part != "hour":
        return cells
    hours = pd.to_numeric(cells)
    moved = (hours - hours.min()).map("{:02.0f}".format)
    return moved.where(cells.notna(), None).astype(object)


PART = relations.calendar_part


def test_the_check_finds_hours_that_look_at_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "calendar_part", hours_since_the_first)
    assert len(moved()) >= 2


def test_derived_columns_are_never_looked_at() -> None:
    codec, frame = Codec(SCHEMA), table()
    secret = frame.assign(bmi="a secret", age=list(range(ROWS)))
    assert (codec.encode(secret) == codec.encode(frame)).all()
    assert "bmi" not in codec.names and "age" not in codec.names
