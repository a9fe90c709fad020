"""P14: the mechanisms that read rows are the events of the entry, each once, with its very noise.

The check: the mechanisms of a fit are watched, and what they were told to add is held against the
events that the ledger was charged for and that the certificate states.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger
from dpsynth.models import generator_class
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.generators import independent
from dpsynth.models.marginals import grains as grains
from dpsynth.models.marginals import measurement
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PaidEntropy, PrivacyBudget, PrivacyPlan
from dpsynth.schema import Schema

Visits = Callable[[int], pd.DataFrame]
MODELS = {name: generator_class(name) for name in NAMES}
PLACES = (
    (independent, "joint_histograms"),
    (measurement, "joint_histograms"),
    (measurement, "chosen_histograms"),
    (grains, "joint_histograms"),
)


@pytest.fixture
def run_events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events that mechanisms on rows are told to run, in their order."""
    events: list[dict[str, Any]] = []

    def watched(mechanism: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            events.extend(
                argument.to_dict() for argument in arguments if hasattr(argument, "with_mu")
            )
            return mechanism(*arguments)

        return run

    for module, name in PLACES:
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    begin = DpSgd.__init__

    def beginning(self: DpSgd, *arguments: Any, **settings: Any) -> None:
        events.append(settings["event"].to_dict())
        begin(self, *arguments, **settings)

    monkeypatch.setattr(DpSgd, "__init__", beginning)
    return events


def is_charged(model: str, ledger: Ledger, data: Any, schema: Schema, events: list[Any]) -> bool:
    """Fit; whether what was run is what the entry and the certificate say, no more and no less."""
    run = dpsynth.fit(
        data, schema, epsilon=2.0, delta=1e-5, dataset="clinic", model=model, ledger=ledger
    )
    (entry,) = ledger.entries()
    assert run.certificate is not None
    return bool(events == entry.plan["events"] == run.certificate["events"])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", MODELS)
def test_the_mechanisms_that_are_run_are_those_of_the_entry(
    model: str, ledger: Ledger, clinic: Schema, visits: Visits, run_events: list[Any]
) -> None:
    assert is_charged(model, ledger, visits(60), clinic, run_events)


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", ["independent", "autoregressive", "tvae"])
def test_a_plan_of_a_larger_budget_is_caught(
    model: str,
    ledger: Ledger,
    clinic: Schema,
    visits: Visits,
    run_events: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Broken twin: the generator is given another plan than the ledger was."""
    kind = MODELS[model]
    fit = kind.fit

    def richer(self: Any, cohort: Any, plan: PrivacyPlan, source: Any, *more: Any) -> Any:
        budget = PrivacyBudget(2 * plan.budget.epsilon, plan.budget.delta)
        another = PrivacyPlan.calibrate(budget, self.shares(budget))
        return fit(self, cohort, another, opened(another, source), *more)

    monkeypatch.setattr(kind, "fit", richer)
    opened = lambda _, source: source  # noqa: E731 - what the fit was handed gives no such noise
    with pytest.raises(BudgetError, match="not one of the open plan"):
        is_charged(model, Ledger.create(tmp_path / "own.sqlite"), visits(60), clinic, [])
    opened = lambda another, source: another.opened(source._entropy)  # noqa: E731
    monkeypatch.setattr(PaidEntropy, "unused", ())
    run_events.clear()
    assert not is_charged(model, ledger, visits(60), clinic, run_events)
