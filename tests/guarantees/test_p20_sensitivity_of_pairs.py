"""P20: row epsilon sold as patient epsilon, for weighted histograms of columns and of pairs.

The check: over all ways to spread 1 to 5 rows over the cells of a small table, what one unit moves,
over all histograms together and each in units of its own noise, is within what was declared; all
units weigh the same; and the true divergence of the release is within the claim. No outcome is
random: noise is left out, and divergences are sums over all outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models.marginals import cohort_with_visits, pair_noise
from dpsynth.models.presets import mass_of
from dpsynth.privacy import ChosenHistograms, JointHistograms, chosen_histograms, joint_histograms
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.events import SMOOTHING

from ..support.bare_counts import Silence

COLUMNS = (2, 3)  # a pair table of six cells
CELLS = list(product(*(range(size) for size in COLUMNS)))


@dataclass(frozen=True)
class Release:
    """Bare counts of every histogram, with the noise each of them gets and what was declared."""

    tables: list[np.ndarray]
    sigmas: list[float]
    counts: JointHistograms
    pairs: ChosenHistograms


Mechanism = Callable[[Cohort, int], Release]


def events(cap: int, histograms: int, pairs: int) -> tuple[JointHistograms, ChosenHistograms]:
    mass = mass_of(cap)
    assert mass is not None
    counts = JointHistograms("counts", histograms, cap, math.ceil(4.5 * mass), unit_mass=mass)
    return counts, ChosenHistograms("pairs", pairs, cap, noise_multiplier=3.0, unit_mass=mass)


def ours(cohort: Cohort, cap: int) -> Release:
    """What a generator does: the hidden column first, all columns, then pairs at their noise."""
    cohort = cohort_with_visits(cohort)
    sizes = (cap, *COLUMNS)
    chosen = list(combinations(range(len(sizes)), 2))
    counts, pairs = events(cap, len(sizes), len(chosen))
    sigmas = pair_noise(sizes, chosen, pairs)
    tables = [
        *joint_histograms(cohort, sizes, counts, Silence(0)),
        *chosen_histograms(cohort, sizes, chosen, sigmas, pairs, Silence(0)),
    ]
    return Release(tables, sigmas, counts, pairs)


def counted_by_hand(
    cohort: Cohort, cap: int, weight: Callable[[int, int], int], paid: slice = slice(None)
) -> Release:
    """A release with weights of one's own; the events account for the columns ``paid``."""
    rows = cohort_with_visits(cohort)
    sizes = (cap, *COLUMNS)
    chosen = list(combinations(range(len(sizes)), 2))
    names = range(len(sizes))[paid]
    billed = [pair for pair in chosen if set(pair) <= set(names)]
    counts, pairs = events(cap, len(names), len(billed))
    sigmas = dict(zip(billed, pair_noise(sizes, billed, pairs), strict=True))
    tables = [np.zeros(size, np.int64) for size in sizes]
    joint = [np.zeros((sizes[i], sizes[j]), np.int64) for i, j in chosen]
    for codes, mask in zip(rows.codes.astype(int), rows.mask, strict=True):
        for row in codes[mask]:
            share = weight(counts.mass, int(mask.sum()))
            for table, code in zip(tables, row, strict=True):
                table[code] += share
            for table, (i, j) in zip(joint, chosen, strict=True):
                table[row[i], row[j]] += share
    noise = [sigmas.get(pair, max(sigmas.values())) for pair in chosen]
    return Release([*tables, *joint], noise, counts, pairs)


def by_hand(cohort: Cohort, cap: int) -> Release:
    """The same as ours by a loop: shows that the loop of the broken twins counts right."""
    return counted_by_hand(cohort, cap, lambda mass, rows: mass // rows)


def rows_as_units(cohort: Cohort, cap: int) -> Release:
    """Broken twin: every row counts the whole mass, accounted as one."""
    return counted_by_hand(cohort, cap, lambda mass, rows: mass)


def visits_unpaid(cohort: Cohort, cap: int) -> Release:
    """Broken twin: the hidden column and its pairs are released, but not accounted for."""
    return counted_by_hand(cohort, cap, lambda mass, rows: mass // rows, paid=slice(1, None))


def by_the_cap(cohort: Cohort, cap: int) -> Release:
    """Broken twin: weights 1 / cap. Within the bound, but units of few rows hardly weigh."""
    return counted_by_hand(cohort, cap, lambda mass, rows: mass // cap)


def rounded_up(cohort: Cohort, cap: int) -> Release:
    """Broken twin: shares that are not whole are rounded up."""
    return counted_by_hand(cohort, cap, lambda mass, rows: -(-mass // rows))


# The check ------------------------------------------------------------------------------------


def background(cap: int) -> Cohort:
    """Units that stay: of one row to ``cap`` rows, all over the table."""
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, size, (12, cap)) for size in COLUMNS], axis=-1)
    mask = np.arange(cap) < rng.integers(1, cap + 1, (12, 1))
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


def with_unit(cohort: Cohort, cells: tuple[tuple[int, ...], ...]) -> Cohort:
    cap = cohort.mask.shape[1]
    codes = np.zeros((1, cap, len(COLUMNS)), np.uint16)
    codes[0, : len(cells)] = cells
    mask = (np.arange(cap) < len(cells))[None]
    return Cohort(np.concatenate([cohort.codes, codes]), np.concatenate([cohort.mask, mask]))


def shifts(mechanism: Mechanism, cap: int, most: int) -> Iterator[tuple[Any, list[Any], Release]]:
    """What each possible unit of 1 to ``most`` rows moves, histogram by histogram."""
    kept = background(cap)
    before = mechanism(kept, cap)
    for rows in range(1, most + 1):
        for cells in combinations_with_replacement(CELLS, rows):
            after = mechanism(with_unit(kept, cells), cap)
            moved = [new - old for new, old in zip(after.tables, before.tables, strict=True)]
            yield cells, moved, after


@dataclass(frozen=True)
class Found:
    """The worst over all units, 1 where the declared bound is reached, and the masses seen."""

    counts: float
    pairs: float
    masses: set[int]
    units: int

    @property
    def within_the_bound(self) -> bool:
        return max(self.counts, self.pairs) <= 1 + 1e-9


def examined(mechanism: Mechanism, cap: int = 5, most: int = 5) -> Found:
    counts, pairs, masses, units = 0.0, 0.0, set(), 0
    for _, moved, release in shifts(mechanism, cap, most):
        columns = len(COLUMNS) + 1
        length = math.sqrt(sum(int((table**2).sum()) for table in moved[:columns]))
        counts = max(counts, length / release.counts.sensitivity)
        precision = math.fsum(
            float((table**2).sum()) / (sigma**2 - SMOOTHING**2)
            for table, sigma in zip(moved[columns:], release.sigmas, strict=True)
        )
        pairs = max(pairs, math.sqrt(precision) / release.pairs.mu())
        masses |= {int(table.sum()) for table in moved}
        units += 1
    return Found(counts, pairs, masses, units)


@pytest.mark.parametrize("mechanism", [ours, by_hand])
def test_no_unit_moves_the_histograms_by_more_than_declared(mechanism: Mechanism) -> None:
    pairs = examined(mechanism)
    assert pairs.units == 6 + 21 + 56 + 126 + 252  # multisets of 1 to 5 of six cells
    assert pairs.within_the_bound
    # identical rows reach it: no more noise than needed, but for the rounding of its scale
    assert pairs.counts == pytest.approx(1, abs=1e-12)
    assert 0.9999 < pairs.pairs <= 1
    assert pairs.masses == {60}  # every unit weighs the same, whatever its rows


def test_row_counts_accounted_as_mass_one_are_caught() -> None:
    pairs = examined(rows_as_units)
    assert not pairs.within_the_bound
    assert pairs.counts == pytest.approx(5.0) and pairs.pairs == pytest.approx(5.0, rel=1e-4)


def test_a_hidden_column_that_nobody_pays_for_is_caught() -> None:
    pairs = examined(visits_unpaid)
    assert not pairs.within_the_bound
    assert pairs.counts == pytest.approx(math.sqrt(3 / 2))  # three histograms, two were declared
    assert pairs.pairs > 1.5  # three pairs, one was declared


def test_weights_by_the_cap_are_caught() -> None:
    pairs = examined(by_the_cap)
    assert pairs.within_the_bound  # no leak ...
    assert pairs.masses == {12, 24, 36, 48, 60}  # ... but row counts, under the noise of units


def test_shares_rounded_up_are_caught() -> None:
    """Eleven rows of ceil(5040 / 11) are 5049."""
    eleven = tuple([CELLS[0]] * 11)
    for mechanism, within in [(rounded_up, False), (ours, True)]:
        kept = background(11)
        old, new = mechanism(kept, 11), mechanism(with_unit(kept, eleven), 11)
        moved = [int((b - a).sum()) for a, b in zip(old.tables, new.tables, strict=True)]
        assert (max(moved) <= new.counts.mass) == within
    assert set(moved) == {5038}  # floor(5040 / 11) * 11


# The claim ------------------------------------------------------------------------------------


def true_delta(moved: list[np.ndarray], sigma: float, eps: float) -> float:
    """Divergence between discrete noise and the same moved, by the law of the loss.

    The loss at z is (|D|^2 - 2 D.z) / 2 sigma^2; the law of the integer D.z is a convolution of
    the cells' laws, in units of the shifts' common divisor.
    """
    steps = np.concatenate([table.ravel() for table in moved])
    steps = steps[steps != 0]
    unit = int(np.gcd.reduce(steps))
    edge = math.ceil(9 * sigma)
    z = np.arange(-edge, edge + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    width = 2 * edge * int(steps.sum() // unit) + 1
    points = 1 << (width - 1).bit_length()
    spectrum = np.ones(points // 2 + 1, dtype=complex)
    for step in steps // unit:
        spread = np.zeros(points)
        spread[: 2 * edge * step + 1 : step] = mass
        spectrum *= np.fft.rfft(spread)
    law = np.maximum(np.fft.irfft(spectrum, points)[:width], 0)  # errors of 1e-16 a point
    values = unit * (np.arange(width) - width // 2)
    loss = (float((steps.astype(float) ** 2).sum()) - 2 * values) / (2 * sigma**2)
    return float(np.sum(law * np.maximum(-np.expm1(np.minimum(eps - loss, 0)), 0)))


@pytest.mark.parametrize("cap", [3, 5])
def test_the_true_divergence_is_within_the_claim(cap: int) -> None:
    """Of the joint histograms, for every kind of unit; identical rows come near the claim."""
    claims = {eps: 0.0 for eps in (0.1, 0.5)}
    worst = dict(claims)
    kinds = set()
    for _, moved, release in shifts(ours, cap, min(cap, 4)):
        columns = moved[: len(COLUMNS) + 1]
        kind = tuple(sorted(np.concatenate(columns)))
        if kind in kinds:
            continue
        kinds.add(kind)
        for eps in claims:
            claims[eps] = claims[eps] or delta([release.counts], eps)
            worst[eps] = max(worst[eps], true_delta(columns, release.counts.sigma, eps))
    assert len(kinds) > 5
    for eps, claim in claims.items():
        assert 0.98 * claim < worst[eps] <= claim


def test_a_claim_for_rows_is_below_the_truth() -> None:
    """The same noise, with every row counting the whole mass: the claim is broken."""
    identical = tuple([CELLS[0]] * 3)
    kept = background(3)
    old, new = rows_as_units(kept, 3), rows_as_units(with_unit(kept, identical), 3)
    moved = [b - a for a, b in zip(old.tables, new.tables, strict=True)][: len(COLUMNS) + 1]
    assert true_delta(moved, new.counts.sigma, 0.5) > 5 * delta([new.counts], 0.5)
