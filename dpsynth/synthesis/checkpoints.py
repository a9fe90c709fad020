"""Checkpoints of a fit on disk: a fit that was stopped goes on within its own entry of the ledger.

A folder of checkpoints holds one file, for its owner alone, written whole or not at all:
``checkpoint.safetensors``, the arrays of a `TrainingState`, and what the fit is in the file's
metadata. It is office-internal, although the plan has paid for all that is in it. What may change
from one process to the next is nothing: not the schema, the budget, the model, the versions of
dpsynth and torch, the libraries that draw the noise, nor the data.

The ledger records a checkpoint first, and the file is written afterwards. So a result is in a file
only if the ledger knows that file, and then no older one can be continued
(`dpsynth.ledger.charging`). "Fits that were stopped" in docs/privacy.md has the argument.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    as_object,
    bytes_digest,
    check_format,
    check_keys,
    parsed,
    read_plain_bytes,
    text,
    whole,
)
from dpsynth.certificate import Charge
from dpsynth.errors import (
    ArtifactError,
    BudgetError,
    ClosedEntryError,
    DpsynthError,
    InputError,
    Note,
)
from dpsynth.files import atomic_file, check_apart, held, make_room, remove_leftovers
from dpsynth.ledger import (
    Ledger,
    Opened,
    Use,
    charge_of,
    continued,
    enter_checkpoint,
    installed_version,
    recorded,
    source_digest,
)
from dpsynth.ledger.entry import Entry
from dpsynth.models import Checkpoints, TrainingState
from dpsynth.privacy import PoissonSgd, PrivacyPlan, noise_sources
from dpsynth.schema import AnySchema
from dpsynth.synthesis.preparation import Preparation

FORMAT, VERSION, NAME = "dpsynth-checkpoint", 2, "checkpoint.safetensors"
EVERY = 20  # private steps from one checkpoint to the next
MAX_BYTES = 4 * 2**30
_KEYS = ("format", "version", "facts", "entry", "charge", "sources", "found")
_WORDS = {
    "dpsynth": "the version of dpsynth",
    "torch": "the version of torch",
    "schema": "the schema",
    "model": "the model",
    "plan": "the budget",
    "settings": "the settings of the training",
    "dataset": "the name of the dataset",
    "purpose": "the purpose",
    "tier": "the tier",
    "policy": "the policy",
    "noise": "the library that draws the noise, or its version,",
    "accountant": "the version of dp-accounting",
    "ledger": "the ledger",
}

Found = Mapping[str, Any]


class CheckpointError(InputError):
    """A fit cannot go on from a checkpoint now, or cannot keep one; its entry stays open."""


def facts_of(
    schema: AnySchema, prepared: Preparation[Any, Any], use: Use, *, seeded: bool, ledger: str
) -> dict[str, Any]:
    """Describe a fit by all that may not change while it is stopped, in plain JSON values.

    The sources of its noise are among it, so the one list in the certificate is that of all its
    processes.
    """
    model, plan = prepared.model, prepared.plan
    facts = {
        "dpsynth": installed_version(),
        "torch": version("torch"),
        "schema": schema.hash(),
        "model": model,
        "plan": plan.to_dict(),
        "settings": prepared.settings(),
        "dataset": use.dataset,
        "purpose": use.purpose,
        "tier": use.tier,
        "policy": None if use.policy is None else use.policy.digest,
        "noise": [asdict(one) for one in noise_sources(plan.events, seeded=seeded)],
        "accountant": version("dp-accounting"),
        "ledger": ledger,
    }
    return as_object(json.loads(json.dumps(facts)), "facts")


@contextmanager
def kept_in(
    folder: str | Path, output: str | Path, facts: Mapping[str, Any], sources: Sequence[Any]
) -> Iterator[FitCheckpoints]:
    """Hold a folder of checkpoints, and read what is in it; no other process may use it meanwhile.

    Args:
        folder: is made where there is none, for its owner alone; removed again if it is empty.
        output: where the run will be.
        facts: see `facts_of`.
        sources: of the private rows.

    Raises:
        InputError: another process holds it, it holds something else, or lies in a run.
        CheckpointError: something changed since the fit was stopped.
    """
    folder = Path(folder)
    check_apart(folder, Path(output))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with held(folder):
            remove_leftovers(folder)
            yield FitCheckpoints(folder, facts, sources)
    finally:
        with suppress(OSError):
            folder.rmdir()  # only if it is empty


class FitCheckpoints(Checkpoints):
    """The checkpoints of one fit.

    ``found`` are the codes that the plan's discovery has found; None before.
    """

    every = EVERY

    def __init__(self, folder: Path, facts: Mapping[str, Any], sources: Sequence[Any]) -> None:
        """Read the folder; see `kept_in`."""
        self.path, self.facts, self.sources = folder / NAME, dict(facts), sources
        self.entry = ""
        self.charge: dict[str, Any] | None = None
        self.digests: list[str | None] | None = None
        self.found: Found | None = None
        self._book: Ledger | None = None
        self._recorded: str | None = None  # the last one in the ledger, and the last in the folder
        self._attempt: str | None = None
        self._written: str | None = None
        self._content: bytes | None = None
        if os.path.lexists(self.path):
            self._read()
        elif any(not path.name.startswith(".tmp-") for path in folder.iterdir()):
            raise InputError(f"{folder} holds other files; name a new folder for checkpoints")

    def __repr__(self) -> str:
        """Name the entry."""
        return short_repr(self, self.entry[:12], f"step {self.step}")

    @property
    def step(self) -> int:
        """Private steps that were taken, as of the last checkpoint."""
        return 0 if self.state is None else self.state.step

    def resume(self, ledger: Ledger) -> Opened | None:
        """Go on with the entry of a fit that stopped; None if this is a new fit.

        Raises:
            CheckpointError: something changed, also in the data.
            BudgetError: the entry is closed, or this is not its last checkpoint.
        """
        self._book = ledger
        if self._content is None:
            return None
        if self.digests is not None and self.digests != self._digests(ledger):
            raise self._changed("the data")
        sha256 = bytes_digest(self._content)
        entry = continued(ledger, self.entry, sha256=sha256)
        self._recorded = self._written = sha256
        self._content = None
        if self.charge is None:
            return Opened(entry, charge_of(ledger, entry))
        return Opened(entry, Charge.from_dict(self.charge, f"{self.path}: charge"))

    def reserved(self, ledger: Ledger, entry: Entry) -> None:
        """Note the entry of a new fit, before anything is read; the ledger knows it already."""
        self._book, self.entry = ledger, entry.id
        self._keep(None)

    def began(self, opened: Opened, digests: Sequence[str | None]) -> None:
        """Keep what the certificate will say of the ledger, and which data were read."""
        self.charge, self.digests = opened.charge.to_dict(), list(digests)
        self._keep(None)

    def keep_found(self, found: Found) -> None:
        """Keep the codes that were found, before rows are coded by them.

        Raises:
            CheckpointError: as `save`.
        """
        self.found = found
        self._keep(None)

    def save(self, state: TrainingState) -> None:
        """Have the ledger record a state, and keep it.

        Raises:
            CheckpointError: it cannot be recorded or written. The fit has to stop. It may go on
                from the last one, unless the ledger knows the new one already.
            ClosedEntryError: somebody closed the entry; nothing was written.
        """
        self._keep(state)

    def require_all_steps(self, plan: PrivacyPlan) -> None:
        """Refuse to save a run before the ledger has recorded all private steps.

        Otherwise those since the last checkpoint could be taken again, and a second run saved.

        Raises:
            BudgetError: some are missing.
        """
        steps = sum(event.steps for event in plan.events if isinstance(event, PoissonSgd))
        if self.step != steps:
            raise BudgetError(f"the last checkpoint has {self.step} of {steps} private steps")

    def stays_open(self, error: BaseException) -> bool:
        """Whether the fit may go on after this: it was told to stop, or could not be kept.

        Any other error follows from what the fit did, so a second attempt would choose among
        results: the entry is closed.
        """
        stays = isinstance(error, KeyboardInterrupt | CheckpointError) and not self._is_lost()
        if stays:
            error.add_note(
                Note(
                    f"entry {self.entry[:12]} stays open at step {self.step}: the same command "
                    "goes on from there. The ledger counts the fit once"
                )
            )
        return stays

    def remove(self) -> None:
        """Remove the checkpoint of a fit that has ended."""
        self.path.unlink(missing_ok=True)

    def _digests(self, ledger: Ledger) -> list[str | None]:
        return [source_digest(source, ledger.key) for source in self.sources]

    def _is_lost(self) -> bool:
        """Whether the ledger knows a checkpoint that was not written: nobody can go on."""
        if self._book is None or self._attempt is None or self._attempt == self._written:
            return False
        return recorded(self._book, self.entry, self._attempt)

    def _keep(self, state: TrainingState | None) -> None:
        """Keep a state and what else is known; an interrupt waits until that is done."""
        try:
            with ThreadPoolExecutor(1) as uninterrupted:
                uninterrupted.submit(self._record_and_write, state).result()
        except ClosedEntryError:
            raise
        except DpsynthError as error:
            raise CheckpointError(f"the fit stopped; no checkpoint can be kept: {error}") from error

    def _record_and_write(self, state: TrainingState | None) -> None:
        """Record a checkpoint, then write it.

        Its room on the disk is taken before, and what it holds is in no file before it is recorded.
        So wherever this stops, there is at most one checkpoint with which a fit can go on, and
        nothing that leads to another one was written.
        """
        assert self._book is not None
        content = self._packed(state)
        sha256 = bytes_digest(content)
        self._attempt = sha256
        step = 0 if state is None else state.step
        with atomic_file(self.path, private=True) as temporary, temporary.open("r+b") as file:
            make_room(file.fileno(), self.path, len(content))
            enter_checkpoint(
                self._book, self.entry, step=step, sha256=sha256, previous=self._recorded
            )
            self._recorded = sha256
            file.write(content)
        self._written = sha256
        self.state = state

    def _packed(self, state: TrainingState | None) -> bytes:
        from safetensors.numpy import save

        document = {
            "format": FORMAT,
            "version": VERSION,
            "facts": self.facts,
            "entry": self.entry,
            "charge": self.charge,
            "sources": self.digests,
            "found": self.found,
            "state": None if state is None else {"step": state.step, "config": state.config},
        }
        arrays = {} if state is None else dict(state.arrays)
        return save(arrays, {"dpsynth": json.dumps(document, allow_nan=False)})

    def _read(self) -> None:
        from safetensors.numpy import load

        self._content = content = read_plain_bytes(self.path, largest=MAX_BYTES)
        try:
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            document = parsed(header["__metadata__"]["dpsynth"].encode(), str(self.path))
            arrays = load(content)
        except Exception as error:  # whatever the library finds in damaged bytes
            raise ArtifactError(f"{self.path} is damaged, or not a checkpoint") from error
        check_format(document, str(self.path), FORMAT, VERSION)
        check_keys(document, str(self.path), (*_KEYS, "state"))
        facts = as_object(document["facts"], f"{self.path}: facts")
        for name, words in _WORDS.items():
            if facts.get(name) != self.facts[name]:
                raise self._changed(words)
        self.entry = text(document["entry"], f"{self.path}: entry")
        self.charge = document["charge"]
        self.digests, self.found = document["sources"], document["found"]
        if document["state"] is not None:
            step = whole(document["state"]["step"], f"{self.path}: step", minimum=0)
            self.state = TrainingState(step, document["state"]["config"], arrays)

    def _changed(self, words: str) -> CheckpointError:
        return CheckpointError(
            f"{words} changed since the fit of {self.path.parent} began. A fit goes on unchanged "
            "or not at all: put it back, or name another folder for a new fit, which is charged "
            "again"
        )
