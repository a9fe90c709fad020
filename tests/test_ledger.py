"""The ledger: append-only, counted before the first read, safe against races and crashes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Entry, Ledger
from dpsynth.plan import PrivacyBudget

SPAWN = multiprocessing.get_context("spawn")


def reserve(ledger: Ledger, dataset: str = "cardio", **changes: Any) -> Entry:
    settings: dict[str, Any] = {
        "purpose": "test",
        "plan": {"events": ["histograms"]},
        "epsilon": 0.5,
        "delta": 1e-6,
        "model": "independent",
        "schema_hash": "f" * 64,
        "allow_refuse": False,
    }
    return ledger.reserve(dataset, **(settings | changes))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_an_entry_holds_what_was_reserved(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    made = reserve(ledger, purpose="first look", allow_refuse=True)
    assert [made] == ledger.entries() == ledger.entries("cardio")
    assert made.who == "curie"
    assert made.purpose == "first look"
    assert (made.epsilon, made.delta, made.model) == (0.5, 1e-6, "independent")
    assert made.plan == {"events": ["histograms"]}
    assert made.allow_refuse is True
    assert made.status == "reserved"
    assert made.at.endswith("+00:00")
    assert len(made.id) == 32 and int(made.id, 16) >= 0
    assert made.to_dict()["status"] == "reserved"


def test_statuses_are_added_and_never_edited(ledger: Ledger) -> None:
    charged, failed = reserve(ledger), reserve(ledger)
    ledger.charge(charged.id, "")
    ledger.fail(failed.id, "KeyboardInterrupt")
    first, second = ledger.entries()
    assert [status.status for status in first.history] == ["reserved", "charged"]
    assert [status.status for status in second.history] == ["reserved", "failed"]
    assert second.note == "KeyboardInterrupt"
    with pytest.raises(InputError, match="is charged already"):
        ledger.fail(charged.id, "")
    with pytest.raises(InputError, match="has no entry"):
        ledger.charge("0" * 32, "")


@pytest.mark.parametrize("table", ["ledger", "entries", "statuses"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET rowid = rowid + 1", "DELETE FROM {}"])
def test_the_database_refuses_edits(ledger: Ledger, table: str, statement: str) -> None:
    reserve(ledger)
    with (
        sqlite3.connect(ledger.path) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement.format(table))
    connection.close()
    assert ledger.spent("cardio").fits == 1


def test_everything_reserved_counts_as_spent(ledger: Ledger) -> None:
    entries = [reserve(ledger, epsilon=0.1) for _ in range(3)]
    ledger.charge(entries[0].id, "")
    ledger.fail(entries[1].id, "MemoryError")
    reserve(ledger, "other", epsilon=7)
    spent = ledger.spent("cardio")
    assert (spent.fits, spent.epsilon_sum, spent.delta_sum) == (3, 0.3, 3e-6)  # in decimal
    assert ledger.spent("unheard-of").fits == 0


def test_two_spellings_of_a_name_are_one_budget(ledger: Ledger) -> None:
    reserve(ledger, "Cardio")
    reserve(ledger, "cardio")
    assert ledger.spent("CARDIO").fits == 2
    assert [entry.dataset for entry in ledger.entries("cardio")] == ["Cardio", "cardio"]


def test_a_cap_is_reached_and_never_passed(ledger: Ledger) -> None:
    cap = PrivacyBudget(epsilon=0.3, delta=1e-5)
    for _ in range(3):
        reserve(ledger, epsilon=0.1, cap=cap)
    with pytest.raises(BudgetError, match=r"3 fits have spent epsilon 0\.3 of 0\.3, and 0\.1 more"):
        reserve(ledger, epsilon=0.1, cap=cap)
    assert ledger.spent("cardio").fits == 3


def test_a_cap_binds_delta_as_well(ledger: Ledger) -> None:
    cap = PrivacyBudget(epsilon=100, delta=2e-6)
    reserve(ledger, cap=cap)
    reserve(ledger, cap=cap)
    with pytest.raises(BudgetError, match="spent delta 2e-06 of 2e-06"):
        reserve(ledger, cap=cap)


def contend(path: str, start: Any, cap: float) -> None:
    """Take what can be had of a cap, in four threads; other processes do the same."""

    def take() -> None:
        ledger = Ledger(path)
        start.wait(60)
        for _ in range(3):
            try:
                reserve(ledger, epsilon=1, cap=PrivacyBudget(epsilon=cap, delta=0.5))
            except BudgetError:
                return

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_processes_racing_for_the_last_of_a_budget_never_overspend(tmp_path: Path) -> None:
    path, processes, cap = tmp_path / "ledger.sqlite", 5, 11.5
    start = SPAWN.Barrier(4 * processes)
    racers = [SPAWN.Process(target=contend, args=(str(path), start, cap)) for _ in range(processes)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
        racer.kill()
    assert [racer.exitcode for racer in racers] == [0] * processes
    assert Ledger(path).spent("cardio").epsilon_sum == 11  # all that fits, and no more


def test_a_check_outside_the_transaction_would_overspend(ledger: Ledger) -> None:
    """The broken twin of the race: look, then enter."""
    looked = threading.Barrier(4)

    def look_then_enter() -> None:
        if ledger.spent("cardio").epsilon_sum + 1 <= 1.5:
            looked.wait(30)
            reserve(ledger, epsilon=1)

    threads = [threading.Thread(target=look_then_enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent("cardio").epsilon_sum == 4


def reserve_and_hang(path: str, reserved: Any) -> None:
    reserve(Ledger(path))
    reserved.set()
    threading.Event().wait()


def test_a_fit_killed_after_reserving_counts(tmp_path: Path) -> None:
    path, reserved = tmp_path / "ledger.sqlite", SPAWN.Event()
    fit = SPAWN.Process(target=reserve_and_hang, args=(str(path), reserved))
    fit.start()
    assert reserved.wait(60)
    assert fit.pid is not None
    os.kill(fit.pid, signal.SIGKILL)
    fit.join()
    [entry] = Ledger(path).entries()
    assert entry.status == "reserved"
    assert Ledger(path).spent("cardio").epsilon_sum == 0.5


@pytest.mark.parametrize(
    "name", ["", ".hidden", "-x", "a b", "a/b", "../x", "naïve", "x" * 65, "a\n", "a'--", "٣"]
)
def test_a_dataset_has_a_plain_name(ledger: Ledger, name: str) -> None:
    with pytest.raises(InputError, match="a dataset's name has"):
        reserve(ledger, name)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"delta": 0},
        {"delta": 1},
        {"delta": float("nan")},
        {"purpose": "x" * 201},
        {"purpose": "two\nlines"},
    ],
)
def test_what_cannot_be_counted_is_refused(ledger: Ledger, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        reserve(ledger, **change)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "note",
    ["could not convert string to float: 'Ms Miller'", "x" * 65, "two\nlines", "cell=7"],
)
def test_a_note_that_may_quote_a_cell_is_withheld(ledger: Ledger, note: str) -> None:
    entry = reserve(ledger)
    ledger.fail(entry.id, note)
    assert ledger.entries()[0].note == "note withheld"
    assert note.encode() not in ledger.path.read_bytes()
