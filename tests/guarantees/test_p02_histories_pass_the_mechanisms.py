"""P02, P04 for histories: what one patient adds to each event, and that nothing else is kept.

The counts that every event of a fit is about to release are watched, with and without one patient
of as many rows as there may be. Private steps change nothing here: what surrounds them, such as
their anchor (P01), clipping norm and divisor (P23), must be the same. Broken versions: weights by
the root of the number of rows, and a patient counted once for each series; a divisor from rows.

One patient more hardly moves a total, so a crowd and a stranger are compared too, at a budget whose
noise hides neither: a decision by something exact in the place of something released shows then.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories
from dpsynth.errors import InputError
from dpsynth.models import histories_class
from dpsynth.models.dpsgd import DpSgd, trainer_of
from dpsynth.models.histories import CohortGenerator, domain
from dpsynth.models.histories.networks import AutoregressiveHistories, autoregressive
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import Stack, StepSettings
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

from ..support.bare_counts import Silence
from ..support.made_histories import domain_of, histories_of, hostile, with_patient
from ..support.short_training import shorten_gaps, shorten_networks

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
CLEAR = PrivacyBudget(epsilon=300.0, delta=1e-6)
PATIENTS = 150
Event = JointHistograms | ChosenHistograms
Released = list[tuple[Event, list[np.ndarray]]]


class Watched(SeededEntropy):
    """Noise that is the same whatever is counted: later steps see the same releases."""

    def __init__(self) -> None:
        super().__init__(4)

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        return np.random.default_rng(size).integers(40, 60, size) * MASS


def counts_of(
    histories: Histories, monkeypatch: pytest.MonkeyPatch, model: str, budget: Any = BUDGET
) -> tuple[Released, Any, list[list[Any]]]:
    """Fit, and return the exact counts of each event; what is released is always the same.

    Also what each private step is given beside private rows.
    """
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
        monkeypatch.setattr(f"{module}.{name}", same(real, place))
    quick = HistorySettings(10, 20, 20, 1.0, 1.0, StepSettings(16, 20, 20, 1.0, 8))
    monkeypatch.setattr(HistorySettings, "of", lambda *_: quick)
    monkeypatch.setattr(domain, "WIDE", 3)  # the table of visits has a network
    shorten_networks(monkeypatch)
    shorten_gaps(monkeypatch)
    for name, few in (("WARM_BATCH", 50), ("REHEARSAL", 100)):
        monkeypatch.setattr(f"dpsynth.models.histories.networks.tvae.{name}", few)

    def still(self: DpSgd, loss: Any, batch: Any, mask: Any, *, anchor: Any = None) -> None:
        self._drawn = None
        parts = [part.double().sum(dim=0).flatten() for part in anchor or ()]
        steps.append([self.clipping_norm, self.expected_units, *(part.tolist() for part in parts)])
        steps[-1].append(self.flat.values.tolist())

    monkeypatch.setattr(DpSgd, "step", still)
    generator = histories_class(model)(domain_of(PATIENTS))
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    generator.fit(histories, plan, SeededEntropy(1))
    assert generator.models[1][0].network is not None
    monkeypatch.undo()
    return seen, generator, steps


@pytest.mark.parametrize(
    ("equal", "model"),
    [
        pytest.param(equal, model, marks=pytest.mark.long if model == "tvae" else ())
        for model in LINKED
        for equal in (True, False)
    ],
)
def test_a_patient_moves_each_histogram_by_her_mass_and_changes_nothing_else(
    equal: bool, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories = histories_of(PATIENTS)
    joined = with_patient(histories, hostile(60, equal, seed=1))
    without, kept, steps = counts_of(histories, monkeypatch, model)
    within, same, others = counts_of(joined, monkeypatch, model)
    assert [event.name for event, _ in without] == [event.name for event, _ in within]
    events = [share.event for share in histories_class(model)(domain_of()).shares(BUDGET)]
    counted = [event.name for event in events if not isinstance(event, PoissonSgd)]
    assert sorted(event.name for event, _ in without) == sorted(counted), "each once"
    assert len(steps) == sum(one.steps for one in events if isinstance(one, PoissonSgd))
    assert steps == others
    for (event, before), (_, after) in zip(without, within, strict=True):
        for one, other in zip(before, after, strict=True):
            moved = (other - one).ravel()
            assert (moved >= 0).all()
            assert moved.sum() <= event.mass, event.name
            assert np.linalg.norm(moved) <= event.mass
    for name, array in kept.arrays().items():
        assert np.array_equal(array, same.arrays()[name]), name


def differing(model: str, patch: pytest.MonkeyPatch, twin: Callable[..., None]) -> set[str]:
    """Which arrays, or "steps", differ between a crowd and a stranger."""
    fits = []
    for histories in (histories_of(PATIENTS), hostile(60, equal=False, seed=1)):
        twin(patch)
        _, generator, steps = counts_of(histories, patch, model, CLEAR)
        fits.append({name: array.tobytes() for name, array in generator.arrays().items()})
        fits[-1]["steps"] = repr(steps).encode()
    one, other = fits
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.mark.parametrize("model", ["cohort", pytest.param("tvae", marks=pytest.mark.long)])
def test_nothing_that_no_mechanism_let_out_is_kept(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differing(model, monkeypatch, lambda patch: None) == set()


def exact_steps(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: values are held at their level where there are few steps, as they are."""
    one_way = Stack.one_way

    def looking(self: Stack, *rest: Any) -> Any:
        patch.setattr(step_fit, "HOLD", np.inf if len(self.weights[0]) < 100 else 0)
        return one_way(self, *rest)

    patch.setattr(Stack, "one_way", looking)


def test_a_decision_by_exact_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "table0.0.lines" in differing("cohort", monkeypatch, exact_steps)


def by_root(steps: list[Steps], patients: int) -> list[np.ndarray]:
    return [(MASS / np.sqrt(np.maximum(part.counts - 1, 1))).astype(np.int64) for part in steps]


def for_each_series(steps: list[Steps], patients: int) -> list[np.ndarray]:
    return [MASS // np.maximum(part.counts - 1, 1) for part in steps]


@pytest.mark.parametrize("broken", [by_root, for_each_series])
def test_weights_that_are_not_covered_are_refused_before_noise(
    broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "weights_of", broken)
    generator = CohortGenerator(domain_of(PATIENTS))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    with pytest.raises(InputError, match="weigh more"):
        generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1))


def test_a_divisor_from_private_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: sums are divided by the number of patients there are."""

    def fitted(histories: Histories) -> list[list[Any]]:
        def counting(*arguments: Any, population: int, **rest: Any) -> Any:
            return trainer_of(*arguments, population=len(histories), **rest)

        monkeypatch.setattr(autoregressive, "trainer_of", counting)
        return counts_of(histories, monkeypatch, "autoregressive")[2]

    histories = histories_of(PATIENTS)
    assert fitted(histories) != fitted(with_patient(histories, hostile(60, True, seed=1)))


def test_a_clipping_norm_of_patients_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: the norm is read off patients in the place of drawn ones."""

    def fitted(histories: Histories) -> list[list[Any]]:
        def private(networks: Any, batch: Any, mask: Any, *rest: Any) -> float:
            own = units(histories, *kept[-1])
            return read_off(networks, *own.batch(np.array([len(histories) - 1])), *rest)

        kept: list[Any] = []

        def watched(self: Any, given: Histories, *rest: Any) -> Any:
            kept.append((self, rest))
            return of(self, given, *rest)

        def units(given: Histories, generator: Any, rest: Any) -> Any:
            return of(generator, given, *rest)

        of, read_off = AutoregressiveHistories._rows_and_steps, autoregressive.clipping_norm
        monkeypatch.setattr(AutoregressiveHistories, "_rows_and_steps", watched)
        monkeypatch.setattr(autoregressive, "clipping_norm", private)
        return counts_of(histories, monkeypatch, "autoregressive")[2]

    histories = histories_of(PATIENTS)
    assert fitted(histories) != fitted(with_patient(histories, hostile(60, True, seed=1)))
