"""P10: a fit of linked tables that was stopped and resumed takes steps, or counts, twice.

The check is that of one table: what the run descends from is counted, wherever the fit was stopped.
What counts released and training uses up (days between rows, grains, the networks before their
private steps) is in the checkpoint, and no state of a random generator.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from dpsynth.errors import BudgetError, InputError
from dpsynth.models.dpsgd import trainer as trainer_state
from dpsynth.models.histories import CohortGenerator, domain
from dpsynth.models.histories import generator as generators
from dpsynth.models.histories.networks import AutoregressiveHistories
from dpsynth.models.histories.persons import PersonNetwork
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.privacy import PaidEntropy
from dpsynth.synthesis import Run, checkpoints, readers
from dpsynth.synthesis.checkpoints import CheckpointError, FitCheckpoints
from dpsynth.tables import simulate_cohort

from ..support.clinic import clinic_schema, write_clinic
from ..support.discovered_cohort import ICD, cohort_of, discovered_cohort
from ..support.short_training import shorten_histories_most, take_steps_of_histories
from .stopped_fits import STEPS, Spent, watch_spending
from .stopped_histories import LinkedOffice

COUNTS = 2  # of grains, and of everything else
PLACES = {
    "reading": ("reading", 1.0),
    "counting": ("patients", 0.5),
    "steps": ("steps", 0.0),
    "first step": ("training", 1 / STEPS),
    "training": ("training", 3 / STEPS),
    "last step": ("training", 1.0),
}


@pytest.fixture
def stopping(new_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkedOffice:
    """An office whose fit keeps its state after every second private step."""
    shorten_histories_most(monkeypatch, wide=domain.WIDE)
    take_steps_of_histories(monkeypatch, STEPS)
    monkeypatch.setattr(FitCheckpoints, "every", 2)
    folder = tmp_path / "office"
    folder.mkdir()
    write_clinic(folder / "tables", simulate_cohort(200, seed=2))
    shutil.copyfile(new_ledger, folder / "ledger.sqlite")
    return LinkedOffice(folder, clinic_schema())


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    counts = [(generators, "count_grains"), (CohortGenerator, "_count")]
    return watch_spending(monkeypatch, counts)


def test_the_plan_is_spent_once_wherever_a_fit_stops(stopping: LinkedOffice, spent: Spent) -> None:
    for place in PLACES.values():
        stopping.stopped(*place)
        [entry] = stopping.entries
        assert entry.status == "reading"
    run = stopping.fit()
    assert (spent.counts, spent.steps) == (COUNTS, STEPS)
    [entry] = stopping.entries
    assert (entry.status, entry.run) == ("charged", run.digest)
    assert entry.checkpoint is not None
    assert (entry.checkpoint.step, len(entry.resumed)) == (STEPS, len(PLACES))
    assert not stopping.checkpoint.parent.exists()
    assert len(Run.load(stopping.folder / "run").sample(20, seed=1)["patients"]) == 20


def counting_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken version that takes the weights over, and counts anew."""
    fit = CohortGenerator.fit

    def broken(self: Any, *given: Any) -> Any:
        *others, kept = given
        state, kept.state = kept.state, None
        train = type(self)._train

        def trained(self: Any, *settings: Any) -> None:
            kept.state = state
            train(self, *settings)

        monkeypatch.setattr(type(self), "_train", trained)
        monkeypatch.setattr(kept, "save", lambda _: None)
        return fit(self, *others, kept)

    monkeypatch.setattr(CohortGenerator, "fit", broken)
    monkeypatch.setattr(FitCheckpoints, "require_all_steps", lambda *_: None)


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


@pytest.mark.parametrize("breaks", [counting_again, steps_from_zero])
def test_a_resumed_fit_that_spends_more_is_caught(
    breaks: Callable[..., None],
    stopping: LinkedOffice,
    spent: Spent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopping.stopped(*PLACES["training"])
    breaks(monkeypatch)
    # the plan of a fit that goes on forgets what ran before
    monkeypatch.setattr(PaidEntropy, "take_over", lambda *_: None)
    monkeypatch.setattr(PaidEntropy, "unused", ())
    with suppress(InputError):  # new counts may give other bins, which fit no network that was kept
        stopping.fit()
    assert (spent.counts, spent.steps) != (COUNTS, STEPS)


def test_a_resumed_fit_gets_no_noise_for_a_second_count(
    stopping: LinkedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping.stopped(*PLACES["training"])
    counting_again(monkeypatch)
    with pytest.raises(BudgetError, match="used up before"):
        stopping.fit()


def test_what_counts_released_is_taken_over(
    stopping: LinkedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins, mixtures, days between rows, grains and networks, to the bit."""
    before: list[tuple[dict[str, Any], PersonNetwork | None]] = []
    train = AutoregressiveHistories._train

    def watched(self: Any, histories: Any, grains: Any, *rest: Any) -> None:
        before.append((self._released(grains), self.taught))
        train(self, histories, grains, *rest)

    monkeypatch.setattr(AutoregressiveHistories, "_train", watched)
    stopping.stopped(*PLACES["training"])
    stopping.fit()
    (first, none), (second, taught) = before
    assert none is None and taught is not None
    assert any(name.startswith("released.gaps.") for name in first)
    assert any(name.startswith("released.grains.-1.") for name in first)
    assert first.keys() <= second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_gradients_are_taken_where_they_began(
    stopping: LinkedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at the networks as they were before the first one, which the checkpoint has."""
    scored: list[bytes] = []
    scores, taken_over = AutoregressiveHistories._scores, trainer_state.go_on

    def watched(self: Any, *given: Any) -> Any:
        found = scores(self, *given)
        values = [value for one in found for value in one.network.state_dict().values()]
        scored.append(b"".join(value.numpy().tobytes() for value in values))
        return found

    after: list[int] = []

    def gone_on(trainer: Any, step: int, arrays: Any) -> None:
        taken_over(trainer, step, arrays)
        assert np.array_equal(trainer.flat.values.numpy(), arrays["trainer.weights"])
        after.append(step)

    monkeypatch.setattr(AutoregressiveHistories, "_scores", watched)
    monkeypatch.setattr(trainer_state, "go_on", gone_on)
    stopping.stopped(*PLACES["training"])
    stopping.fit()
    assert scored[0] == scored[1] and after == [2]


def test_a_checkpoint_holds_what_was_released_and_is_private(stopping: LinkedOffice) -> None:
    stopping.stopped(*PLACES["training"])
    assert stat.S_IMODE(stopping.checkpoint.stat().st_mode) == 0o600
    with safe_open(stopping.checkpoint, "np") as file:
        names = set(file.keys())
    known = ("person.", "table", "trainer.", "released.gaps.", "released.grains.")
    assert {name for name in names if not name.startswith(known)} == set()
    assert b"P000001" not in stopping.checkpoint.read_bytes()


def test_another_training_is_refused(
    stopping: LinkedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping.stopped(*PLACES["training"])
    settings = HistorySettings.of(None, None)  # type: ignore[arg-type]
    with monkeypatch.context() as patch:
        patch.setattr(HistorySettings, "of", lambda *_: replace(settings, tie=0.5))
        with pytest.raises(CheckpointError, match="^the settings of the training changed"):
            stopping.fit()
    with pytest.raises(InputError, match="keeps no checkpoints"):
        stopping.fit(model="cohort")
    [entry] = stopping.entries
    assert (entry.status, len(entry.resumed)) == ("reading", 0)


def test_a_killed_fit_goes_on(stopping: LinkedOffice) -> None:
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
    run = stopping.fit()
    [entry] = stopping.entries
    assert (entry.status, entry.run, len(entry.resumed)) == ("charged", run.digest, 1)


def test_found_codes_are_not_looked_for_again(
    stopping: LinkedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = [["428.0", "250.01"][: 1 + number % 2] for number in range(300)]
    devices = [("AA001", "BB002")[number % 2] for number in range(300)]
    shutil.rmtree(stopping.folder / "tables")
    write_clinic(stopping.folder / "tables", cohort_of(devices, {"stays": codes}))
    schema = discovered_cohort(("stays",), ICD, patients=300)
    office = replace(stopping, schema=schema, settings={"epsilon": 8.0})
    office.stopped(*PLACES["reading"])  # they are kept before rows are coded by them

    def find(*_: Any, **__: Any) -> None:
        raise AssertionError("the codes were found already")

    monkeypatch.setattr(readers, "find_codes_of_patients", find)
    run = office.fit()
    assert {"428.0", "250.01"} <= set(run.sample(500, seed=1)["stays"]["code"])
