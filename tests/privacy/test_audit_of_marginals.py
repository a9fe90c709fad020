"""Audit of the histograms: can an attacker tell neighbours apart better than was claimed?

The game: an office releases noisy histograms of a small cohort, or of the same cohort and one more
unit, whose rows are all alike (the most that a unit can move). The attacker knows everything else
and guesses by the likelihood ratio. False and true positive rates over many runs, with their
Clopper-Pearson bounds, go through the trade-off curve of the Gaussian mechanism (Nasr et al. 2023,
arXiv 2302.07956, section 3): whoever is mu-private has TPR <= Phi(Phi^-1(FPR) + mu), Phi the normal
law. The mu that is refuted from below becomes an epsilon at the plan's delta.

False alarms: each of the two bounds of a game fails with probability 5e-7 at most, so a mechanism
that keeps its claim is accused with probability 1e-6 at most, and all four games together with
4e-6; the seeds are fixed, so that what passes once passes always. That a sound mechanism shows
less than 60 % of its claim takes more than three standard deviations: 1e-3 a game, unseeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, norm

from dpsynth.cohort import Cohort
from dpsynth.entropy import SeededEntropy
from dpsynth.events import UNDECIDED, ChosenHistograms, JointHistograms
from dpsynth.gaussian import gaussian_delta
from dpsynth.mechanisms import chosen_histograms, joint_histograms
from dpsynth.models.measure import cohort_with_visits, pair_noise
from dpsynth.models.presets import mass_of
from dpsynth.plan import PrivacyBudget, PrivacyPlan, Share

CLAIM = PrivacyBudget(epsilon=3.0, delta=1e-5)
COLUMNS = (3, 2, 4, 2, 3)
FAILS = 5e-7  # of one Clopper-Pearson bound
RUNS, FEW_RUNS = 7000, 1500


class Blocks(SeededEntropy):
    """Discrete Gaussian noise drawn in blocks and handed out in turn, each value once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._left: dict[float, np.ndarray] = {}

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        left = self._left.get(sigma, np.empty(0, np.int64))
        if len(left) < size:
            left = super().discrete_gaussian(sigma, 50_000)
        self._left[sigma] = left[size:]
        return left[:size]


class HalfTheNoise(Blocks):
    """Broken twin: noise at half the scale that was accounted for."""

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        return super().discrete_gaussian(sigma / 2, size)


class Silence(Blocks):
    """What the attacker knows: the counts without noise."""

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        return np.zeros(size, np.int64)


# The office -----------------------------------------------------------------------------------


Mechanism = Callable[[Cohort, SeededEntropy], list[np.ndarray]]


@dataclass(frozen=True)
class Office:
    """A calibrated mechanism, and the scale of the noise of each of its histograms."""

    release: Mechanism
    sigmas: list[float]
    cap: int


def sizes_of(cap: int) -> tuple[int, ...]:
    """Five columns; or the hidden one and three, where a unit may have several rows."""
    return (cap, *COLUMNS[:3]) if cap > 1 else COLUMNS


def counts_office(cap: int) -> Office:
    """All columns at once."""
    sizes = sizes_of(cap)
    event = JointHistograms("counts", len(sizes), cap, UNDECIDED, unit_mass=mass_of(cap))
    event = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("counts")
    assert isinstance(event, JointHistograms)
    paid = event

    def release(cohort: Cohort, entropy: SeededEntropy) -> list[np.ndarray]:
        return joint_histograms(cohort_with_visits(cohort), sizes, paid, entropy)

    return Office(release, [paid.sigma] * len(sizes), cap)


def pairs_office(cap: int) -> Office:
    """All pairs of columns, each with the noise that a fit would give it."""
    sizes = sizes_of(cap)
    chosen = list(combinations(range(len(sizes)), 2))
    event = ChosenHistograms("pairs", len(chosen), cap, UNDECIDED, unit_mass=mass_of(cap))
    event = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("pairs")
    assert isinstance(event, ChosenHistograms)
    paid, sigmas = event, pair_noise(sizes, chosen, event)
    assert len(set(sigmas)) > 1

    def release(cohort: Cohort, entropy: SeededEntropy) -> list[np.ndarray]:
        return chosen_histograms(cohort_with_visits(cohort), sizes, chosen, sigmas, paid, entropy)

    return Office(release, sigmas, cap)


def rows_as_units(office: Office) -> Office:
    """Broken twin: the mass is not shared among a unit's rows, so it is off by the row cap."""

    def release(cohort: Cohort, entropy: SeededEntropy) -> list[np.ndarray]:
        apart = np.zeros((cohort.mask.size, *cohort.codes.shape[1:]), np.uint16)
        apart[:, 0] = cohort.codes.reshape(-1, cohort.codes.shape[2])
        mask = np.zeros((len(apart), office.cap), dtype=bool)
        mask[:, 0] = cohort.mask.ravel()
        return office.release(Cohort(apart, mask), entropy)

    return Office(release, office.sigmas, office.cap)


def neighbours(cap: int) -> tuple[Cohort, Cohort]:
    """A few units, and the same with one more, all of whose rows are alike."""
    rng = np.random.default_rng(3)
    columns = COLUMNS if cap == 1 else COLUMNS[:3]
    codes = np.stack([rng.integers(0, size, (4, cap)) for size in columns], axis=-1)
    mask = np.arange(cap) < rng.integers(1, cap + 1, (4, 1))
    mask[-1], codes[-1] = True, 1
    codes = codes.astype(np.uint16)
    return Cohort(codes[:-1], mask[:-1]), Cohort(codes, mask)


# The attacker ---------------------------------------------------------------------------------


def guesses(
    office: Office, cohort: Cohort, known: list[list[np.ndarray]], entropy: SeededEntropy, runs: int
) -> np.ndarray:
    """Whether the attacker says that the unit is in, run by run: the most likely of the two."""
    released = np.array([flat(office.release(cohort, entropy)) for _ in range(runs)])
    without, within = (flat(tables) for tables in known)
    spread = np.concatenate(
        [np.full(table.size, sigma) for table, sigma in zip(known[0], office.sigmas, strict=True)]
    )
    nearer = (released - (without + within) / 2) * (within - without) / spread**2
    return np.asarray(nearer.sum(axis=1) > 0)


def flat(tables: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([table.ravel() for table in tables])


def bounds(hits: int, runs: int) -> tuple[float, float]:
    """Clopper-Pearson bounds of a rate from below and from above, each failing with FAILS."""
    low = float(beta.ppf(FAILS, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - FAILS, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def gaussian_epsilon(mu: float) -> float:
    """Epsilon of the Gaussian mechanism at the plan's delta."""
    if gaussian_delta(mu, 0.0) <= CLAIM.delta:
        return 0.0
    return float(brentq(lambda eps: gaussian_delta(mu, eps) - CLAIM.delta, 0.0, 200.0))


def refuted(true_positives: int, false_positives: int, runs: int) -> float:
    """The largest epsilon that the counts refute."""
    low, high = bounds(true_positives, runs)[0], bounds(false_positives, runs)[1]
    mu = float(norm.ppf(low) - norm.ppf(high))
    return gaussian_epsilon(mu) if mu > 0 else 0.0


def audited(office: Office, seed: int, runs: int, twin: type[Blocks] = Blocks) -> float:
    """Play the game and return the epsilon that it refutes."""
    out, within = neighbours(office.cap)
    known = [office.release(each, Silence(0)) for each in (out, within)]
    streams: Iterator[SeededEntropy] = (twin(seed + i) for i in range(2))
    false, true = (
        int(guesses(office, each, known, entropy, runs).sum())
        for each, entropy in zip((out, within), streams, strict=True)
    )
    return refuted(true, false, runs)


OFFICES = {
    "columns, one row": lambda: counts_office(1),
    "columns, five rows": lambda: counts_office(5),
    "pairs, one row": lambda: pairs_office(1),
    "pairs, five rows": lambda: pairs_office(5),
}


@pytest.mark.parametrize("name", OFFICES)
def test_the_claim_stands_and_is_not_an_empty_one(name: str) -> None:
    found = audited(OFFICES[name](), seed=10, runs=RUNS)
    assert found <= CLAIM.epsilon
    assert found > 0.6 * CLAIM.epsilon


@pytest.mark.parametrize("name", OFFICES)
def test_noise_at_half_its_scale_is_caught(name: str) -> None:
    assert audited(OFFICES[name](), seed=20, runs=FEW_RUNS, twin=HalfTheNoise) > CLAIM.epsilon


@pytest.mark.parametrize("name", [name for name in OFFICES if "five" in name])
def test_a_mass_off_by_the_row_cap_is_caught(name: str) -> None:
    found = audited(rows_as_units(OFFICES[name]()), seed=30, runs=FEW_RUNS)
    assert found > 3 * CLAIM.epsilon


# The ruler ------------------------------------------------------------------------------------


def test_the_bounds_of_a_rate_by_their_definition() -> None:
    """At the bound, a result as extreme as the one seen has probability FAILS."""
    from scipy.stats import binom

    for hits, runs in [(1, 10), (300, 1000), (3000, 6000), (5999, 6000)]:
        low, high = bounds(hits, runs)
        assert binom.sf(hits - 1, runs, low) == pytest.approx(FAILS, rel=1e-6)
        assert binom.cdf(hits, runs, high) == pytest.approx(FAILS, rel=1e-6)
    assert bounds(0, 10)[0] == 0.0 and bounds(10, 10)[1] == 1.0


def test_a_coin_refutes_nothing_and_a_perfect_attack_a_lot() -> None:
    assert refuted(3000, 3000, 6000) == 0.0
    assert refuted(6000, 0, 6000) > 10
    # TPR 0.8 and FPR 0.2, seen exactly, are mu = 2 * 0.8416; their bounds lie a little inside
    mu = 2 * 0.8416
    assert 0.9 * gaussian_epsilon(mu) < refuted(80_000, 20_000, 100_000) < gaussian_epsilon(mu)


def test_epsilon_of_the_curve_is_the_published_one() -> None:
    """Analytic Gaussian at delta 1e-5: noise 3.730632 has epsilon 1."""
    assert gaussian_epsilon(1 / 3.730632) == pytest.approx(1.0, abs=1e-5)
