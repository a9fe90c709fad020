"""Values beyond the source's range: shares by hand, and the words and the gate on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables, PartResult
from dpsynth.eval.fidelity.columns import outside
from dpsynth.eval.gates import gates, judged
from dpsynth.eval.report.sections.fidelity import beyond

from ...support.evaluation_tables import number, tables

FIELDS = [number("stay", 0, 90), number("age", 0, 120)]


def compared(*frames: pd.DataFrame) -> PartResult:
    return outside(PairedTables.of(tables(FIELDS, *frames), np.random.default_rng(0)))


SOURCE = pd.DataFrame({"stay": [1, 2, 3, 14] * 50, "age": [18, 40, 60, 99] * 50})
DRAWN = pd.DataFrame({"stay": [0] * 4 + [14] * 190 + [60] * 6, "age": [18, 99] * 100})
OTHERS = pd.DataFrame({"stay": [1] * 199 + [15], "age": [17] * 2 + [50] * 198})


def test_shares_by_hand() -> None:
    part = compared(SOURCE, DRAWN, OTHERS)
    stay, age = part.details["outside"]
    assert (stay["column"], stay["below"], stay["above"]) == ("stay", 0.02, 0.03)
    assert (stay["synthetic"], stay["holdout"]) == (0.05, 0.005)
    assert (age["synthetic"], age["holdout"]) == (0, 0.01)
    mean, worst = part.measures
    assert (mean.key, mean.estimate.value) == ("outside", pytest.approx(0.025))
    assert mean.estimate.reference == pytest.approx(0.0075)
    assert (worst.key, worst.estimate.value) == ("outside_worst", pytest.approx(0.05))


def test_missing_values_and_empty_columns() -> None:
    drawn = DRAWN.assign(stay=pd.array([None] * 100 + [60] * 100, dtype="Int64"))
    assert compared(SOURCE, drawn).details["outside"][0]["synthetic"] == 1.0
    nothing = pd.DataFrame({"stay": [None] * 9, "age": [None] * 9})
    part = compared(nothing, nothing)
    assert not part.measures and part.notes


def test_no_value_of_the_source_is_in_the_details() -> None:
    """Whoever has the longest stay is one patient; shares alone are kept."""
    entry = compared(SOURCE, DRAWN, OTHERS).details["outside"][0]
    assert set(entry) == {"column", "title", "below", "above", "synthetic", "holdout"}


def test_the_shipped_gate_stops_at_one_value_in_fifty() -> None:
    def verdict(part: PartResult) -> bool | None:
        measures = {measure.key: measure.to_dict() for measure in part.measures}
        [one] = [v for v in judged(measures, gates()) if v["key"] == "outside_worst"]
        return one["passed"]

    assert verdict(compared(SOURCE, DRAWN)) is False
    assert verdict(compared(SOURCE, SOURCE)) is True


def test_the_page_names_the_columns_concerned() -> None:
    finding, blocks = beyond(compared(SOURCE, DRAWN, OTHERS).details["outside"])
    assert finding == "5.0 % of stay beyond the source's range"
    text = repr(blocks)
    assert "where no real row is" in text and "age" not in text.replace("Paragraph", "")
    finding, blocks = beyond(compared(SOURCE, SOURCE).details["outside"])
    assert finding == "hardly any values beyond the source's range" and len(blocks) == 2
