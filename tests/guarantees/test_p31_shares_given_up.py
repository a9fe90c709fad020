"""P31: a share for quality figures that is never spent, and one that was never set aside.

The verbs of an office: a share that is given up is gone, figures are measured only where one was
set aside, and a fit that died is ended by hand.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Ledger, enter_figures, explained, forfeit, void
from dpsynth.ledger.balances import Snapshot
from dpsynth.ledger.entry import (
    CHARGED,
    FAILED,
    MEASURED,
)

from ..support.reservations import reserve

WITH_QUALITY = {"events": [{"name": "quality"}]}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    return Ledger.create(tmp_path / "ledger.sqlite")


def test_a_share_that_is_given_up_is_gone(ledger: Ledger) -> None:
    entry = reserve(ledger, plan=WITH_QUALITY)
    ledger.begin(entry.id)
    ledger.charge(entry.id)
    [entry] = ledger.entries()
    text = explained(entry)
    assert entry.ended is None and "can still be spent, so it counts as of today" in text
    with pytest.raises(InputError, match="a reason is needed"):
        forfeit(ledger, entry.id, " ")
    given_up = forfeit(ledger, entry.id, "no figures")
    assert given_up.forfeited is not None and given_up.ended == given_up.forfeited.at
    assert given_up.status == CHARGED and given_up.counts
    with pytest.raises(BudgetError, match="nothing left to give up"):
        forfeit(ledger, entry.id, "again")
    with pytest.raises(BudgetError, match="waits for no quality figures"):
        enter_figures(ledger, entry.id, "f" * 64)
    with (
        pytest.raises(BudgetError, match="changed by something other than"),
        ledger.writing() as pen,
    ):
        pen.write(MEASURED, entry.id, {"table": "t"})


def test_no_share_is_spent_that_was_not_set_aside(ledger: Ledger) -> None:
    """Else a fit that is over could spend again, in a window that does not count it."""
    entry = reserve(ledger)
    ledger.begin(entry.id)
    ledger.charge(entry.id)
    assert ledger.entries()[0].ended is not None
    with (
        pytest.raises(BudgetError, match="changed by something other than"),
        ledger.writing() as pen,
    ):
        pen.write(MEASURED, entry.id, {"table": "t"})


def test_a_fit_that_died_is_ended_by_hand(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 2**22 + 1)  # of no process
    dead = reserve(ledger, plan=WITH_QUALITY)
    monkeypatch.undo()
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    ledger.begin(dead.id)
    assert "until you forfeit it" in explained(ledger.entries()[0])
    ended = forfeit(ledger, dead.id, "power failed")
    assert ended.status == FAILED and ended.counts and ended.ended == ended.history[-1].at
    with pytest.raises(InputError, match="failed already"):
        ledger.charge(dead.id, run="f" * 64)
    alive = reserve(ledger)
    ledger.begin(alive.id)
    with pytest.raises(BudgetError, match="still running"):
        forfeit(ledger, alive.id, "impatience")
    other = reserve(ledger)
    void(ledger, other.id, "never read")
    assert Snapshot.of(ledger, datetime.now(UTC)).accounts[0].spent.fits == 2
