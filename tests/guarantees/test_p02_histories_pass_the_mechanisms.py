"""P02, P04 for histories: what one patient adds to each event, and that nothing else is kept.

The counts that every event of a fit is about to release are watched, with and without one patient
of as many rows as there may be. Private steps change nothing here: what surrounds them, such as
their anchor (P01), clipping norm and divisor (P23), must be the same. Broken versions: weights by
the root of the number of rows, and a patient counted once for each series; a divisor from rows.

One patient more hardly moves a total, so a crowd and a stranger are compared too, at a budget whose
noise hides neither: a decision by something exact in the place of something released shows then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories
from dpsynth.errors import InputError
from dpsynth.models import histories_class
from dpsynth.models.dpsgd import DpSgd, trainer_of
from dpsynth.models.histories import CohortGenerator
from dpsynth.models.histories.networks import AutoregressiveHistories, autoregressive
from dpsynth.models.histories.steps import Stack
from dpsynth.models.histories.steps import fit as step_fit
from dpsynth.models.histories.steps import rows as table_rows
from dpsynth.models.histories.steps.table import MASS, Steps
from dpsynth.models.registry import LINKED
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
)
from dpsynth.privacy.pair_statistics import exact_contrast_products

from ..support.bare_counts import Silence
from ..support.made_histories import domain_of, histories_of, hostile, with_patient
from ..support.short_training import shorten_histories_most

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
CLEAR = PrivacyBudget(epsilon=300.0, delta=1e-6)
PATIENTS, ROWS = 60, 12
DOMAIN = domain_of(PATIENTS, most=(ROWS, ROWS))
Event = JointHistograms | ChosenHistograms
Released = list[tuple[Event, list[np.ndarray]]]
Twin = Callable[[pytest.MonkeyPatch, Histories], None]


class Watched(SeededEntropy):
    """Noise that is the same whatever is counted: later steps see the same releases."""

    def __init__(self) -> None:
        super().__init__(4)

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        return np.random.default_rng(size).integers(40, 60, size) * MASS


@dataclass(frozen=True)
class Fit:
    """What a fit took from its patients: exact counts of each event, and its private steps.

    Attributes:
        released: each event, and the exact counts that it was about to let out.
        arrays: what the fit keeps.
        steps: what each private step is given beside private rows.
    """

    released: Released
    arrays: dict[str, np.ndarray]
    steps: list[list[Any]]


def nobody(patch: pytest.MonkeyPatch, histories: Histories) -> None:
    """Break nothing."""


def fitted(
    histories: Histories, model: str, budget: PrivacyBudget = BUDGET, twin: Twin = nobody
) -> Fit:
    """Fit, while what is released is always the same, and so are all networks."""
    with pytest.MonkeyPatch.context() as patch:
        twin(patch, histories)
        return _fitted(patch, histories, model, budget)


def _fitted(
    patch: pytest.MonkeyPatch, histories: Histories, model: str, budget: PrivacyBudget
) -> Fit:
    seen: Released = []
    steps: list[list[Any]] = []

    def same(real: Callable[..., Any], event_place: int) -> Callable[..., list[np.ndarray]]:
        def released(*arguments: Any) -> list[np.ndarray]:
            exact = real(*arguments[:-1], Silence())
            seen.append((arguments[event_place], exact))
            noise = Watched()
            return [noise.discrete_gaussian(1.0, one.size).reshape(one.shape) for one in exact]

        return released

    for module, name, place in (
        ("dpsynth.models.marginals.measurement", "joint_histograms", 2),
        ("dpsynth.models.marginals.measurement", "chosen_histograms", 4),
        ("dpsynth.models.histories.steps.stack", "weighted_histograms", 3),
    ):
        real = getattr(import_module(module), name)
        patch.setattr(f"{module}.{name}", same(real, place))
    latent = import_module("dpsynth.models.histories.latent.generator")
    vector = import_module("dpsynth.models.histories.latent.vector")
    patch.setattr(latent, "weighted_histograms", same(latent.weighted_histograms, 3))

    def multiplied(rows: Any, scores: Any, event: Any, entropy: Any, asked: Any) -> np.ndarray:
        exact = exact_contrast_products(rows, scores, event, asked)
        seen.append((event, [exact]))
        return np.random.default_rng(exact.size).integers(-MASS, MASS, exact.size)

    patch.setattr(vector, "contrast_products", multiplied)
    shorten_histories_most(patch)

    def still(self: DpSgd, loss: Any, batch: Any, mask: Any, *, anchor: Any = None) -> None:
        self._drawn = None
        parts = [part.double().sum(dim=0).flatten() for part in anchor or ()]
        steps.append([self.clipping_norm, self.expected_units, *(part.tolist() for part in parts)])
        steps[-1].append(self.flat.values.tolist())

    patch.setattr(DpSgd, "step", still)
    generator = histories_class(model)(DOMAIN)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    generator.fit(histories, plan, SeededEntropy(1))
    assert model == "latent" or generator.models[1][0].network is not None
    assert len(steps) == sum(event.steps for event in plan.events if isinstance(event, PoissonSgd))
    return Fit(seen, generator.arrays(), steps)


@functools.cache
def crowd() -> Histories:
    """Patients among whom one more joins."""
    return histories_of(PATIENTS)


@functools.cache
def fit_of_the_crowd(model: str) -> Fit:
    """One for each model."""
    return fitted(crowd(), model)


@pytest.mark.parametrize(
    ("equal", "model"),
    [(equal, model) for model in LINKED for equal in (True, False)],
)
def test_a_patient_moves_each_histogram_by_her_mass_and_changes_nothing_else(
    equal: bool, model: str
) -> None:
    without = fit_of_the_crowd(model)
    within = fitted(with_patient(crowd(), hostile(ROWS, equal, seed=1)), model)
    names = [event.name for event, _ in without.released]
    assert names == [event.name for event, _ in within.released]
    events = [share.event for share in histories_class(model)(DOMAIN).shares(BUDGET)]
    counted = [event.name for event in events if not isinstance(event, PoissonSgd)]
    assert sorted(names) == sorted(counted), "each once"
    assert without.steps == within.steps
    for (event, before), (_, after) in zip(without.released, within.released, strict=True):
        for one, other in zip(before, after, strict=True):
            moved = (other - one).ravel()
            if (
                model != "latent"
            ):  # whose series are parts of one histogram, and products have signs
                assert (moved >= 0).all()
                assert moved.sum() <= event.mass, event.name
            assert sum(int(one) ** 2 for one in moved) <= event.mass**2, event.name
    for name, array in without.arrays.items():
        assert np.array_equal(array, within.arrays[name]), name


def differing(model: str, twin: Twin) -> set[str]:
    """Which arrays, or "steps", differ between a crowd and a stranger."""
    fits = []
    for histories in (crowd(), hostile(ROWS, equal=False, seed=1)):
        fit = fitted(histories, model, CLEAR, twin)
        fits.append({name: array.tobytes() for name, array in fit.arrays.items()})
        fits[-1]["steps"] = repr(fit.steps).encode()
    one, other = fits
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.mark.parametrize("model", ["cohort", "autoregressive", "latent"])
def test_nothing_that_no_mechanism_let_out_is_kept(model: str) -> None:
    assert differing(model, nobody) == set()


def exact_steps(patch: pytest.MonkeyPatch, histories: Histories) -> None:
    """Broken twin: values are held at their level where there are few steps, as they are."""
    one_way = Stack.one_way

    def looking(self: Stack, *rest: Any) -> Any:
        patch.setattr(step_fit, "HOLD", np.inf if len(self.weights[0]) < 100 else 0)
        return one_way(self, *rest)

    patch.setattr(Stack, "one_way", looking)


def test_a_decision_by_exact_steps_is_caught() -> None:
    assert "table0.0.lines" in differing("cohort", exact_steps)


def by_root(steps: list[Steps], patients: int) -> list[np.ndarray]:
    return [(MASS / np.sqrt(np.maximum(part.counts - 1, 1))).astype(np.int64) for part in steps]


def for_each_series(steps: list[Steps], patients: int) -> list[np.ndarray]:
    return [MASS // np.maximum(part.counts - 1, 1) for part in steps]


@pytest.mark.parametrize("broken", [by_root, for_each_series])
def test_weights_that_are_not_covered_are_refused_before_noise(
    broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "weights_of", broken)
    generator = CohortGenerator(DOMAIN)
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    with pytest.raises(InputError, match="weigh more"):
        generator.fit(crowd(), plan, SeededEntropy(1))


def counting(patch: pytest.MonkeyPatch, histories: Histories) -> None:
    """Broken twin: sums are divided by the number of patients there are."""

    def divided(*arguments: Any, population: int, **rest: Any) -> Any:
        return trainer_of(*arguments, population=len(histories), **rest)

    patch.setattr(autoregressive, "trainer_of", divided)


def norm_of_the_last(patch: pytest.MonkeyPatch, histories: Histories) -> None:
    """Broken twin: the norm is read off patients in the place of drawn ones."""
    kept: list[Any] = []

    def private(networks: Any, batch: Any, mask: Any, *rest: Any) -> float:
        generator, more = kept[-1]
        own = of(generator, histories, *more)
        return read_off(networks, *own.batch(np.array([len(histories) - 1])), *rest)

    def watched(self: Any, given: Histories, *rest: Any) -> Any:
        kept.append((self, rest))
        return of(self, given, *rest)

    of, read_off = AutoregressiveHistories._rows_and_steps, autoregressive.clipping_norm
    patch.setattr(AutoregressiveHistories, "_rows_and_steps", watched)
    patch.setattr(autoregressive, "clipping_norm", private)


@pytest.mark.parametrize("twin", [counting, norm_of_the_last])
def test_steps_that_follow_from_patients_are_caught(twin: Twin) -> None:
    joined = with_patient(crowd(), hostile(ROWS, True, seed=1))
    one, other = (fitted(each, "autoregressive", twin=twin) for each in (crowd(), joined))
    assert one.steps != other.steps
