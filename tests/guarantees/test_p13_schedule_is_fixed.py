"""P13: early stopping, the best checkpoint, or a learning rate that follows the loss on real rows.

The check: `tvae` is fitted twice with the same draws, once with the loss of the private rows
poisoned. Steps, learning rates, drawn units, noise and progress are the same to the bit. A constant
that is added to the loss changes no gradient, so it must change nothing in the run either. And no
function of the models, of the pipeline or of the command line takes a setting that would ask for
more.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import click
import pandas as pd
import pytest
import torch
from torch import Tensor

import dpsynth.models
from dpsynth.cli import group as cli
from dpsynth.models import Preset
from dpsynth.models.dpsgd import DpSgd, trainer
from dpsynth.models.generators.tvae import Network
from dpsynth.privacy import PaidEntropy, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import fitting

from ..support.quick_fit import quick_fit

Visits = Callable[[int], pd.DataFrame]
Poison = Callable[[Tensor, int], Tensor]
STEPS = 6

ADDED: dict[str, Poison] = {
    "as it is": lambda loss, step: loss,
    "rising": lambda loss, step: loss + 1e12 * (step + 1),
    "falling": lambda loss, step: loss - 1e12 * (step + 1),
}
SCALED: dict[str, Poison] = {
    "a thousand times": lambda loss, step: 1000.0 * loss,
    "turned round": lambda loss, step: -loss,
    "not a number": lambda loss, step: loss * math.nan,
    "infinite at one step": lambda loss, step: loss * (math.inf if step == 2 else 1.0),
}


class EarlyStopping(DpSgd):
    """Broken twin: no more steps once the loss of a batch has risen."""

    best = math.inf
    stopped = False

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        value = float(loss(batch, None).mean()) if len(batch) else self.best
        self.stopped = self.stopped or value > self.best
        self.best = min(self.best, value)
        if self.stopped:
            self._drawn = None
        else:
            super().step(loss, batch, mask, anchor=anchor)


class Plateau(DpSgd):
    """Broken twin: halves the learning rate when the loss has risen."""

    best = math.inf

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        value = float(loss(batch, None).mean()) if len(batch) else self.best
        if value > self.best:
            self.optimizer.learning_rate /= 2
        self.best = min(self.best, value)
        super().step(loss, batch, mask, anchor=anchor)


class SkippingNan(DpSgd):
    """Broken twin: takes no step, and so draws no noise, where the loss is not a number."""

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        if len(batch) and not bool(torch.isfinite(loss(batch, None)).all()):
            self._drawn = None
        else:
            super().step(loss, batch, mask, anchor=anchor)


class BestCheckpoint(DpSgd):
    """Broken twin: ends with the parameters of the step whose loss was lowest."""

    best = math.inf
    kept: Tensor | None = None

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        value = float(loss(batch, None).mean()) if len(batch) else math.inf
        super().step(loss, batch, mask, anchor=anchor)
        if value < self.best:
            self.best, self.kept = value, self.flat.values.clone()
        if self.steps_taken == self.event.steps and self.kept is not None:
            self.flat.values.copy_(self.kept)


class Watched(SeededEntropy):
    """Keeps what it drew for the private steps."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn: list[bytes] = []

    def uniform(self, size: Any) -> Any:
        values = super().uniform(size)
        self.drawn.append(values.tobytes())
        return values

    def normal(self, size: Any, dtype: Any = float) -> Any:
        values = super().normal(size, dtype)
        self.drawn.append(values.tobytes())
        return values


@pytest.fixture
def schedule(
    clinic: Schema,
    visits: Visits,
    few_steps: None,
    quick_plans: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[type[DpSgd], Poison], dict[str, Any]]:
    """Fit with a trainer and a poisoned loss; tell what the schedule was and what came out."""
    few = Preset.of

    def of(*facts: Any) -> Preset:
        return replace(few(*facts), anchor=0.0, steps=STEPS)

    def run(kind: type[DpSgd], poison: Poison) -> dict[str, Any]:
        steps: list[Any] = []
        progress: list[Any] = []
        entropy, private, loss = Watched(5), False, Network.loss

        class Recorded(kind):  # type: ignore[valid-type, misc]
            def sample_batch(self, units: int) -> Any:
                nonlocal private
                private = True
                return super().sample_batch(units)

            def step(self, *arguments: Any, **options: Any) -> None:
                taken, mask = self.optimizer.taken, arguments[2]
                super().step(*arguments, **options)
                rate = self.optimizer.rate(taken)
                steps.append((self.optimizer.taken, rate, len(mask), self.clipping_norm))

        def poisoned(self: Network, rows: Tensor, activations: Any) -> Tensor:
            value = loss(self, rows, activations)
            return poison(value, len(steps)) if private else value

        with monkeypatch.context() as patch:
            patch.setattr(Preset, "of", of)
            patch.setattr(trainer, "DpSgd", Recorded)
            patch.setattr(Network, "loss", poisoned)
            fitted = quick_fit(
                visits(80),
                clinic,
                epsilon=2.0,
                delta=1e-5,
                model="tvae",
                entropy=entropy,
                progress=lambda stage, fraction: progress.append((stage, fraction)),
            )
        return {
            "steps": steps,
            "draws": entropy.drawn,
            "progress": progress,
            "arrays": {name: array.tobytes() for name, array in fitted.arrays.items()},
            "config": fitted.config,
            "certificate": fitted.certificate,
        }

    return run


def follows_the_loss(schedule: Callable[..., dict[str, Any]], kind: type[DpSgd]) -> set[str]:
    """Which parts of a fit change with the loss on private rows, and must not."""
    plain = schedule(kind, ADDED["as it is"])
    found = set()
    for poison in (*list(ADDED.values())[1:], *SCALED.values()):
        poisoned = schedule(kind, poison)
        fixed = set(plain) - (set() if poison in ADDED.values() else {"arrays"})
        found |= {part for part in fixed if plain[part] != poisoned[part]}
    return found


def test_nothing_follows_the_loss(schedule: Callable[..., dict[str, Any]]) -> None:
    assert follows_the_loss(schedule, DpSgd) == set()
    steps = schedule(DpSgd, SCALED["a thousand times"])
    assert steps["arrays"] != schedule(DpSgd, ADDED["as it is"])["arrays"], "the poison works"


def test_the_schedule_is_the_public_one(schedule: Callable[..., dict[str, Any]]) -> None:
    found = schedule(DpSgd, SCALED["not a number"])["steps"]
    assert [taken for taken, *_ in found] == list(range(1, STEPS + 1))
    cosine = [0.01 * (1 + math.cos(math.pi * step / STEPS)) / 2 for step in range(STEPS)]
    assert [rate for _, rate, *_ in found] == pytest.approx(cosine)


@pytest.mark.parametrize(
    ("twin", "part"),
    [
        (EarlyStopping, "steps"),
        (Plateau, "steps"),
        (SkippingNan, "draws"),
        (BestCheckpoint, "arrays"),
    ],
)
def test_a_trainer_that_follows_the_loss_is_caught(
    twin: type[DpSgd],
    part: str,
    schedule: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PaidEntropy, "unused", ())  # a fit that skips steps would not be kept
    assert part in follows_the_loss(schedule, twin)


BANNED = ("patience", "early", "stop", "best", "checkpoint", "valid", "holdout", "plateau")
BANNED += ("monitor", "metric", "tolerance", "until", "retries", "restarts", "tune", "trials")
KEPT = "checkpoints"  # where a fit is kept; none but the last is ever continued: P14


def asks_for_more(callable_: Callable[..., Any]) -> list[str]:
    """Parameters by which a fit could follow what it sees."""
    try:
        names = list(inspect.signature(callable_).parameters)
    except ValueError:
        return []
    return [name for name in names if name != KEPT and any(word in name.lower() for word in BANNED)]


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function, class and method of the models and of the pipeline."""
    modules = [import_module(m.name) for m in pkgutil.walk_packages(
        dpsynth.models.__path__, "dpsynth.models.")]  # fmt: skip
    for module in [*modules, fitting]:
        for name, item in vars(module).items():
            if inspect.isfunction(item) or inspect.isclass(item):
                yield f"{module.__name__}.{name}", item
            if inspect.isclass(item) and item.__module__ == module.__name__:
                for method, function in inspect.getmembers(item, inspect.isfunction):
                    yield f"{module.__name__}.{name}.{method}", function


def options(command: click.Command) -> list[str]:
    return [parameter.name or "" for parameter in command.params]


def test_no_function_takes_patience() -> None:
    def impatient(cohort: Any, *, patience: int = 3) -> None: ...

    class Settings:
        def __init__(self, early_stopping: bool) -> None: ...

    assert asks_for_more(impatient) == ["patience"]
    assert asks_for_more(Settings) == ["early_stopping"]
    assert asks_for_more(lambda best_checkpoint, checkpoints: None) == ["best_checkpoint"]
    found = dict(callables())
    assert {
        "dpsynth.synthesis.fitting.fit",
        "dpsynth.models.dpsgd.optimizer.DpSgd",
        "dpsynth.models.generators.warm_started.WarmStarted.fit",
    } <= {*found}
    assert {name: asks_for_more(item) for name, item in found.items() if asks_for_more(item)} == {}


def test_the_command_line_takes_no_patience() -> None:
    assert isinstance(cli.commands, click.Group)
    context = click.Context(cli.commands)
    for name in cli.commands.list_commands(context):
        command = cli.commands.get_command(context, name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        for one in inner:
            named = [o for o in options(one) if any(word in o for word in BANNED)]
            # these release no fit; `run` holds units out before the fit, which never sees them
            holding = ("split", "evaluate", "compare", "audit", "run")
            allowed = {"holdout"} if name in holding else {KEPT} if name == "fit" else set()
            assert set(named) <= allowed, f"{name} takes {named}"
