"""P14: a private step is drawn twice under one charge, and both results are on the disk.

The check: a fit stops at each point between drawing a result and having it in the folder, by an
error and by a kill: no room, a ledger that cannot be written to, an answer of the ledger that is
lost, a file that cannot be put into place. Then every copy of the folder that there ever was is put
back, and the fit is told to go on. All files are searched for all results that were drawn: of each
step, there is one at most.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.files import atomic_file, write_atomically
from dpsynth.ledger import Ledger, Use, charged
from dpsynth.models import TrainingState
from dpsynth.privacy import NoiseSource
from dpsynth.schema import Schema
from dpsynth.synthesis import Prepared, checkpoints, prepare
from dpsynth.synthesis.checkpoints import NAME, CheckpointError, FitCheckpoints, facts_of, kept_in

from .stopped_fits import STEPS, Office
from .test_p10_a_resumed_fit_of_histories import stopping as linked_stopping  # noqa: F401

USE = Use("clinic")
Patch = pytest.MonkeyPatch


@dataclass
class Desk:
    """A fit whose private steps draw bytes, so that each can be found in any file."""

    folder: Path
    ledger: Ledger
    schema: Schema
    prepared: Prepared
    drawn: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    def go_on(self, fault: Callable[[Patch], None] = lambda _: None) -> None:
        """Begin or go on, take one step, keep it, and be stopped."""
        facts = facts_of(self.schema, self.prepared, USE, seeded=False, ledger=self.ledger.id)
        with (
            kept_in(self.kept, self.folder / "run", facts, []) as kept,
            charged(
                self.ledger,
                self.prepared.plan,
                self.schema,
                "independent",
                USE,
                networks=False,
                kept=kept,
            ) as charges,
        ):
            if kept.digests is None:
                assert charges.first is not None
                kept.began(charges.first, [])
            step, result = kept.step + 1, secrets.token_bytes(32)
            self.drawn.append((step, result))
            with pytest.MonkeyPatch.context() as patch:
                fault(patch)
                kept.save(TrainingState(step, {}, {"result": np.frombuffer(result, np.uint8)}))
            raise KeyboardInterrupt

    def killed(self, fault: Callable[[Patch], None]) -> None:
        """Do the same in a process that the fault kills; it tells what it drew by a pipe."""
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            before = len(self.drawn)
            draw = self.drawn.append

            class Told(list[tuple[int, bytes]]):
                def append(self, one: tuple[int, bytes]) -> None:
                    os.write(theirs, bytes([one[0]]) + one[1])
                    draw(one)

            self.drawn = Told(self.drawn[:before])
            try:
                self.go_on(fault)
            finally:
                os._exit(0)
        os.close(theirs)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        told = os.read(ours, 33)
        os.close(ours)
        self.drawn.append((told[0], told[1:]))

    def copy(self) -> None:
        """Keep a copy of the folder of checkpoints, whatever is in it."""
        copies = len(list(self.folder.glob("copy*")))
        if self.kept.exists():
            shutil.copytree(self.kept, self.folder / f"copy{copies}")

    def results(self) -> dict[int, int]:
        """Count the results of each step that are in any file."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        contents = [path.read_bytes() for path in files if path.name != "ledger.sqlite"]
        found: dict[int, int] = {}
        for step, result in self.drawn:
            found[step] = found.get(step, 0) + any(result in content for content in contents)
        return found


@pytest.fixture(scope="module")
def prepared(clinic: Schema) -> Prepared:
    return prepare(clinic, epsilon=2, delta=1e-5, model="independent")


@pytest.fixture
def desk(tmp_path: Path, ledger: Ledger, clinic: Schema, prepared: Prepared) -> Desk:
    return Desk(tmp_path, ledger, clinic, prepared)


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


AWAY = BudgetError("ledger x: the server or its database cannot be reached")
FULL = OSError(errno.ENOSPC, "full")


def no_room(patch: Patch) -> None:
    patch.setattr(checkpoints, "make_room", failing(InputError("the disk is full")))


def no_record(patch: Patch) -> None:
    patch.setattr(checkpoints, "enter_checkpoint", failing(AWAY))


def after_record(then: Callable[..., None]) -> Callable[[Patch], None]:
    def fault(patch: Patch) -> None:
        enter = checkpoints.enter_checkpoint

        def entered(*given: Any, **more: Any) -> None:
            enter(*given, **more)
            then()

        patch.setattr(checkpoints, "enter_checkpoint", entered)

    return fault


def at_rename(
    before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
) -> Callable[[Patch], None]:
    """Do something when a checkpoint, and no other file, is put into its place."""

    def fault(patch: Patch) -> None:
        rename = os.replace

        def renamed(source: Any, target: Any) -> None:
            ours = Path(target).name == NAME
            (before if ours else bool)()
            rename(source, target)
            (after if ours else bool)()

        patch.setattr(os, "replace", renamed)

    return fault


def killed_before_record(patch: Patch) -> None:
    patch.setattr(checkpoints, "enter_checkpoint", die)


FAULTS: dict[str, tuple[Callable[[Patch], None], bool, bool]] = {
    # the fault, whether it kills, and whether the fit can go on afterwards
    "no room": (no_room, False, True),
    "no record": (no_record, False, True),
    "an answer lost": (after_record(failing(AWAY)), False, False),
    "no rename": (at_rename(failing(FULL)), False, False),
    "killed before it was recorded": (killed_before_record, True, True),
    "killed after it was recorded": (after_record(die), True, False),
    "killed before it was in place": (at_rename(die), True, False),
    "killed when it was in place": (at_rename(after=die), True, True),
}


def played(desk: Desk, name: str) -> bool:
    """Stop a fit by a fault, put back all that was ever in its folder; whether it went on."""
    fault, kills, _ = FAULTS[name]
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()
    desk.copy()
    if kills:
        desk.killed(fault)
    else:
        with pytest.raises(CheckpointError, match="no checkpoint can be kept"):
            desk.go_on(fault)
    desk.copy()
    went_on = False
    for copy in sorted(desk.folder.glob("copy*")) * 2:
        shutil.rmtree(desk.kept, ignore_errors=True)
        shutil.copytree(copy, desk.kept)
        with suppress(DpsynthError):
            try:
                desk.go_on()
            except KeyboardInterrupt:
                went_on = True
        desk.copy()
    return went_on


@pytest.mark.parametrize("name", FAULTS)
def test_of_each_step_one_result_is_in_a_file(name: str, desk: Desk) -> None:
    went_on = played(desk, name)
    assert went_on == FAULTS[name][2]
    found = desk.results()
    assert found[1] == 1 and max(found.values()) == 1
    [entry] = desk.ledger.entries()
    killed = FAULTS[name][1]
    assert entry.status == ("reading" if went_on or killed else "failed")


def written_first(self: Any, state: TrainingState | None) -> None:
    """The broken version: the file is in its place before the ledger knows it."""
    content = self._packed(state)
    self._attempt = checkpoints.bytes_digest(content)
    write_atomically(self.path, content, private=True)
    self.state, self._written = state, self._attempt
    step, previous = (0 if state is None else state.step), self._recorded
    checkpoints.enter_checkpoint(
        self._book, self.entry, step=step, sha256=self._attempt, previous=previous
    )
    self._recorded = self._attempt


def in_the_temporary_file(self: Any, state: TrainingState | None) -> None:
    """Another one: what is drawn lies under a temporary name before the ledger knows it."""
    content = self._packed(state)
    self._attempt = checkpoints.bytes_digest(content)
    step, previous = (0 if state is None else state.step), self._recorded
    with atomic_file(self.path, private=True) as temporary:
        temporary.write_bytes(content)
        checkpoints.enter_checkpoint(
            self._book, self.entry, step=step, sha256=self._attempt, previous=previous
        )
    self.state = state
    self._recorded = self._written = self._attempt


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (written_first, "no record"),
        (written_first, "killed before it was recorded"),
        (in_the_temporary_file, "killed before it was recorded"),
    ],
)
def test_the_broken_versions_are_caught(
    broken: Any, name: str, desk: Desk, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(FitCheckpoints, "_record_and_write", broken)
    played(desk, name)
    assert max(desk.results().values()) > 1


def test_a_file_that_was_never_recorded_is_refused(desk: Desk) -> None:
    """Also one that is whole, and says that it follows the last one."""
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()
    before = (desk.kept / NAME).read_bytes()
    content = before.replace(desk.drawn[0][1], secrets.token_bytes(32))
    assert content != before
    (desk.kept / NAME).write_bytes(content)
    refused = pytest.raises(BudgetError, match="this is not the last checkpoint .* forfeit")
    with refused, suppress(KeyboardInterrupt):
        desk.go_on()
    (desk.kept / NAME).write_bytes(before)
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()
    assert [step for step, _ in desk.drawn] == [1, 2]


def test_an_interrupt_waits_until_a_checkpoint_is_in_place(desk: Desk) -> None:
    def interrupted(patch: Patch) -> None:
        after_record(lambda: os.kill(os.getpid(), signal.SIGINT))(patch)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            desk.go_on(interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()
    assert [step for step, _ in desk.drawn] == [1, 2]
    assert desk.results()[2] == 1


@pytest.mark.parametrize(
    "change",
    [{"library": "LibreSSL"}, {"version": "9.9"}],
    ids=["another library", "another version"],
)
def test_a_fit_goes_on_with_the_libraries_of_its_noise(
    change: dict[str, str], desk: Desk, monkeypatch: Patch
) -> None:
    """So the one list in its certificate is that of all its processes."""
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()
    sources = checkpoints.noise_sources

    def others(*given: Any, **more: Any) -> tuple[NoiseSource, ...]:
        return tuple(replace(one, **change) for one in sources(*given, **more))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "noise_sources", others)
        refused = pytest.raises(CheckpointError, match="^the library that draws the noise")
        with refused, suppress(KeyboardInterrupt):
            desk.go_on()
    assert [step for step, _ in desk.drawn] == [1]
    [entry] = desk.ledger.entries()
    assert (entry.status, len(entry.resumed)) == ("reading", 0)
    with pytest.raises(KeyboardInterrupt):
        desk.go_on()


def stopped_by_its_ledger(office: Office, after: int, patch: Patch) -> None:
    """Let a real fit fail to record the checkpoints after so many."""
    enter, entered = checkpoints.enter_checkpoint, []

    def enters(*given: Any, **more: Any) -> None:
        entered.append(more["step"])
        if len(entered) > after:
            raise AWAY
        enter(*given, **more)

    patch.setattr(checkpoints, "enter_checkpoint", enters)
    with pytest.raises(CheckpointError, match="cannot be reached") as caught:
        office.fit()
    assert any("the same command goes on" in note for note in caught.value.__notes__)


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("linked", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_fit_whose_ledger_is_away_goes_on_from_what_was_recorded(
    linked: bool, request: pytest.FixtureRequest
) -> None:
    if not linked:
        request.getfixturevalue("few_steps")
    office: Office = request.getfixturevalue("linked_stopping" if linked else "stopping")
    with pytest.MonkeyPatch.context() as patch:
        stopped_by_its_ledger(office, 5, patch)
    before = office.checkpoint.read_bytes()
    assert [path.name for path in office.checkpoint.parent.iterdir()] == [NAME]
    [entry] = office.entries
    assert entry.checkpoint is not None
    assert entry.checkpoint.sha256 == checkpoints.bytes_digest(before)
    office.fit()
    [entry] = office.entries
    assert entry.status == "charged" and entry.checkpoint is not None
    assert entry.checkpoint.step == STEPS
