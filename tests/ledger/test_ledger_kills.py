"""Kill -9 at any moment of a fit: what was read is counted, nothing is half-written.

Fits run in processes of their own and are killed at random moments, spread over the time that a fit
takes. DPSYNTH_KILLS sets how many on each kind of database.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import evidence_by_folder
from dpsynth.ledger import Ledger, compare_source, explained, verify_ledger, void
from dpsynth.schema import Schema
from dpsynth.synthesis import Prepared, Run, charged_fit, fitting, prepare
from dpsynth.tables.table import FrameTable

from ..support.schema_fields import schema_field

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("DPSYNTH_KILLS", "12"))
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["dpsynth.synthesis.fitting", "dpsynth.models.generators.independent", "psycopg"]
)
SCHEMA: dict[str, Any] = {
    "fields": [schema_field("sex", "string", "test", enum=["F", "M"], required=True)],
    "dpsynth": {
        "version": 1,
        "population": {"value": 100, "basis": "test"},
        "rows": {"value": 100, "basis": "test"},
    },
}
ROWS = pd.DataFrame({"sex": ["F", "M"] * 50})


def fit(location: str, output: str) -> Run:
    return dpsynth.fit(
        ROWS,
        Schema.from_dict(SCHEMA),
        epsilon=0.5,
        delta=1e-6,
        dataset="ward",
        model="independent",
        ledger=Ledger(location),
        output=output,
    )


def fit_and_tell(location: str, output: str, prepared: Prepared, begun: Any, read: Any) -> None:
    """Fit a plan; say when it begins, and before its first private byte is touched."""
    chunks, digest = FrameTable.chunks, compare_source

    def telling(self: FrameTable, *rest: Any) -> Any:
        read.value = 1
        return chunks(self, *rest)

    def comparing(*arguments: Any) -> None:
        read.value = 1
        digest(*arguments)

    FrameTable.chunks = telling  # type: ignore[method-assign]
    charged_fit.compare_source = comparing
    fitting.prepare = lambda *_, **__: prepared  # the plan, made once: it takes longest
    begun.set()
    fit(location, output)


def started(location: str, output: str, prepared: Prepared) -> tuple[Any, Any]:
    """Return a process that just begins to fit, and the cell in which it says that it has read."""
    begun, read = FORKS.Event(), FORKS.Value(ctypes.c_int, 0, lock=False)
    process = FORKS.Process(target=fit_and_tell, args=(location, output, prepared, begun, read))
    process.start()
    assert begun.wait(120)
    return process, read


def seconds_of_a_fit(location: str, output: str, prepared: Prepared) -> float:
    """Return how long a fit takes that nobody kills, in a process like those that are killed."""
    process, _ = started(location, output, prepared)
    begun = time.perf_counter()
    process.join(120)
    assert process.exitcode == 0
    return time.perf_counter() - begun


def killed_after(
    seconds: float, location: str, output: str, prepared: Prepared
) -> tuple[bool, bool]:
    """Kill a fit after some time; returns whether it had read, and whether it had ended."""
    process, read = started(location, output, prepared)
    time.sleep(seconds)
    process.kill()
    process.join(60)
    return bool(read.value), process.exitcode == 0


def test_a_fit_killed_at_any_moment_counts_and_leaves_nothing_half(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_USER", "office")
    dice, found = random.Random(7), Counter[str]()
    prepared = prepare(Schema.from_dict(SCHEMA), epsilon=0.5, delta=1e-6, model="independent")
    monkeypatch.setattr(fitting, "prepare", lambda *_, **__: prepared)
    Ledger.create(location)
    longest = 1.2 * seconds_of_a_fit(location, str(tmp_path / "whole"), prepared)
    expected, number = 1, 0
    while number < KILLS or not found["reading"] + found["charged"]:
        if number >= KILLS:  # the machine got slower meanwhile: wait longer, until one has read
            longest *= 2
        output = tmp_path / f"run{number}"
        seconds = (number % KILLS + dice.random()) / KILLS * longest
        read, ended = killed_after(seconds, location, str(output), prepared)
        number += 1
        ledger = Ledger(location)
        entries = ledger.entries()
        assert len(entries) in (expected, expected + 1)
        entry = entries[-1] if len(entries) > expected else None
        status = "not entered" if entry is None else entry.status
        found[status] += 1
        if read:
            assert entry is not None and entry.counts and not entry.voidable, status
        if output.exists():  # then it is whole, and was paid for
            assert entry is not None and status in ("reading", "charged")
            assert Run.load(output).certificate["ledger"]["entry"] == entry.id
            verify_ledger(ledger, evidence_by_folder([output]))
        if ended:
            assert status == "charged" and output.exists()
        if status == "reading":
            assert "its process ended while it could read data, so it stays charged" in explained(
                entry
            )
        if status == "reserved":
            assert not read and "you can void it" in explained(entry)
            void(ledger, entry.id, "killed before it read")
        assert not [path for path in tmp_path.iterdir() if path.suffix == ".json"]
        expected = len(entries)
        verify_ledger(ledger)
    print(f"{number} kills: {dict(found)}")
    counted = [entry for entry in Ledger(location).entries() if entry.counts]
    spent = Ledger(location).spent("ward")
    assert (spent.fits, spent.epsilon_sum) == (len(counted), 0.5 * len(counted))
    after = fit(location, str(tmp_path / "after"))  # the next fit just works, and counts all
    assert after.certificate["ledger"]["fits"] == len(counted) + 1
