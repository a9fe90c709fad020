"""The best of several candidates: the law of the choice, what it costs, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import (
    Contributions,
    OsEntropy,
    PaidEntropy,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
    TopChoice,
    epsilon,
    event_from_dict,
    most_units,
    top_choice,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import renyi

from ..support.renyi_accounting import rdp_epsilon

EVENT = TopChoice("best", 1, 4, sensitivity=1, monotone=True, scale=2.0)
SCORES = np.array([3, 5, 4, 0], np.int64)


@pytest.mark.fresh_noise
@pytest.mark.parametrize("entropy", [OsEntropy(), SeededEntropy(1)], ids=["OpenDP", "seeded"])
def test_the_first_choice_has_the_law_of_the_exponential_mechanism(entropy: Any) -> None:
    runs = 3000
    best = [top_choice(SCORES, EVENT, PaidEntropy([EVENT], entropy))[0] for _ in range(runs)]
    seen = np.bincount(best, minlength=4)
    law = np.exp(SCORES / 2.0)
    assert stats.chisquare(seen, runs * law / law.sum()).pvalue > 1e-8


@pytest.mark.fresh_noise
@pytest.mark.parametrize("entropy", [OsEntropy(), SeededEntropy(1)], ids=["OpenDP", "seeded"])
def test_the_second_is_chosen_among_the_rest(entropy: Any) -> None:
    """Given the first, the second has the law of a choice without it (peeling)."""
    runs = 3000
    event = replace(EVENT, chosen=2)
    pairs = [tuple(top_choice(SCORES, event, PaidEntropy([event], entropy))) for _ in range(runs)]
    weights = np.exp(SCORES / 2.0)
    law = {
        (i, j): weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i])
        for i in range(4)
        for j in range(4)
        if i != j
    }
    seen = [pairs.count(pair) for pair in law]
    assert sum(seen) == runs
    assert stats.chisquare(seen, [runs * p for p in law.values()]).pvalue > 1e-8


@pytest.mark.parametrize("chosen", [1, 5])
@pytest.mark.parametrize("monotone", [True, False])
def test_a_choice_is_accounted_as_that_many_pure_ones(chosen: int, monotone: bool) -> None:
    event = replace(EVENT, chosen=chosen, candidates=9, monotone=monotone, scale=10.0)
    each = (1 if monotone else 2) / 10
    assert event.epsilon_each == pytest.approx(each)
    assert delta([event], chosen * each * 1.02) < 1e-12
    if chosen > 1:  # all choices go one way with a probability of more than 1 in 40
        assert delta([event], (chosen - 1) * each) > 1e-3
    if chosen == 1:  # randomised response: its least delta at 0 is tanh(e / 2)
        assert delta([event], 0.0) == pytest.approx(math.tanh(each / 2), rel=0.01)
    assert renyi(event, 4) == pytest.approx(chosen * min(each, 2 * each**2))
    assert rdp_epsilon([event], 1e-6) > 0.5 * epsilon([event], 1e-6)


def test_an_event_is_written_calibrated_and_read_back() -> None:
    share = Share(replace(EVENT, chosen=3, scale=UNDECIDED), 1.0)
    (found,) = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [share]).events
    assert isinstance(found, TopChoice)
    assert event_from_dict(found.to_dict()) == found
    assert 0.98 < epsilon([found], 1e-6) <= 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chosen": 5}, "chosen must be"),
        ({"candidates": 0}, "candidates"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"monotone": 1}, "monotone must be"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_what_is_no_mechanism_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(EVENT, **change)


@pytest.mark.parametrize("scores", [np.zeros(3, np.int64), np.zeros(4), np.zeros((4, 1), np.int64)])
def test_other_scores_are_refused(scores: Any) -> None:
    with pytest.raises(InputError, match="among 4 whole-number scores"):
        top_choice(scores, EVENT, SeededEntropy(0))
    with pytest.raises(InputError, match="not decided"):
        top_choice(SCORES, replace(EVENT, scale=UNDECIDED), SeededEntropy(0))


class Scores(SeededEntropy):
    """Keeps the scores that it is asked to choose among."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seen: list[int] = []

    def top(self, scores: Any, count: int, scale: float) -> list[int]:
        self.seen = scores.tolist()
        return super().top(scores, count, scale)


def test_a_unit_raises_a_score_by_one_however_many_rows_it_has() -> None:
    """Units 0 to 2 have 20 rows of the first value, unit 3 has one of the second and one missing.

    The last cell is that of a missing value, which is no candidate.
    """
    units = np.array([*([0] * 18), 1, 2, 3, 3], np.int64)
    cells = np.array([*([0] * 20), 1, 4], np.int64)
    source = Scores()
    most_units(Contributions(units, cells[:, None]), 5, EVENT, source)
    assert source.seen == [3, 1, 0, 0]
    assert np.bincount(cells, minlength=5)[:4].tolist() == [20, 1, 0, 0]  # the twin: rows
    for wrong in (cells[:, None][:, [0, 0]], cells):
        with pytest.raises(InputError, match="one part"):
            most_units(Contributions(units, wrong), 5, EVENT, source)
    with pytest.raises(InputError, match="one part"):
        most_units(Contributions(units, np.zeros((22, 1), np.int64)), 3, EVENT, source)
