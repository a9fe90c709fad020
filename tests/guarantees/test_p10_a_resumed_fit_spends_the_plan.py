"""P10: a fit that was stopped and resumed takes steps, or counts, that nobody paid for.

The check: a fit is stopped at several places and goes on. What its run descends from is counted:
each event of counts once, and the planned private steps, whatever was lost in between. It is one
entry, charged once.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.ledger import close
from dpsynth.models import NO_CHECKPOINTS
from dpsynth.models.dpsgd import optimizer
from dpsynth.models.generators import ctgan, training, warm_started
from dpsynth.models.marginals import initial_model
from dpsynth.privacy import PaidEntropy
from dpsynth.synthesis import Run, checkpoints, readers
from dpsynth.synthesis.checkpoints import FitCheckpoints

from ..support.discovered_ward import discovered_ward, ward
from .stopped_fits import PLACES, STEPS, Office, Spent, watch_spending

pytestmark = pytest.mark.usefixtures("few_steps", "quick_plans")


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    return watch_spending(monkeypatch, [(initial_model, "measure")])


@pytest.mark.parametrize("model", ["autoregressive", "tvae", "ctgan"])
def test_the_plan_is_spent_once_wherever_a_fit_stops(
    model: str, stopping: Office, spent: Spent
) -> None:
    stopping.settings = {"model": model}
    places = dict(PLACES)
    if model != "tvae":
        del places["settling"]
    for place in places.values():
        stopping.stopped(*place)
        [entry] = stopping.entries
        assert entry.status == "reading"
    run = stopping.fit()
    assert (spent.counts, spent.steps) == (1, STEPS)
    [entry] = stopping.entries
    assert (entry.status, entry.run) == ("charged", run.digest)
    assert entry.checkpoint is not None
    assert (entry.checkpoint.step, len(entry.resumed)) == (STEPS, len(places))
    charge = run.certificate["ledger"] if run.certificate else {}
    assert (charge["fits"], charge["entry"], charge["epsilon_total"]) == (1, entry.id, 2.0)
    assert not stopping.checkpoint.parent.exists()
    Run.load(stopping.folder / "run")


@pytest.mark.parametrize("name", ["ledger.ledger.Ledger.begin", "ledger.ledger.Ledger.saw"])
def test_a_fit_that_had_hardly_begun_goes_on(
    name: str, stopping: Office, spent: Spent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before reading is recorded, and while the source is compared: with what stands in between."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"dpsynth.{name}", stop)
        with pytest.raises(KeyboardInterrupt):
            stopping.fit()
    stopping.fit()
    assert (spent.counts, spent.steps) == (1, STEPS)
    [entry] = stopping.ledger.entries()
    assert (entry.status, len(entry.resumed)) == ("charged", 1)
    book = stopping.ledger
    with book.store.reading() as connection:
        assert list(book.store.sources(connection)) == [entry.id]


def counting_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken version that takes the weights over, and counts anew for the mixture."""
    start = training.counted_start

    def broken(*given: Any, **other: Any) -> Any:
        *others, kept = given
        return start(*others, NO_CHECKPOINTS, **other)

    for module in (warm_started, ctgan):
        monkeypatch.setattr(module, "counted_start", broken)


def steps_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one: the weights are taken over, and all steps are taken from there."""
    read = FitCheckpoints._read

    def broken(self: Any) -> None:
        read(self)
        if self.state is not None:
            self.state = replace(self.state, step=0)

    monkeypatch.setattr(FitCheckpoints, "_read", broken)
    monkeypatch.setattr(
        checkpoints, "continued", lambda book, entry, **_: book.state().entry(entry, book.place)
    )
    monkeypatch.setattr(checkpoints, "enter_checkpoint", lambda *_, **__: None)


def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the plan of a fit that goes on forget what ran before."""
    monkeypatch.setattr(PaidEntropy, "take_over", lambda *_: None)
    monkeypatch.setattr(PaidEntropy, "unused", ())


@pytest.mark.parametrize("model", ["autoregressive", "ctgan"])
@pytest.mark.parametrize("breaks", [counting_again, steps_from_zero])
def test_a_resumed_fit_that_spends_more_is_caught(
    breaks: Callable[..., None],
    model: str,
    stopping: Office,
    spent: Spent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopping.settings = {"model": model}
    stopping.stopped(*PLACES["training"])
    breaks(monkeypatch)
    unguarded(monkeypatch)
    with suppress(InputError):  # new counts may give other bins, which fit no network that was kept
        stopping.fit()
    assert (spent.counts, spent.steps) != (1, STEPS)


def test_a_resumed_fit_gets_no_noise_for_a_second_count(
    stopping: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping.settings = {"model": "autoregressive"}
    stopping.stopped(*PLACES["training"])
    counting_again(monkeypatch)
    with pytest.raises(BudgetError, match="used up before"):
        stopping.fit()
    assert not (stopping.folder / "run").exists()


def test_found_codes_are_not_looked_for_again(
    stopping: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = replace(stopping, schema=discovered_ward(), settings={"epsilon": 8.0})
    ward().to_csv(office.folder / "source.csv", index=False)
    office.stopped(*PLACES["reading"])  # they are kept before rows are coded by them

    def find(*_: Any, **__: Any) -> None:
        raise AssertionError("the codes were found already")

    monkeypatch.setattr(readers, "find_codes", find)
    run = office.fit()
    assert any(column.discovery and column.discovery.found for column in run.schema.modelled)


def test_a_result_is_never_drawn_again(stopping: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that follows from a step closes the entry: trying again would choose among noise."""

    def diverged(*_: Any) -> None:
        raise DpsynthError("training diverged")

    with monkeypatch.context() as patch:
        patch.setattr(optimizer, "_check_finite", diverged)
        with pytest.raises(DpsynthError, match="diverged"):
            stopping.fit()
    assert [entry.status for entry in stopping.entries] == ["failed"]
    with pytest.raises(BudgetError, match="is failed, so its fit cannot go on"):
        stopping.fit()


def test_no_run_is_saved_before_the_last_step_is_recorded(
    stopping: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FitCheckpoints, "due", lambda self, step, steps: step == 2)
    with pytest.raises(BudgetError, match="has 2 of 5 private steps"):
        stopping.fit()
    assert not (stopping.folder / "run").exists()


def killed_at(office: Office, points: Iterator[float]) -> bool:
    """Fit in a process of its own, which is killed after so many calls, or seconds; tell if so."""
    child = os.fork()
    if not child:
        torch.set_num_threads(1)  # threads of the parent do not live in a fork
        try:
            office.fit()
        finally:
            os._exit(0)
    time.sleep(next(points))
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def finish(office: Office) -> None:
    """Go on until there is a run; check what it cost.

    A fit that was killed after the ledger recorded a checkpoint, and before that was in its place,
    cannot go on: nothing is drawn again.
    """
    if not (office.folder / "run").exists():
        try:
            office.fit()
        except BudgetError as error:
            assert "this is not the last checkpoint" in str(error)
            assert [entry.status for entry in office.entries] == ["reading"]
            return
    [entry] = office.entries
    if entry.status == "reading":  # killed between the two
        close(office.ledger, Run.load(office.folder / "run"))
        [entry] = office.entries
    assert (entry.status, entry.run) == ("charged", Run.load(office.folder / "run").digest)
    assert entry.checkpoint is not None and entry.checkpoint.step == STEPS


@pytest.mark.parametrize("model", ["autoregressive", "ctgan"])
def test_a_killed_fit_goes_on(model: str, stopping: Office) -> None:
    stopping.settings = {"model": model}
    child = os.fork()
    if not child:

        def die(now: str, fraction: float) -> None:
            if now == "training" and fraction >= 3 / STEPS:
                os.kill(os.getpid(), signal.SIGKILL)

        torch.set_num_threads(1)  # threads of the parent do not live in a fork
        try:
            stopping.fit(die)
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    [entry] = stopping.entries
    assert entry.status == "reading"
    finish(stopping)


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.long)])
def test_kills_at_any_moment_change_nothing(
    kills: int, stopping: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_USER", "tester")
    chance, done, fits = random.Random(4), 0, 0
    fresh = shutil.copytree(stopping.folder, tmp_path / "fresh")
    stopping.fit()
    started = time.monotonic()
    replace(stopping, folder=shutil.copytree(fresh, tmp_path / "timed")).fit()
    whole = time.monotonic() - started
    while done < kills:
        fits += 1
        now = replace(stopping, folder=shutil.copytree(fresh, tmp_path / f"office{fits}"))
        waits = iter(lambda: chance.uniform(0, 1.1 * whole), None)
        while not (now.folder / "run").exists() and done < kills:
            done += killed_at(now, waits)
        finish(now)
