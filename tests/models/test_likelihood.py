"""Log-likelihoods of fitted generators: they sum to one, and rise where a row was learned."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, Generator
from dpsynth.models.auditing import Overfitted, log_likelihood
from dpsynth.models.generators import Autoregressive, Ctgan, Independent, Mixture, Tvae
from dpsynth.privacy import NonPrivatePlan, OsEntropy, PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.short_training import shorten_training

DOMAIN = Domain((Feature("a", 3, 0), Feature("b", 2, 0), Feature("c", 12, 12, (1,) * 12)), 2000, 1)
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


def every_row() -> Cohort:
    codes = np.array(list(product(*map(range, DOMAIN.sizes))), dtype=np.uint16)
    return Cohort(codes[:, None], np.ones((len(codes), 1), dtype=bool))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of free rows are small, for the time they take."""
    for place in ("training.WARM_BATCH", "ctgan.WARM_BATCH", "ctgan.FAKES"):
        monkeypatch.setattr(f"dpsynth.models.generators.{place}", 200)
    monkeypatch.setattr("dpsynth.models.generators.tvae.DRAWS", 50)
    monkeypatch.setattr("dpsynth.models.generators.ctgan.BATCH", 200)


def learned(kind: type[Generator]) -> Generator:
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 2000) for size in DOMAIN.sizes], axis=-1)
    codes[:1200, 0] = 0
    cohort = Cohort(codes[:, None].astype(np.uint16), np.ones((2000, 1), dtype=bool))
    generator = kind(DOMAIN)
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    return generator.fit(cohort, plan, SeededEntropy(1))


@pytest.mark.parametrize(
    "kind", [Independent, Mixture, Autoregressive, pytest.param(Tvae, marks=pytest.mark.long)]
)
def test_the_likelihoods_of_all_rows_sum_to_one_and_are_those_of_draws(
    kind: type[Generator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the error of estimates: the shares of 40 000 rows in 72 cells lie .009 to .016 off.

    Of `tvae`, chances are estimated as well, by latent vectors that all rows share. Over fits, 400
    of them are .018 to .035 off in distance, and 4 000 are .006 to .011: it falls with their root.
    """
    monkeypatch.setattr("dpsynth.models.generators.tvae.DRAWS", 4_000)
    generator = learned(kind)
    rows = every_row()
    chances = np.exp(log_likelihood(generator, rows))
    bound = 0.01 if kind is Tvae else 1e-4  # a bound from below, by draws
    assert chances.sum() == pytest.approx(1.0, abs=bound)
    drawn = generator.sample(40_000, np.random.default_rng(2))
    sizes = np.array(DOMAIN.sizes)
    cells = (drawn[:, 0].astype(int) * sizes[1] + drawn[:, 1]) * sizes[2] + drawn[:, 2]
    shares = np.bincount(cells, minlength=len(chances)) / len(drawn)
    assert np.abs(shares - chances).sum() / 2 < (0.03 if kind is Tvae else 0.025)


def test_a_units_likelihood_is_the_mean_over_its_rows() -> None:
    generator = learned(Independent)
    codes = np.array([[[0, 0, 1], [2, 1, 5]]], dtype=np.uint16)
    both = log_likelihood(generator, Cohort(codes, np.ones((1, 2), dtype=bool)))
    rows = [Cohort(codes[:, [i]], np.ones((1, 1), dtype=bool)) for i in range(2)]
    assert both[0] == pytest.approx(np.mean([log_likelihood(generator, row)[0] for row in rows]))


def test_of_ctgan_it_is_that_of_its_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """However well the rest is trained."""
    shorten_training(monkeypatch)
    generator: Any = learned(Ctgan)
    mixture = Mixture(DOMAIN)
    mixture.start_ = generator.start_
    bounds = log_likelihood(generator, every_row())
    np.testing.assert_allclose(bounds, log_likelihood(mixture, every_row()))


@pytest.mark.long
def test_an_overfitted_network_knows_its_rows_and_keeps_no_budget() -> None:
    rng = np.random.default_rng(3)
    domain = Domain(tuple(Feature(name, 6, 0) for name in "abcdefgh"), 2000, 1)
    codes = np.stack([rng.integers(0, 6, (1000, 1)) for _ in range(8)], axis=-1).astype(np.uint16)
    mask = np.ones((500, 1), dtype=bool)
    plan = PrivacyPlan.calibrate(BUDGET, Autoregressive(domain).shares(BUDGET))
    with pytest.raises(TypeError, match="budget"):
        Overfitted(domain).fit(Cohort(codes[:500], mask), plan, OsEntropy())
    generator = Overfitted(domain).fit(Cohort(codes[:500], mask), NonPrivatePlan(plan), OsEntropy())
    seen = log_likelihood(generator, Cohort(codes[:500], mask))
    unseen = log_likelihood(generator, Cohort(codes[500:], mask))
    assert np.quantile(seen, 0.05) > np.quantile(unseen, 0.95) + 1
