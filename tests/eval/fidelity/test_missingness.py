"""Missing shares and the patterns in which gaps come together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables, PartResult
from dpsynth.eval.fidelity.columns import missingness

from ...support.evaluation_tables import number, tables

FIELDS = [number("a", 0, 9), number("b", 0, 9), number("c", 0, 9, required=True)]


def table(rows: list[tuple[int, int]]) -> pd.DataFrame:
    """1 is a gap in a, in b."""
    a, b = (
        pd.array([None if gap else 1 for gap in column], dtype="Int64")
        for column in zip(*rows, strict=True)
    )
    return pd.DataFrame({"a": a, "b": b, "c": 1})


def compared(*frames: pd.DataFrame) -> PartResult:
    return missingness(PairedTables.of(tables(FIELDS, *frames), np.random.default_rng(0)))


def test_gaps_that_come_together_in_the_source_only() -> None:
    """Equal shares, but the joint pattern is lost: half of the rows change."""
    together = table([(1, 1), (1, 1), (0, 0), (0, 0)] * 10)
    apart = table([(1, 1), (1, 0), (0, 1), (0, 0)] * 10)
    part = compared(together, apart)
    values = {m.key: m.estimate.value for m in part.measures}
    half = pytest.approx(0.5)
    assert values == {"missing": 0, "patterns": half, "patterns_unseen": half}
    shown = {tuple(p["columns"]): p for p in part.details["missing_patterns"]}
    assert shown[("a", "b")]["source"] == 0.5 and shown[("a", "b")]["synthetic"] == 0.25
    assert shown[()]["source"] == 0.5 and shown[()]["holdout"] is None
    assert shown[("a",)]["source"] == 0 and shown[("a",)]["synthetic"] == 0.25


def test_shares_by_hand() -> None:
    """a is missing in 1/2 against 1/4, b in 0 against 1/4; c may not be missing."""
    source = table([(1, 0), (0, 0)] * 20)
    drawn = table([(1, 0), (0, 1), (0, 0), (0, 0)] * 10)
    part = compared(source, drawn, source)
    estimate = part.measures[0].estimate
    assert estimate.value == pytest.approx(0.25)
    assert estimate.reference == 0
    assert part.details["missing_patterns"][0]["holdout"] == 0.5


def test_an_empty_column_is_a_pattern_like_others() -> None:
    empty = table([(1, 0), (1, 0)] * 10)
    part = compared(empty, empty)
    assert [m.estimate.value for m in part.measures] == [0, 0, 0]
    (pattern,) = part.details["missing_patterns"]
    assert pattern["columns"] == ["a"] and pattern["source"] == 1


def test_at_most_twelve_patterns_are_listed_but_all_are_counted() -> None:
    fields = [number(f"c{i}", 0, 9) for i in range(70)]
    frame = pd.DataFrame(np.ones((70, 70)), columns=[f"c{i}" for i in range(70)])
    holes = frame.mask(np.eye(70, dtype=bool))  # each row lacks another column
    part = missingness(PairedTables.of(tables(fields, holes, frame), np.random.default_rng(0)))
    assert len(part.details["missing_patterns"]) == 12
    assert part.measures[1].estimate.value == pytest.approx(1)
    assert part.measures[0].estimate.value == pytest.approx(1 / 70)


def test_a_table_without_nullable_columns_says_so() -> None:
    frame = pd.DataFrame({"c": [1, 2]})
    part = missingness(PairedTables.of(tables(FIELDS[2:], frame, frame), np.random.default_rng(0)))
    assert not part.measures and part.details["missing_patterns"] == [] and part.notes
