"""P14: a checkpoint is continued twice, or by another fit than the one that was charged.

The check: an older copy, a copy of the newest, a second process, and a fit of which anything
changed are refused, and the entry says what really happened. The ledger's own rule is tried with
every order of a few records, against one that is written down by hand.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dpsynth.errors import BudgetError, ClosedEntryError, InputError
from dpsynth.ledger import Head
from dpsynth.ledger.chain import linked
from dpsynth.ledger.entry import CHECKPOINT, RESUMED, Disorder, Entry, replayed
from dpsynth.privacy.unit import EACH_ROW
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, checkpoints
from dpsynth.synthesis.checkpoints import CheckpointError

from .stopped_fits import PLACES, STEPS, Office

pytestmark = pytest.mark.usefixtures("few_steps", "quick_plans")


CHANGED: dict[str, dict[str, Any]] = {
    "the budget": {"epsilon": 3},
    "the model": {"model": "tvae"},
    "the name of the dataset": {"dataset": "other"},
    "the purpose": {"purpose": "another"},
}


def test_a_fit_that_changed_is_refused(stopping: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping.stopped(*PLACES["training"])

    def refused(words: str, **other: Any) -> None:
        with pytest.raises(CheckpointError, match=f"^{words} changed since the fit of .* began"):
            stopping.fit(**other)

    for words, other in CHANGED.items():
        refused(words, **other)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "installed_version", lambda: "9.9")
        refused("the version of dpsynth")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "version", lambda _: "9.9")
        refused("the version of torch")
    document = stopping.schema.to_dict()
    document["dpsynth"]["rows"]["value"] = 260
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "schema", Schema.from_dict(document))
        refused("the schema")
    source = stopping.folder / "source.csv"
    before = source.read_bytes()
    source.write_bytes(before + before.splitlines(keepends=True)[-1])
    refused("the data")
    source.write_bytes(before)
    [entry] = stopping.entries
    assert (entry.status, len(entry.resumed)) == ("reading", 0)
    stopping.fit()


def test_a_checkpoint_is_continued_once(stopping: Office) -> None:
    """Neither an older copy, nor a copy of the newest one after it was used."""
    stopping.stopped("training", 3 / STEPS)
    older = stopping.copy("older")
    stopping.stopped("training", 1.0)  # the ledger knows step 4 now
    with pytest.raises(BudgetError, match="not the last checkpoint"):
        older.fit()
    newest = stopping.copy("newest")
    stopping.fit()
    with pytest.raises(BudgetError, match="is charged, so its fit cannot go on"):
        newest.fit()
    assert [entry.status for entry in stopping.entries] == ["charged"]


def test_of_two_processes_the_second_to_get_further_stops(stopping: Office) -> None:
    stopping.stopped("training", 3 / STEPS)
    other = stopping.copy("other")

    def meanwhile(stage: str, fraction: float) -> None:
        if stage == "training" and other is not None and not (other.folder / "run").exists():
            other.fit()

    with pytest.raises(ClosedEntryError, match="another process ended this fit"):
        stopping.fit(meanwhile)
    assert not (stopping.folder / "run").exists()
    [entry] = stopping.entries
    assert entry.run == Run.load(other.folder / "run").digest


def test_what_cannot_be_kept_is_refused_before_the_charge(stopping: Office) -> None:
    for other in ({"model": "mixture"}, {"without_ledger": True, "ledger": None}):
        with pytest.raises(InputError, match="checkpoints"):
            stopping.fit(**other)
    (stopping.folder / "kept").mkdir()
    (stopping.folder / "kept" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        stopping.fit()
    assert stopping.ledger.entries() == []


BODY: dict[str, Any] = {
    "dataset": "d", "purpose": "", "tier": None, "model": "m", "version": "1", "schema_hash": "",
    "epsilon": 1.0, "delta": 1e-9, "host": "h", "plan": {"events": []},
    "unit": EACH_ROW.to_dict(), "allow_refuse": False, "population": 9, "policy": None,
    "sign_off": 0, "gates": [], "process": 1,
}  # fmt: skip
A, B = "a" * 64, "b" * 64
RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "reading": ("reading", {"note": ""}),
    "first": (CHECKPOINT, {"step": 1, "sha256": A, "previous": None}),
    "second": (CHECKPOINT, {"step": 2, "sha256": B, "previous": A}),
    "resumed": (RESUMED, {"host": "other", "process": 7}),
    "charged": ("charged", {"note": "", "run": "r"}),
}
ALLOWED = {  # what may come before each, in any order
    "reading": ({"resumed"},),
    "first": ({"reading", "resumed"},),
    "second": ({"reading", "first", "resumed"},),
    "resumed": ({"reading", "first", "second"},),
    "charged": ({"reading", "first", "second", "resumed"},),
}


def entry_of(names: tuple[str, ...]) -> Entry | None:
    """Read records as a ledger would; None if it would not."""
    chain = [linked(Head(0, "0" * 64), kind="reserved", entry="e", at=AT, who="w", body=BODY)]
    for name in names:
        kind, body = RECORDS[name]
        chain.append(linked(chain[-1].head, kind=kind, entry="e", at=AT, who="w", body=body))
    try:
        return replayed(chain)[0]
    except Disorder:
        return None


AT = "2026-01-01T00:00:00+00:00"


def possible(names: tuple[str, ...]) -> bool:
    """The rule by hand: one line from reserved to charged, each checkpoint after the one before."""
    if any(not set(names[:i]) <= ALLOWED[name][0] for i, name in enumerate(names)):
        return False
    needs = {"first": "reading", "second": "first"}
    return all(needs.get(name, name) in names[: i + 1] for i, name in enumerate(names))


def test_the_ledger_takes_no_other_order_of_checkpoints() -> None:
    seen = 0
    for length in range(len(RECORDS) + 1):
        for names in itertools.permutations(RECORDS, length):
            entry = entry_of(names)
            assert (entry is not None) == possible(names), names
            if entry is not None:
                seen += 1
                assert (entry.process == 7) == ("resumed" in names)
    assert seen > 10
