"""`independent` keeps each column's distribution, no relation, and nothing but the histograms."""

from __future__ import annotations

import json
import math

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.models import Domain, Feature
from dpsynth.models.generators import Independent
from dpsynth.models.presets import ONE_WAY
from dpsynth.privacy import Entropy, JointHistograms, PrivacyBudget, PrivacyPlan, SeededEntropy

DOMAIN = Domain(
    (Feature("a", 3, 0), Feature("b", 12, 11), Feature("missing-only", 4, 3)),
    population=4000,
    max_rows=2,
)
GENEROUS = PrivacyBudget(epsilon=50.0, delta=1e-6)


def plan_for(domain: Domain, budget: PrivacyBudget = GENEROUS) -> PrivacyPlan:
    return PrivacyPlan.calibrate(budget, Independent(domain).shares(budget))


@pytest.fixture(scope="module")
def plan() -> PrivacyPlan:
    return plan_for(DOMAIN)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    """4000 units of one or two rows; column b follows from a, the last column is all missing."""
    rng = np.random.default_rng(1)
    a = rng.choice(3, (4000, 2), p=[0.6, 0.3, 0.1])
    b = np.where(a == 2, 11, a * 5)
    codes = np.stack([a, b, np.full_like(a, 3)], axis=-1).astype(np.uint16)
    mask = np.ones((4000, 2), dtype=bool)
    mask[::4, 1] = False
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


@pytest.fixture(scope="module")
def fitted(cohort: Cohort, plan: PrivacyPlan) -> Independent:
    return Independent(DOMAIN).fit(cohort, plan, SeededEntropy(2))


def test_the_whole_budget_goes_into_one_event() -> None:
    (share,) = Independent(DOMAIN).shares(GENEROUS)
    assert share.fraction == 1.0
    assert share.event == JointHistograms(ONE_WAY, histograms=3, rows_per_unit=2, sigma=math.inf)


def test_columns_keep_their_distributions(cohort: Cohort, fitted: Independent) -> None:
    """True shares counted by hand; noise of sigma 3 on 7000 rows moves one by about 0.001."""
    rows = cohort.codes[cohort.mask]
    for j, shares in enumerate(fitted.shares_):
        true = np.bincount(rows[:, j], minlength=len(shares)) / len(rows)
        np.testing.assert_allclose(shares, true, atol=0.01)


def test_padding_is_not_counted(cohort: Cohort, plan: PrivacyPlan) -> None:
    """Padding has code 0; changing it must change nothing."""
    other = np.where(cohort.mask[..., None], cohort.codes, 2).astype(np.uint16)
    first = Independent(DOMAIN).fit(cohort, plan, SeededEntropy(3))
    second = Independent(DOMAIN).fit(Cohort(other, cohort.mask), plan, SeededEntropy(3))
    np.testing.assert_array_equal(first.arrays()["shares"], second.arrays()["shares"])


def test_samples_follow_the_learned_shares(fitted: Independent) -> None:
    """Seeded: the outcome is always the same. Five standard errors."""
    rows = 100_000
    drawn = fitted.sample(rows, np.random.default_rng(4))
    assert drawn.shape == (rows, 3) and drawn.dtype == np.uint16
    assert (drawn < np.array(DOMAIN.sizes)).all()
    for j, shares in enumerate(fitted.shares_):
        counts = np.bincount(drawn[:, j], minlength=len(shares)) / rows
        assert (abs(counts - shares) <= 5 * np.sqrt(shares * (1 - shares) / rows)).all()


def test_no_relation_is_kept(cohort: Cohort, fitted: Independent) -> None:
    rows = cohort.codes[cohort.mask].astype(float)
    drawn = fitted.sample(50_000, np.random.default_rng(5)).astype(float)
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.9
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 5 / np.sqrt(50_000)


def test_nothing_but_the_released_histograms_is_read(
    monkeypatch: pytest.MonkeyPatch, plan: PrivacyPlan
) -> None:
    """With the histograms given, the fit does not even need a cohort."""
    calls = []

    def released(
        cohort: Cohort, sizes: tuple[int, ...], event: JointHistograms, entropy: Entropy
    ) -> list[npt.NDArray[np.int64]]:
        calls.append((sizes, event))
        return [np.array([75, 25, -4]), np.eye(12, dtype=np.int64)[11] * 96, np.full(4, 24)]

    monkeypatch.setattr("dpsynth.models.generators.independent.joint_histograms", released)
    no_cohort: Cohort = None  # type: ignore[assignment]
    fitted = Independent(DOMAIN).fit(no_cohort, plan, SeededEntropy(0))
    assert calls == [((3, 12, 4), plan.event(ONE_WAY))]  # once, with the plan's noise
    np.testing.assert_allclose(fitted.shares_[0], [0.76, 0.24, 0.0], atol=0.02)
    np.testing.assert_allclose(fitted.shares_[2], 0.25)


def test_a_share_of_zero_is_never_drawn() -> None:
    shares = np.array([0.0, 1.0, 0.0, *np.full(12, 1 / 12), 1.0, 0.0, 0.0, 0.0])
    fitted = Independent.restore(DOMAIN, {}, {"shares": shares})
    drawn = fitted.sample(20_000, np.random.default_rng(6))
    assert set(drawn[:, 0]) == {1} and set(drawn[:, 2]) == {0}
    assert set(drawn[:, 1]) == set(range(12))


def test_restored_it_samples_the_same_rows(fitted: Independent) -> None:
    config = json.loads(json.dumps(fitted.config()))
    again = Independent.restore(DOMAIN, config, fitted.arrays())
    first, second = (m.sample(1000, np.random.default_rng(7)) for m in (fitted, again))
    np.testing.assert_array_equal(first, second)
    assert fitted.arrays()["shares"].shape == (sum(DOMAIN.sizes),)


def test_an_empty_cohort_gives_a_valid_table(plan: PrivacyPlan) -> None:
    """A fit of nothing is a fit of noise; it must not tell itself apart by failing."""
    nothing = Cohort(np.zeros((0, 2, 3), dtype=np.uint16), np.zeros((0, 2), dtype=bool))
    fitted = Independent(DOMAIN).fit(nothing, plan, SeededEntropy(8))
    assert (fitted.sample(100, np.random.default_rng(9)) < np.array(DOMAIN.sizes)).all()


def test_a_plan_for_another_domain_is_refused(cohort: Cohort) -> None:
    fewer = Domain(DOMAIN.features[:2], DOMAIN.population, DOMAIN.max_rows)
    with pytest.raises(InputError):
        Independent(DOMAIN).fit(cohort, plan_for(fewer), SeededEntropy(0))


def test_progress_ends_at_one(cohort: Cohort, plan: PrivacyPlan) -> None:
    stages: list[tuple[str, float]] = []
    Independent(DOMAIN).fit(
        cohort, plan, SeededEntropy(0), lambda stage, part: stages.append((stage, part))
    )
    assert stages == [("histograms", 0.0), ("histograms", 1.0)]
