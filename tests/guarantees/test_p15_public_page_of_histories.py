"""P15: figures of real rows are published. The public page of histories sees no real patient."""

from __future__ import annotations

from functools import cache

import pytest
from markupsafe import Markup

from dpsynth.eval.longitudinal import HistoryEvaluation, evaluate_histories
from dpsynth.eval.report import (
    Section,
    histories,
    longitudinal_page,
    longitudinal_sections,
    rendering,
)

from ..support.history_cohorts import codec, cohort, grow_few_trees


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)


@pytest.fixture(autouse=True)
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plotly's script out of the pages."""
    monkeypatch.setitem(rendering._environment().globals, "plotly", lambda: Markup("library"))


DRAWN = cohort(150, seed=3)


@cache
def neighbours() -> list[HistoryEvaluation]:
    """Return evaluations of the same cohort beside two different sets of real patients."""
    return [
        evaluate_histories(codec(), DRAWN, cohort(80, seed=1), cohort(70, seed=2), seed=4),
        evaluate_histories(codec(), DRAWN, cohort(90, seed=5, rows=9.0, hazard=2.0), seed=4),
    ]


def test_the_public_page_is_the_same_whoever_was_learned_from() -> None:
    pages = [longitudinal_page(one, audience="public") for one in neighbours()]
    assert pages[0] == pages[1]
    assert "Do not release" not in pages[0]
    internal = [longitudinal_page(one) for one in neighbours()]
    assert internal[0] != internal[1] and all("Do not release" in page for page in internal)


def test_a_public_page_with_the_quantiles_of_real_patients_is_noticed() -> None:
    """The broken twin: pictures of courses with the band that the internal page has."""

    def broken(evaluation: object) -> list[Section]:
        document = evaluation.to_dict()  # type: ignore[attr-defined]
        section = histories.courses(document["synthetic"], document["parts"]["bands"])
        return [] if section is None else [section]

    assert broken(neighbours()[0]) != broken(neighbours()[1])
    real = [longitudinal_sections(one, "public") for one in neighbours()]
    assert real[0] == real[1]
