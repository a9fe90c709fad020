"""Noisy counts of pairs: what is counted, and what is refused before any noise is drawn."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
    chosen_histograms,
)
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Rows, Silence

PAIRS = ChosenHistograms("pairs", most=3, rows_per_unit=2, noise_multiplier=4.0, unit_mass=2)


ONE_ROW = ChosenHistograms("pairs", most=6, rows_per_unit=1, noise_multiplier=2.0)


SIZES = (3, 2, 2)


COHORT = Rows(
    codes=np.array(
        [[[0, 1, 0], [2, 1, 1]], [[2, 0, 1], [9, 9, 9]], [[2, 1, 1], [2, 1, 1]]], np.uint16
    ),
    mask=np.array([[True, True], [True, False], [True, True]]),
)


PLAIN = replace(PAIRS, unit_mass=None)


SIGMAS = (20.0, 30.0)


def test_pair_counts_by_hand() -> None:
    source = Silence()
    first, second = chosen_histograms(COHORT, SIZES, [(0, 1), (2, 0)], SIGMAS, PLAIN, source)
    assert first.tolist() == [[0, 1], [0, 0], [1, 3]]
    assert second.tolist() == [[1, 0, 0], [0, 0, 4]]
    assert first.dtype == second.dtype == np.int64
    assert source.asked == [(20.0, 6), (30.0, 6)]  # each at its own scale, a draw for every cell


def test_weighted_pair_counts_by_hand() -> None:
    """Mass 2: a lone row counts 2, each of two rows counts 1."""
    (table,) = chosen_histograms(COHORT, SIZES, [(0, 1)], SIGMAS[:1], PAIRS, Silence())
    assert table.tolist() == [[0, 1], [0, 0], [2, 3]]
    twelve = replace(PAIRS, unit_mass=12)
    (table,) = chosen_histograms(COHORT, SIZES, [(0, 1)], (150.0,), twelve, Silence())
    assert table.tolist() == [[0, 6], [0, 0], [12, 18]]


def test_no_pair_asks_for_no_noise_and_gives_nothing() -> None:
    source = Silence()
    assert chosen_histograms(COHORT, SIZES, [], [], PAIRS, source) == []
    assert source.asked == []


def test_an_empty_cohort_gives_noise() -> None:
    nobody = Rows(np.zeros((0, 2, 3), np.uint16), np.zeros((0, 2), bool))
    (table,) = chosen_histograms(nobody, (40, 30, 2), [(0, 1)], (9.0,), PAIRS, SeededEntropy(3))
    assert table.shape == (40, 30)
    assert np.std(table) == pytest.approx(9.0, rel=0.1)


def change(**fields: Any) -> Rows:
    return Rows(**{"codes": COHORT.codes, "mask": COHORT.mask} | fields)


P = [(0, 1), (0, 2)]
REFUSED = [
    (COHORT, SIZES, P * 2, (80.0,) * 4, PAIRS, "too many"),
    (COHORT, SIZES, P, (11.0, 11.0), PAIRS, "too little noise"),
    (COHORT, SIZES, P, (2.9, 400.0), replace(PAIRS, noise_multiplier=0.3), "too little noise"),
    (COHORT, SIZES, P, (20.0,), PAIRS, "does not pay"),
    (COHORT, SIZES, P[:1], (20.0, 20.0), PAIRS, "does not pay"),
    (COHORT, SIZES, [], (20.0,), PAIRS, "does not pay"),
    (COHORT, SIZES, P, (math.nan, 20.0), PAIRS, "does not pay"),
    (COHORT, SIZES, P, SIGMAS, replace(PAIRS, unit_mass=6), "too little noise"),
    (COHORT, SIZES, P, SIGMAS, replace(PAIRS, noise_multiplier=UNDECIDED), "not decided"),
    (COHORT, SIZES, P, SIGMAS, ONE_ROW, "accounts for 1 rows per unit"),
    (COHORT, SIZES[:2], P[:1], SIGMAS[:1], PAIRS, "3 columns and 2 sizes"),
    (COHORT, (3, 2, 0), P, SIGMAS, PAIRS, "at least one code"),
    (COHORT, (2, 2, 2), P, SIGMAS, PAIRS, "outside its column"),
    (change(codes=COHORT.codes.astype(int) - 1), SIZES, P, SIGMAS, PAIRS, "outside its column"),
    (change(mask=COHORT.mask.astype(int)), SIZES, P, SIGMAS, PAIRS, "mask is boolean"),
    (change(codes=COHORT.codes[0]), SIZES, P, SIGMAS, PAIRS, "units, rows, columns"),
]


@pytest.mark.parametrize(("cohort", "sizes", "pairs", "sigmas", "event", "message"), REFUSED)
def test_what_the_event_does_not_account_for_is_refused_before_noise(
    cohort: Rows,
    sizes: tuple[int, ...],
    pairs: list[tuple[int, int]],
    sigmas: tuple[float, ...],
    event: ChosenHistograms,
    message: str,
) -> None:
    source = Silence()
    with pytest.raises(InputError, match=message):
        chosen_histograms(cohort, sizes, pairs, sigmas, event, source)
    assert source.asked == []


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (-1, 0), (0, -4)])
def test_a_pair_of_no_column_is_refused_before_noise(pair: tuple[int, int]) -> None:
    source = Silence()
    with pytest.raises(InputError, match="pair"):
        chosen_histograms(COHORT, SIZES, [(0, 1), pair], SIGMAS, PAIRS, source)
    assert source.asked == []


def test_noise_without_end_is_refused_before_noise() -> None:
    source = Silence()
    with pytest.raises(InputError):
        chosen_histograms(COHORT, SIZES, P, (20.0, math.inf), PAIRS, source)
    assert source.asked == []


# The plan -------------------------------------------------------------------------------------


def test_a_plan_finds_its_noise() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    counts = JointHistograms("counts", 5, 5, UNDECIDED, unit_mass=60)
    pairs = ChosenHistograms("pairs", 10, 5, UNDECIDED, unit_mass=60)
    plan = PrivacyPlan.calibrate(budget, [Share(counts, 0.2), Share(pairs, 0.8)])
    assert 0.998 < plan.epsilon <= 1.0
    found, chosen = plan.event("counts"), plan.event("pairs")
    assert isinstance(chosen, ChosenHistograms)
    assert chosen.mu() / found.mu() == pytest.approx(2.0, rel=1e-4)  # shares of mu squared
    assert chosen.covers([chosen.sigma_for(0.1**0.5)] * 10)
    assert PrivacyPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
