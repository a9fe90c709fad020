"""Games on noisy counts: a count, a histogram, columns, grains, pairs, units of several rows.

An office releases counts of a small cohort, or of the same cohort and one more unit, whose rows are
all alike: the most that a unit can move. The attacker knows everything else, and scores by the
likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from distinguishing_game import Game
from tradeoff_curves import DiscreteCurve, GaussianCurve, TradeoffCurve

from dpsynth.encoding.cohort import Cohort
from dpsynth.models.base import Domain, Feature
from dpsynth.models.grain_settings import with_grains
from dpsynth.models.marginals.grains import measure_grains
from dpsynth.models.marginals.measurement import cohort_with_visits, pair_noise
from dpsynth.models.presets import mass_of
from dpsynth.privacy.entropy import Entropy, SeededEntropy
from dpsynth.privacy.events import UNDECIDED, ChosenHistograms, JointHistograms
from dpsynth.privacy.mechanisms import chosen_histograms, joint_histograms
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan, Share

CLAIM = PrivacyBudget(epsilon=3.0, delta=1e-5)
COLUMNS = (3, 2, 4, 2, 3)
NUMBERS = (60, 80, 120)  # codes of numbers of which each fifth and each tenth is round

Counts = list[npt.NDArray[np.int64]]
Floats = npt.NDArray[np.float64]


class Blocks:
    """Counts' noise of another source, drawn in blocks and handed out in turn, each value once.

    Attributes:
        halved: the broken twin: noise at half the scale that was accounted for.
    """

    releasable = False

    def __init__(self, source: Entropy, *, halved: bool = False) -> None:
        """Draw from a source."""
        self.source, self.halved = source, halved
        self._left: dict[float, npt.NDArray[np.int64]] = {}

    def discrete_gaussian(self, sigma: float, size: int) -> npt.NDArray[np.int64]:
        """Draw discrete Gaussian integers."""
        left = self._left.get(sigma, np.empty(0, np.int64))
        if len(left) < size:
            left = self.source.discrete_gaussian(sigma / 2 if self.halved else sigma, 20_000)
        self._left[sigma] = left[size:]
        return left[:size]

    def discrete_laplace(self, scale: float, size: int) -> npt.NDArray[np.int64]:
        """Draw discrete Laplace integers."""
        return self.source.discrete_laplace(scale / 2 if self.halved else scale, size)

    def generator(self) -> np.random.Generator:
        """Return a generator for draws that hide nothing."""
        return self.source.generator()


class Silence(SeededEntropy):
    """What the attacker knows: the counts without noise."""

    def discrete_gaussian(self, sigma: float, size: int) -> npt.NDArray[np.int64]:
        """Draw zeros."""
        return np.zeros(size, np.int64)


@dataclass(frozen=True)
class Office:
    """A calibrated mechanism on counts.

    Attributes:
        release: maps a cohort to noisy tables.
        sigmas: scale of the noise of each of them.
        columns: codes of each column of its cohorts.
        cap: rows of a unit.
        curve: the trade-off that its noise claims.
    """

    release: Callable[[Cohort, Entropy], Counts]
    sigmas: list[float]
    columns: tuple[int, ...]
    cap: int
    curve: TradeoffCurve


def neighbours(columns: tuple[int, ...], cap: int) -> tuple[Cohort, Cohort]:
    """A few units, and the same with one more, all of whose rows are alike."""
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, size, (4, cap)) for size in columns], axis=-1)
    mask = np.arange(cap) < rng.integers(1, cap + 1, (4, 1))
    mask[-1], codes[-1] = True, [min(1, size - 1) for size in columns]
    codes = codes.astype(np.uint16)
    return Cohort(codes[:-1], mask[:-1]), Cohort(codes, mask)


def counts_office(columns: tuple[int, ...], cap: int) -> Office:
    """Release all columns at once, with the hidden one where a unit may have several rows."""
    sizes = (cap, *columns) if cap > 1 else columns
    event = JointHistograms("counts", len(sizes), cap, UNDECIDED, unit_mass=mass_of(cap))
    paid = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("counts")
    assert isinstance(paid, JointHistograms)
    event = paid

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        return joint_histograms(cohort_with_visits(cohort), sizes, event, entropy)

    exact = DiscreteCurve(event.sigma, len(sizes))
    curve = exact if cap == 1 else GaussianCurve(event.mu())
    return Office(release, [event.sigma] * len(sizes), columns, cap, curve)


def grains_office(columns: tuple[int, ...], cap: int) -> Office:
    """Release the grains of all numbers at once, as a fit does."""
    features = []
    for place, size in enumerate(columns):
        units = [(int(c % 10 == 0), int(c % 10 == 5), int(c % 5 > 0)) for c in range(size)]
        features.append(Feature(f"n{place}", size, size, (1,) * size, grains=tuple(units)))
    domain = Domain(tuple(features), population=4, max_rows=cap)
    [share, _] = with_grains(
        (Share(JointHistograms("rest", 1, cap, UNDECIDED, mass_of(cap)), 1.0),),
        domain,
        mass_of(cap),
    )
    plan = PrivacyPlan.calibrate(CLAIM, [Share(share.event, 1.0)])
    [event] = plan.events
    assert isinstance(event, JointHistograms)

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        found = measure_grains(cohort, domain, plan, entropy)
        assert found is not None
        return [counts.astype(np.int64) for counts in found.counts]

    exact = DiscreteCurve(event.sigma, len(columns))
    curve = exact if cap == 1 else GaussianCurve(event.mu())
    return Office(release, [event.sigma] * len(columns), columns, cap, curve)


def pairs_office(columns: tuple[int, ...], cap: int) -> Office:
    """Release all pairs of columns, each with the noise that a fit would give it."""
    sizes = (cap, *columns) if cap > 1 else columns
    chosen = list(combinations(range(len(sizes)), 2))
    event = ChosenHistograms("pairs", len(chosen), cap, UNDECIDED, unit_mass=mass_of(cap))
    paid = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("pairs")
    assert isinstance(paid, ChosenHistograms)
    event, sigmas = paid, pair_noise(sizes, chosen, paid)

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        return chosen_histograms(cohort_with_visits(cohort), sizes, chosen, sigmas, event, entropy)

    return Office(release, sigmas, columns, cap, GaussianCurve(event.mu()))


def rows_as_units(office: Office) -> Office:
    """Broken twin: the mass is not shared among a unit's rows, so it is off by the row cap."""

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        apart = np.zeros((cohort.mask.size, *cohort.codes.shape[1:]), np.uint16)
        apart[:, 0] = cohort.codes.reshape(-1, cohort.codes.shape[2])
        mask = np.zeros((len(apart), office.cap), dtype=bool)
        mask[:, 0] = cohort.mask.ravel()
        return office.release(Cohort(apart, mask), entropy)

    return replace(office, release=release)


def game(name: str, office: Office, source: Entropy, *, halved: bool = False) -> Game:
    """Make the game of an office: does the unit's presence show in what it releases?"""
    entropy = Blocks(source, halved=halved)
    cohorts = neighbours(office.columns, office.cap)
    without, within = (_flat(office.release(cohort, Silence(0))) for cohort in cohorts)
    sizes = [table.size for table in office.release(cohorts[0], Silence(0))]
    spread = np.repeat(office.sigmas, sizes)

    def scores(member: bool, runs: int) -> Floats:
        cohort = cohorts[member]
        seen = np.array([_flat(office.release(cohort, entropy)) for _ in range(runs)])
        return np.asarray((seen - (without + within) / 2) @ ((within - without) / spread**2))

    return Game(name, scores, office.curve, CLAIM.epsilon, CLAIM.delta, cut=0.0)


def _flat(tables: Counts) -> Floats:
    return np.concatenate([table.ravel() for table in tables]).astype(np.float64)


OFFICES: dict[str, Callable[[], Office]] = {
    "noisy count": lambda: counts_office((1,), 1),
    "histogram": lambda: counts_office((6,), 1),
    "all columns": lambda: counts_office(COLUMNS, 1),
    "all columns, five rows": lambda: counts_office(COLUMNS[:3], 5),
    "grains of numbers": lambda: grains_office(NUMBERS, 1),
    "grains of numbers, five rows": lambda: grains_office(NUMBERS, 5),
    "all pairs": lambda: pairs_office(COLUMNS, 1),
    "all pairs, five rows": lambda: pairs_office(COLUMNS[:3], 5),
}


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanisms as they are."""
    return [game(name, make(), source) for name, make in OFFICES.items()]


def mutants(source: Entropy) -> list[Game]:
    """List the games on their broken twins."""
    halved = [
        game(f"{name}: half the noise", make(), source, halved=True)
        for name, make in OFFICES.items()
    ]
    by_row = [
        game(f"{name}: mass of each row 1", rows_as_units(make()), source)
        for name, make in OFFICES.items()
        if "five" in name
    ]
    return halved + by_row
