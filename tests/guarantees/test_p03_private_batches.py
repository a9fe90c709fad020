"""P03: the first patients enter a step in the place of those who were drawn, or some enter twice.

The check: between each draw of a trainer and its step, the private units are asked once, for those
who were drawn. It covers what the one-table generators' own test does not: histories, and plug-ins.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsynth.models.dpsgd import DpSgd, Units
from dpsynth.models.histories.networks import AutoregressiveHistories, autoregressive
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.made_histories import domain_of, histories_of
from ..support.short_training import shorten_histories_most
from ..support.source_code import ROOT, nodes_of
from .test_p02_outside_generators import everything, run

PATIENTS = 60
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


class Batches:
    """What a fit does with each draw."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watch draws, units and steps."""
        self.steps = 0
        self.faults: set[str] = set()
        self._drawn: Any = None
        sample, step = DpSgd.sample_batch, DpSgd.step

        def sampled(trainer: Any, units: int) -> Any:
            self._drawn = sample(trainer, units)
            return self._drawn.copy()

        def asked(of: Callable[..., Any]) -> Callable[..., Any]:
            def batch(units: Any, chosen: Any) -> Any:
                if self._drawn is not None:
                    if not np.array_equal(self._drawn, chosen):
                        self.faults.add("not those who were drawn")
                    self._drawn = None
                return of(units, chosen)

            return batch

        def stepped(trainer: Any, *words: Any, **more: Any) -> None:
            self.steps += 1
            if self._drawn is not None:
                self.faults.add("a batch from before")
                self._drawn = None
            step(trainer, *words, **more)

        monkeypatch.setattr(DpSgd, "sample_batch", sampled)
        monkeypatch.setattr(DpSgd, "step", stepped)
        for kind in (Units, PatientUnits):
            monkeypatch.setattr(kind, "batch", asked(kind.batch))  # type: ignore[attr-defined]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_histories_most(monkeypatch)
    monkeypatch.setattr("dpsynth.models.histories.networks.training.AT_ONCE", 20)  # some are drawn


def fit() -> None:
    generator = AutoregressiveHistories(domain_of(PATIENTS, most=(12, 12)))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    generator.fit(histories_of(PATIENTS, 1), plan, plan.opened(SeededEntropy(1)))


@pytest.mark.usefixtures("quick")
def test_histories_that_were_drawn_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Batches(monkeypatch)
    fit()
    assert seen.steps > 0 and seen.faults == set()


def first_ones(trainer: Any, units: Any) -> Any:
    return units.batch(np.arange(len(trainer.sample_batch(len(units)))))


def nobody_again(trainer: Any, units: Any) -> Any:
    """Another broken twin: a batch that was made before the units were drawn."""
    batch = units.batch(np.arange(0))
    trainer.sample_batch(len(units))
    trainer._drawn = 0
    return batch


@pytest.mark.parametrize(
    ("broken", "fault"),
    [(first_ones, "not those who were drawn"), (nobody_again, "a batch from before")],
)
@pytest.mark.usefixtures("quick")
def test_other_histories_are_caught(
    broken: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autoregressive, "next_batch", broken)
    seen = Batches(monkeypatch)
    fit()
    assert fault in seen.faults


def test_a_plug_in_trains_on_those_who_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Batches(monkeypatch)
    run(everything)
    assert seen.steps > 0 and seen.faults == set()
    monkeypatch.setattr("dpsynth.models.dpsgd.trainer.next_batch", first_ones)
    monkeypatch.setattr("dpsynth.models.dpsgd.next_batch", first_ones, raising=False)
    run(everything)
    assert seen.faults == {"not those who were drawn"}


def test_units_are_drawn_in_one_place() -> None:
    """So that what holds of it holds of each generator."""
    places = {
        path.name
        for path in (ROOT / "models").rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "sample_batch"
    }
    assert places == {"trainer.py", "transcript.py"}  # the other one is an observer's own trainer
