"""docs/extending.md: a figure from outside the package is measured, shown, compared and gated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTables,
    PartResult,
    Tables,
    Variants,
    absolute,
    bin_label,
)
from dpsynth.eval.fidelity import distributions, summary
from dpsynth.eval.gates import Gate, judged
from dpsynth.eval.report import key_figures

from ..support.evaluation_tables import number, tables, words

DOCS = Path(__file__).parents[2] / "docs"
FIELDS = [words("ward", "a", "b", "c"), number("age", 0, 9)]


def commonest_of_docs() -> Any:
    """The function that the page shows."""
    page = (DOCS / "extending.md").read_text()
    [code] = re.findall(r"```python\n(COMMONEST_MEANING.*?)```", page, re.DOTALL)
    names = {
        one.__name__: one for one in (JackknifeEstimate, Measure, PartResult, Variants, absolute)
    }
    scope: dict[str, Any] = {**names, "PairedTables": PairedTables, "bin_label": bin_label}
    exec(compile(code, "docs/extending.md", "exec", flags=annotations.compiler_flag), scope)
    return scope["commonest"]


def rows(count: int, share: float, seed: int) -> pd.DataFrame:
    """Rows of which a share is in ward a."""
    rng = np.random.default_rng(seed)
    ward = np.where(rng.random(count) < share, "a", rng.choice(["b", "c"], count))
    return pd.DataFrame({"ward": ward, "age": pd.array(rng.integers(0, 10, count), dtype="Int64")})


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "FIGURES", (*summary.FIGURES, commonest_of_docs()))


def measured(cohort: Tables) -> PartResult:
    return distributions(cohort, np.random.default_rng(0))


@pytest.mark.usefixtures("added")
def test_the_figure_is_in_the_evaluation_on_the_page_and_in_gates() -> None:
    found = measured(tables(FIELDS, rows(900, 0.8, 1), rows(900, 0.4, 2), rows(900, 0.8, 3)))
    measures = {one.key: one.to_dict() for one in found.measures}
    figure = measures["commonest"]
    assert figure["value"] == pytest.approx(0.2, abs=0.05)  # of two columns, one moved by 0.4
    assert figure["reference"] < 0.05
    assert [one["column"] for one in found.details["commonest"]] == ["ward", "age"]
    assert found.details["commonest"][0]["bin"] == "a"
    others = dict(key_figures.every(measures))["Others"]
    assert "commonest" in [one.key for one in others]
    gate = Gate("commonest", "at_most", 0.1, "the usual patient")
    [verdict] = judged(measures, [gate])
    assert verdict["passed"] is False


@pytest.mark.usefixtures("added")
def test_the_figure_is_best_between_two_halves_of_the_same_rows() -> None:
    found = measured(tables(FIELDS, rows(900, 0.6, 1), rows(900, 0.6, 2)))
    [figure] = [one.estimate for one in found.measures if one.key == "commonest"]
    assert figure.low is not None and figure.low <= 0.03 and figure.value < 0.05
