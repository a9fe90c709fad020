"""`mixture` where units have several rows: their shares come back, padding is not learned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature
from dpsynth.models.generators import Mixture
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.privacy import ChosenHistograms, JointHistograms, SeededEntropy

from ..support.mixture_plans import BUDGET, plan_for, restored

Ints = npt.NDArray[np.int64]

CLINIC = Domain((Feature("ward", 3, 0), Feature("age", 41, 40)), population=8000, max_rows=5)


def visits(seed: int) -> tuple[Cohort, Ints]:
    """Whoever comes more often is older and more likely on ward 1; the rows, and of whom."""
    rng = np.random.default_rng(seed)
    units = CLINIC.population
    rows = rng.choice(5, units, p=[0.5, 0.2, 0.1, 0.1, 0.1]) + 1
    often = rng.random((units, 5)) < (0.1 + 0.15 * rows)[:, None]
    ward = np.where(often, 1, rng.choice([0, 2], (units, 5)))
    age = 8 + 5 * rows[:, None] + rng.normal(0, 4, (units, 1)) + rng.normal(0, 1, (units, 5))
    mask = np.arange(5) < rows[:, None]
    codes = np.stack([ward, np.clip(np.rint(age), 0, 39)], axis=-1)
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask), rows


@pytest.fixture(scope="module")
def clinic() -> tuple[Cohort, Mixture]:
    cohort, _ = visits(1)
    return cohort, Mixture(CLINIC).fit(cohort, plan_for(Mixture, CLINIC), SeededEntropy(4))


def test_the_distribution_of_rows_comes_back(clinic: tuple[Cohort, Mixture]) -> None:
    """Histograms count units; the draw by number of rows makes rows of them again.

    Rows and units differ by 13 points of ward 1 and 4 years: the synthetic table must lie at the
    rows. Within a bin of ages, codes keep the shares that they have among units.
    """
    cohort, model = clinic
    rows = cohort.codes[cohort.mask].astype(float)
    weights = np.broadcast_to(1 / cohort.mask.sum(axis=1)[:, None], cohort.mask.shape)[cohort.mask]
    drawn = model.sample(40_000, np.random.default_rng(5)).astype(float)
    assert drawn.shape == (40_000, 2)  # the hidden column is left out
    for of, short in ((lambda codes: codes[:, 0] == 1, 0.1), (lambda codes: codes[:, 1], 0.2)):
        by_row, by_unit = of(rows).mean(), np.average(of(rows), weights=weights)
        assert abs(by_row - by_unit) > 0.1
        assert abs(of(drawn).mean() - by_row) < short * abs(by_row - by_unit)
    # and so does a relation between columns within rows
    older, drawn_older = (
        codes[codes[:, 0] == 1, 1].mean() - codes[codes[:, 0] != 1, 1].mean()
        for codes in (rows, drawn)
    )
    assert older > 3 and abs(drawn_older - older) < 0.3 * older


def test_without_the_tilt_units_are_drawn(clinic: tuple[Cohort, Mixture]) -> None:
    """Broken twin: the mixture as it was fitted samples a random row of a random unit."""
    cohort, model = clinic
    drawn = model.start_.products.draw(40_000, np.random.default_rng(5))
    rows = cohort.codes[cohort.mask]
    weights = np.broadcast_to(1 / cohort.mask.sum(axis=1)[:, None], cohort.mask.shape)[cohort.mask]
    ward = model.start_.binning.columns[1].bin_of[1]
    share = (drawn[:, 1] == ward).mean()
    by_unit = np.average(rows[:, 0] == 1, weights=weights)
    assert abs(share - by_unit) < 0.02 < abs(share - (rows[:, 0] == 1).mean()) - 0.08


def test_the_numbers_of_rows_are_learned(clinic: tuple[Cohort, Mixture]) -> None:
    cohort, model = clinic
    shares = np.bincount(cohort.mask.sum(axis=1), minlength=6)[1:] / len(cohort.mask)
    np.testing.assert_allclose(model.start_.binning.columns[0].shares, shares, atol=0.02)


def test_padding_is_not_learned(clinic: tuple[Cohort, Mixture]) -> None:
    """Other codes in the padding leave the fit as it was, bit for bit."""
    cohort, model = clinic
    codes = np.where(cohort.mask[..., None], cohort.codes, 2).astype(np.uint16)
    other = Mixture(CLINIC).fit(
        Cohort(codes, cohort.mask), plan_for(Mixture, CLINIC), SeededEntropy(4)
    )
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(other.arrays()[name], array, err_msg=name)


def test_with_a_hidden_column_it_is_restored_too(clinic: tuple[Cohort, Mixture]) -> None:
    model = clinic[1]
    first, second = (
        each.sample(2000, np.random.default_rng(8)) for each in (model, restored(model, CLINIC))
    )
    np.testing.assert_array_equal(first, second)


def test_events_are_weighted_and_count_the_hidden_column() -> None:
    counts, pairs = (share.event for share in Mixture(CLINIC).shares(BUDGET))
    assert counts == JointHistograms(ONE_WAY, 3, 5, float("inf"), unit_mass=60)
    assert pairs == ChosenHistograms(PAIRS, 3, 5, float("inf"), unit_mass=60)
