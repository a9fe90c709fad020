"""P14: a fit that is open, or was killed, or failed, has had its look at the data: it counts.

The check: whatever became of the first fit, the second one that would pass the cap is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, void
from dpsynth.ledger.ledger import Entry

from ..support.reservations import capped, reserve

COURSES: dict[str, tuple[str, ...]] = {
    "reserved": (),
    "reading": ("begin",),
    "charged": ("begin", "charge"),
    "failed": ("begin", "fail"),
    "failed before it read": ("fail",),
}


def reserved(ledger: Ledger) -> Entry:
    return reserve(ledger, policy=capped(1.0))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    return Ledger.create(tmp_path / "ledger.sqlite")


def counts(ledger: Ledger, verbs: tuple[str, ...]) -> bool:
    """Whether a fit that went this way leaves no room for another one of its size."""
    entry = reserved(ledger)
    for verb in verbs:
        getattr(ledger, verb)(entry.id)
    is_counted = ledger.spent("cardio").fits == 1
    try:
        reserved(ledger)
    except BudgetError:
        return is_counted
    return False


@pytest.mark.parametrize("course", COURSES)
def test_a_fit_counts_whatever_became_of_it(course: str, ledger: Ledger) -> None:
    assert counts(ledger, COURSES[course])


def test_a_fit_that_was_voided_does_not(ledger: Ledger) -> None:
    void(ledger, reserved(ledger).id, "killed before it began")
    assert ledger.spent("cardio").fits == 0
    reserved(ledger)


@pytest.mark.parametrize("forgotten", ["reserved", "reading", "failed"])
def test_a_ledger_that_counts_what_ended_well_is_caught(
    forgotten: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twins: entries that are open, or failed, are left out of the sums."""

    def closed(entry: Any) -> bool:
        return entry.status not in ("voided", forgotten)

    monkeypatch.setattr(Entry, "counts", property(closed))
    assert not counts(ledger, COURSES[forgotten])
