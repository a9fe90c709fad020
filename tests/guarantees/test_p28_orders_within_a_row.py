"""P28: gaps above other columns and empty cells are functions of their row alone.

The check: each row of a table is coded alone, and in tables with one patient more or less, some of
them odd. Its codes must be the same, so a patient moves its own coded rows and no others. The
broken versions bound the gap by the largest one of the table, count it above the least value of the
table, or take the condition of the first row for that of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, relations
from dpsynth.schema import coded_schema

from ..support.following_columns import EVERY, ORDER, WHOLE, as_text, drawn, schema_of
from ..support.neighbours import moved_codes

ROWS = 60
ODD: dict[str, dict[str, str]] = {
    "least of all": {"low": "30", "high": "60", "top": "60"},
    "largest gaps of all": {"low": "30", "high": "260", "top": "300"},
    "order the other way": {"low": "159", "high": "60", "top": "-9"},
    "nothing": {"low": "", "high": "", "top": "", "sex": "", "born": "", "diagnosis": ""},
    "no numbers": {"low": "x", "high": "?", "top": "y", "born": "soon", "pregnant": "maybe"},
    "a pregnant man": {"sex": "M", "pregnant": "true", "born": "2000"},
}


def table() -> pd.DataFrame:
    """Rows as text, as a CSV file holds them; some break the order and the condition."""
    frame = as_text(drawn(WHOLE, rows=ROWS, seed=3)).drop(columns=["age", "chapter"])
    frame.loc[::7, "high"], frame.loc[::5, "pregnant"] = "60", "true"
    return frame


TABLE = table()  # drawn before anything is broken


def moved() -> set[str]:
    frame = TABLE
    odd = {name: frame.iloc[[0]].assign(**cells) for name, cells in ODD.items()}
    return moved_codes(WHOLE, frame, odd)


def test_each_row_has_the_codes_that_it_has_alone() -> None:
    assert moved() == set()


GAPS, ABSENT = relations.gaps_above, relations.absent_of


def up_to_the_largest(cells: Any, column: Any, columns: Any) -> pd.Series:
    """A broken version: gaps as shares of the largest one of the table."""
    gaps = GAPS(cells, column, columns)
    return (100 * gaps / max(1.0, float(gaps.max(skipna=True)))).round()


def above_the_least(cells: Any, column: Any, columns: Any) -> pd.Series:
    """A broken version: gaps above the least value of the table."""
    name = column.floor.names[0]
    lowest = pd.Series(cells[name].min(skipna=True), index=cells[name].index)
    return GAPS({**cells, name: lowest.astype(cells[name].dtype)}, column, columns)


@pytest.mark.parametrize("broken", [up_to_the_largest, above_the_least])
def test_the_check_finds_gaps_that_look_at_other_rows(
    broken: Callable[..., pd.Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "gaps_above", broken)
    assert len(moved()) >= 2


def test_the_check_finds_a_condition_of_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_first(cells: Any, column: Any) -> np.ndarray:
        absent = ABSENT(cells, column)
        return np.full(len(absent), absent[0])

    monkeypatch.setattr(relations, "absent_of", of_the_first)
    assert len(moved()) >= 2


def test_the_bounds_of_a_gap_are_public() -> None:
    """They follow from the schema: no table is at hand, and equal schemas have equal codes."""
    gap = coded_schema(WHOLE).column("high")
    assert (gap.minimum, gap.maximum) == (0, 200)
    again = schema_of(*EVERY, rules=[ORDER])
    assert Codec(again).sizes == Codec(WHOLE).sizes


def test_computed_columns_are_never_looked_at() -> None:
    codec, frame = Codec(WHOLE), table()
    secret = frame.assign(age="a secret", chapter=list(map(str, range(ROWS))))
    assert (codec.encode(secret) == codec.encode(frame)).all()
    assert "age" not in codec.names and "chapter" not in codec.names
