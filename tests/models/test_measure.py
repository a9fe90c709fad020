"""What is measured: counts by a loop, choices from released values alone, each event run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.models import Domain, Feature, shares_of
from dpsynth.models.base import VISITS
from dpsynth.models.marginals import (
    MergedBins,
    choose_pairs,
    cohort_with_visits,
    measure,
    pair_noise,
)
from dpsynth.models.marginals import measurement as room
from dpsynth.models.marginals.binning import row_factors
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
)

from ..support.bare_counts import Silence

DOMAIN = Domain(
    (Feature("a", 3, 0), Feature("b", 21, 20), Feature("c", 2, 0)), population=3000, max_rows=3
)
HIDDEN = DOMAIN.with_visits()
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


@pytest.fixture(scope="module")
def plan() -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, shares_of("mixture", DOMAIN, BUDGET))


def cohort(seed: int, units: int = 3000) -> Cohort:
    """Units of 1 to 3 rows; ``b`` follows ``a``, ``c`` is a coin; padding has code 0."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, (units, 3), p=[0.5, 0.3, 0.2])
    b = np.clip(a * 6 + rng.integers(0, 8, (units, 3)), 0, 19)
    codes = np.stack([a, b, rng.integers(0, 2, (units, 3))], axis=-1)
    mask = np.arange(3) < rng.integers(1, 4, (units, 1))
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


# The hidden column ----------------------------------------------------------------------------


def test_the_hidden_column_is_the_number_of_rows() -> None:
    codes = np.arange(12, dtype=np.uint16).reshape(3, 2, 2)
    mask = np.array([[True, True], [True, False], [False, False]])
    with_visits = cohort_with_visits(Cohort(codes, mask))
    assert with_visits.codes[..., 0].tolist() == [[1, 1], [0, 0], [0, 0]]  # code r - 1
    np.testing.assert_array_equal(with_visits.codes[..., 1:], codes)
    np.testing.assert_array_equal(with_visits.mask, mask)
    assert with_visits.codes.dtype == np.uint16


def test_units_of_one_row_have_no_hidden_column() -> None:
    single = Cohort(np.ones((4, 1, 2), np.uint16), np.ones((4, 1), bool))
    assert cohort_with_visits(single) is single
    one = replace(DOMAIN, max_rows=1)
    assert one.with_visits() is one


def test_the_domain_gets_it_once_and_first() -> None:
    assert HIDDEN.features == (Feature(VISITS, 3, 3, (1, 1, 1)), *DOMAIN.features)
    assert HIDDEN.with_visits() is HIDDEN
    assert (HIDDEN.population, HIDDEN.max_rows) == (DOMAIN.population, DOMAIN.max_rows)


def test_every_code_of_the_hidden_column_is_within_the_domain() -> None:
    with_visits = cohort_with_visits(cohort(1))
    assert set(with_visits.codes[with_visits.mask][:, 0]) == {0, 1, 2}
    assert with_visits.codes[..., 0].max() < HIDDEN.sizes[0]


def test_row_factors_by_hand() -> None:
    """Bins {1}, {2, 3}, {4}: the mean number of rows in each, by the shares of the codes."""
    bins = MergedBins(np.array([0, 1, 1, 2], np.uint16), np.array([0.5, 0.3, 0.1, 0.1]))
    np.testing.assert_allclose(row_factors(bins), [1, (2 * 0.3 + 3 * 0.1) / 0.4, 4])


def test_row_factors_are_finite_for_a_bin_without_share() -> None:
    bins = MergedBins(np.array([0, 1, 1], np.uint16), np.array([1.0, 0.0, 0.0]))
    factors = row_factors(bins)
    assert factors[0] == 1 and np.isfinite(factors).all() and (factors >= 0).all()


# Which pairs ----------------------------------------------------------------------------------


# The whole ------------------------------------------------------------------------------------


def weighed(rows: Cohort, of: Callable[[np.ndarray], Any], shape: tuple[int, ...]) -> np.ndarray:
    """Share of each cell among random rows of random units, by a loop."""
    found = np.zeros(shape)
    for codes, mask in zip(rows.codes.astype(int), rows.mask, strict=True):
        for row in codes[mask]:
            found[of(row)] += 1 / mask.sum()
    return found / rows.mask.any(axis=1).sum()


def test_without_noise_the_shares_are_those_of_a_random_row_of_a_random_unit(
    plan: PrivacyPlan,
) -> None:
    rows = cohort_with_visits(cohort(3))
    found = measure(rows, HIDDEN, plan, Silence(0), most_bins=6)
    assert found.total == pytest.approx(3000)
    target = found.target
    assert target.sizes == tuple(column.count for column in found.binning.columns)
    assert target.sizes[0] == 3 and target.sizes[1] == 3  # rows of the unit, and column a
    starts = np.concatenate([[0], np.cumsum(target.sizes)])
    maps = [column.bin_of for column in found.binning.columns]
    measured = np.zeros_like(target.pairs, dtype=bool)
    for i, j in combinations(range(4), 2):
        block = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        shape = (target.sizes[i], target.sizes[j])
        exact = weighed(rows, lambda row, i=i, j=j: (maps[i][row[i]], maps[j][row[j]]), shape)
        np.testing.assert_allclose(target.pairs[block], exact, atol=1e-12)
        measured[block] = True
    assert np.isfinite(target.pair_sd[measured]).all()
    assert np.isinf(target.pair_sd[~measured]).all() and not target.pairs[~measured].any()
    for j in range(4):
        part = target.one[starts[j] : starts[j + 1]]
        exact = weighed(rows, lambda row, j=j: maps[j][row[j]], (target.sizes[j],))
        np.testing.assert_allclose(part, exact, atol=1e-9)


def test_standard_errors_are_those_of_the_noise(plan: PrivacyPlan) -> None:
    """Noise of 400 fits against what the target says of it, cell by cell, to 20 %."""
    rows = cohort_with_visits(cohort(3, units=300))
    first = measure(rows, HIDDEN, plan, Silence(0), most_bins=4)
    counts, pairs = plan.event(ONE_WAY), plan.event(PAIRS)
    assert isinstance(counts, JointHistograms) and isinstance(pairs, ChosenHistograms)
    total = 300 * 6
    codes = np.concatenate([np.bincount(column.bin_of) for column in first.binning.columns])
    pair_sd = np.fmin(first.target.pair_sd, first.target.pair_sd.T)
    starts = np.cumsum([0, *first.target.sizes])
    by_pairs = np.concatenate(  # of each bin: the pairs' sums, averaged by their precision
        [
            np.full(size, sum(1 / (sd**2 * width) for sd, width in _others(pair_sd, starts, j)))
            for j, size in enumerate(first.target.sizes)
        ]
    )
    expected = 1 / np.sqrt((total / counts.sigma) ** 2 / codes + by_pairs)
    same = np.isclose(first.target.one_sd, expected, rtol=1e-9)
    assert same.sum() >= len(codes) - 3  # bins with codes of a tail: of its fit
    np.testing.assert_allclose(first.target.one_sd[~same], expected[~same], rtol=0.3)
    entropy = SeededEntropy(1)
    tables = []
    for _ in range(400):
        chosen = choose_pairs(first.binning.columns, 300.0, pairs, hidden=True)
        sigmas = pair_noise(first.target.sizes, chosen, pairs)
        binned = Cohort(first.binning.coarsen(rows), rows.mask)
        args = (binned, first.target.sizes, chosen, sigmas, pairs, entropy)
        drawn = room.chosen_histograms(*args)
        tables.append(np.concatenate([table.ravel() for table in drawn]) / total)
    stated = [
        sigma / total
        for (i, j), sigma in zip(chosen, sigmas, strict=True)
        for _ in range(first.target.sizes[i] * first.target.sizes[j])
    ]
    np.testing.assert_allclose(np.std(tables, axis=0), stated, rtol=0.2)
    finite = first.target.pair_sd[np.isfinite(first.target.pair_sd)]
    assert sorted(set(finite)) == pytest.approx(sorted({s / total for s in sigmas}))


def _others(pair_sd: np.ndarray, starts: np.ndarray, j: int) -> list[tuple[float, int]]:
    """Noise of a cell of each pair of a column, and the bins of the other column."""
    return [
        (pair_sd[starts[j], start], stop - start)
        for i, (start, stop) in enumerate(zip(starts[:-1], starts[1:], strict=True))
        if i != j
    ]


class Spy:
    """Runs the two releases, or hands out given ones, and keeps what they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tables: list[np.ndarray] | None = None):
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.released: list[np.ndarray] = []
        real = {"one": room.joint_histograms, "two": room.chosen_histograms}

        def one(*args: Any) -> list[np.ndarray]:
            self.asked.append(("one", args))
            return real["one"](*args) if tables is None else [table.copy() for table in tables]

        def two(*args: Any) -> list[np.ndarray]:
            self.asked.append(("two", args))
            self.released = real["two"](*args)
            return self.released

        monkeypatch.setattr(room, "joint_histograms", one)
        monkeypatch.setattr(room, "chosen_histograms", two)


def test_each_event_is_run_once_and_as_it_was_planned(
    monkeypatch: pytest.MonkeyPatch, plan: PrivacyPlan
) -> None:
    spy = Spy(monkeypatch)
    rows = cohort_with_visits(cohort(4))
    measure(rows, HIDDEN, plan, SeededEntropy(5), most_bins=6)
    assert [name for name, _ in spy.asked] == ["one", "two"]
    _, sizes, counts, _ = spy.asked[0][1]
    assert sizes == HIDDEN.sizes and counts == plan.event(ONE_WAY)
    _, sizes, chosen, sigmas, pairs, _ = spy.asked[1][1]
    assert pairs == plan.event(PAIRS)
    assert len(chosen) == len(set(chosen)) <= pairs.most
    assert all(0 <= i < j < len(sizes) for i, j in chosen)
    assert pairs.covers(sigmas)


def test_all_shares_are_counts_over_the_one_noisy_total(
    monkeypatch: pytest.MonkeyPatch, plan: PrivacyPlan
) -> None:
    """A pair's own sum is noisier: divided by it, its cells would not be on the columns' scale."""
    spy = Spy(monkeypatch)
    measured = measure(cohort_with_visits(cohort(4)), HIDDEN, plan, SeededEntropy(5), most_bins=6)
    starts = np.concatenate([[0], np.cumsum(measured.target.sizes)])
    assert measured.total != 3000.0
    for (i, j), table in zip(spy.asked[1][1][2], spy.released, strict=True):
        block = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        np.testing.assert_allclose(measured.target.pairs[block], table / (6 * measured.total))


def test_bins_pairs_and_scales_follow_from_the_first_release_alone(
    monkeypatch: pytest.MonkeyPatch, plan: PrivacyPlan
) -> None:
    """The same released histograms over quite different rows: everything chosen is the same.

    Errors of single columns are none of it: where released pairs contradict them, they grow.
    """
    source = cohort_with_visits(cohort(6))
    released = room.joint_histograms(source, HIDDEN.sizes, plan.event(ONE_WAY), SeededEntropy(1))
    nobody = Cohort(source.codes[:0], source.mask[:0])
    flat = Cohort(np.zeros_like(source.codes), np.ones_like(source.mask))
    found = []
    for rows in (source, flat, nobody):
        spy = Spy(monkeypatch, released)
        measured = measure(rows, HIDDEN, plan, SeededEntropy(2), most_bins=6)
        monkeypatch.undo()
        _, sizes, chosen, sigmas, _, _ = spy.asked[1][1]
        found.append((sizes, chosen, sigmas, measured))
    for sizes, chosen, sigmas, measured in found[1:]:
        assert (sizes, chosen, sigmas) == found[0][:3]
        assert measured.total == found[0][3].total
        for column, other in zip(
            measured.binning.columns, found[0][3].binning.columns, strict=True
        ):
            np.testing.assert_array_equal(column.bin_of, other.bin_of)
        np.testing.assert_array_equal(measured.target.pair_sd, found[0][3].target.pair_sd)
    assert (found[0][3].target.pairs != found[1][3].target.pairs).any()


def test_the_second_release_sees_bins_and_not_codes(
    monkeypatch: pytest.MonkeyPatch, plan: PrivacyPlan
) -> None:
    spy = Spy(monkeypatch)
    rows = cohort_with_visits(cohort(7))
    measured = measure(rows, HIDDEN, plan, SeededEntropy(3), most_bins=4)
    binned, sizes = spy.asked[1][1][:2]
    assert sizes == measured.target.sizes
    assert (binned.codes[binned.mask] < np.array(sizes)).all()
    for j, column in enumerate(measured.binning.columns):
        np.testing.assert_array_equal(binned.codes[..., j], column.bin_of[rows.codes[..., j]])
    np.testing.assert_array_equal(binned.mask, rows.mask)


@pytest.mark.parametrize("seed", range(3))
def test_an_empty_cohort_is_measured_like_any_other(plan: PrivacyPlan, seed: int) -> None:
    nobody = Cohort(np.zeros((0, 3, 4), np.uint16), np.zeros((0, 3), bool))
    measured = measure(nobody, HIDDEN, plan, SeededEntropy(seed), most_bins=6)
    assert np.isfinite(measured.target.one).all() and np.isfinite(measured.target.pairs).all()
    assert measured.total > 0


def test_one_column_alone_has_no_pair() -> None:
    """Nothing is chosen, and the event that paid for pairs is not run for nothing."""
    domain = Domain((Feature("a", 3, 0),), 3000, 1)
    plan = PrivacyPlan.calibrate(BUDGET, shares_of("mixture", domain, BUDGET))
    rows = Cohort(np.ones((3000, 1, 1), np.uint16), np.ones((3000, 1), bool))
    measured = measure(rows, domain, plan, SeededEntropy(0), most_bins=6)
    assert np.isinf(measured.target.pair_sd).all()


def test_a_cohort_without_its_hidden_column_is_refused(plan: PrivacyPlan) -> None:
    with pytest.raises(InputError, match="3 columns and 4 sizes"):
        measure(cohort(8), HIDDEN, plan, SeededEntropy(0), most_bins=6)
