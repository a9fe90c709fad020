"""P25: canaries whose coins are no coins.

An audit counts how many coins an attacker guesses. Where canaries are in by a rule, or all of them
together, the bound on epsilon is about another game. Each canary has a fair coin of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsynth.assessment import training_audit
from dpsynth.assessment.training_audit import PlantedRows, canaries, trial
from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature

DOMAIN = Domain((Feature("ward", 4, 0), Feature("sex", 2, 0)), 50, 2)
CANARIES, TRIALS = 40, 400
FALSE_ALARM = 1e-6


class Keeping:
    """A generator that keeps the cohort, and learns nothing."""

    def fit(self, cohort: Cohort, *rest: Any) -> Keeping:
        self.units = len(cohort.mask)
        return self


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Which canaries were in, ``[trials, canaries]``, by the program."""
    monkeypatch.setattr(training_audit, "log_likelihood", lambda fitted, some: np.zeros(CANARIES))
    rng = np.random.default_rng(2)
    nobody = Cohort(np.zeros((0, 2, 2), np.uint16), np.zeros((0, 2), bool))
    found = []
    for _ in range(TRIALS):
        generator: Any = Keeping()
        planted = canaries(DOMAIN, CANARIES, rng)
        plan: Any = SimpleNamespace(opened=lambda entropy: entropy)
        outcome = trial(generator, plan, PlantedRows(nobody, planted), rng=rng, observer=None)
        assert generator.units == outcome.included.sum()
        found.append(outcome.included)
    return np.array(found)


def fair(coins: Any) -> bool:
    """Whether each is in half of the trials, and each two are together in a quarter."""
    from scipy import stats

    tests = CANARIES * (CANARIES + 1) / 2
    alarm = FALSE_ALARM / tests / 2
    single, both = stats.binom(TRIALS, 0.5), stats.binom(TRIALS, 0.25)
    together = coins.T.astype(int) @ coins.astype(int)
    apart = together[np.triu_indices(CANARIES, 1)]
    alone = np.diag(together)
    return bool(
        single.ppf(alarm) <= alone.min()
        and alone.max() <= single.isf(alarm)
        and both.ppf(alarm) <= apart.min()
        and apart.max() <= both.isf(alarm)
    )


def test_each_canary_has_a_fair_coin_of_its_own(coins: Any) -> None:
    assert fair(coins)


@pytest.mark.parametrize(
    "broken",
    [
        lambda rng: np.tile(np.arange(CANARIES) % 2 == 0, (TRIALS, 1)),  # every second one
        lambda rng: np.repeat(rng.random((TRIALS, 1)) < 0.5, CANARIES, axis=1),  # one for all
        lambda rng: np.repeat(rng.random((TRIALS, CANARIES // 2)) < 0.5, 2, axis=1),  # in pairs
        lambda rng: rng.permuted(
            np.tile(np.arange(CANARIES) < CANARIES // 4, (TRIALS, 1)), axis=1
        ),  # a quarter of them
    ],
)
def test_other_ways_are_caught(broken: Callable[[np.random.Generator], Any]) -> None:
    assert not fair(broken(np.random.default_rng(3)))
