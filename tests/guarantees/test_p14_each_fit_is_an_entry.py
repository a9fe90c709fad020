"""P14: a search over fits is paid for, fit by fit, and the certificate says how many there were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.certificate.statements import CHOICE
from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, charging
from dpsynth.ledger.ledger import Entry, Reservation
from dpsynth.policy import Policy
from dpsynth.privacy import epsilon as composed
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, readers


class OverwritingLedger(Ledger):
    """The broken twin: the same settings again are taken for the same fit, and not counted."""

    def reserve_all(self, asked: Sequence[Reservation]) -> list[Entry]:
        [one] = asked
        for entry in self.entries(one.dataset):
            if (entry.epsilon, entry.model) == (one.epsilon, one.model):
                return [entry]
        return super().reserve_all(asked)

    def begin(self, entry_id: str) -> None:
        if {entry.id: entry for entry in self.entries()}[entry_id].status == "reserved":
            super().begin(entry_id)

    def charge(self, entry_id: str, note: str = "", *, run: str | None = None) -> None:
        if {entry.id: entry for entry in self.entries()}[entry_id].status != "charged":
            super().charge(entry_id, note, run=run)


@pytest.fixture
def fit(rows: pd.DataFrame, every_type: Schema) -> Callable[..., Run]:
    def fit_once(ledger: Ledger, **changes: Any) -> Run:
        settings: dict[str, Any] = {"epsilon": 0.7, "delta": 1e-6, "model": "independent"}
        settings |= {"dataset": "cohort", "ledger": ledger}
        return dpsynth.fit(rows, every_type, **(settings | changes))

    return fit_once


def counts_each_fit(ledger: Ledger, fit: Callable[..., Run]) -> bool:
    """Whether three fits, two of them alike, are three entries and three times the budget."""
    for epsilon in (0.7, 0.7, 0.1):
        fit(ledger, epsilon=epsilon)
    spent = ledger.spent("cohort")
    return (len(ledger.entries()), spent.fits, spent.epsilon_sum) == (3, 3, 1.5)


def test_each_fit_is_an_entry_of_its_own(
    tmp_path: Path, fit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:  # an entry that was closed before would stop the fit
        patched.setattr(charging, "require_open", lambda *_: None)
        assert not counts_each_fit(OverwritingLedger.create(tmp_path / "broken.sqlite"), fit)
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    assert counts_each_fit(ledger, fit)
    assert {entry.status for entry in ledger.entries()} == {"charged"}


def test_the_certificate_states_how_many_fits_there_were(
    tmp_path: Path, fit: Callable[..., Run]
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    first, second = fit(ledger), fit(ledger)
    assert first.certificate["ledger"]["fits"] == 1
    charge = second.certificate["ledger"]
    assert (charge["fits"], charge["epsilon_total"], charge["delta_total"]) == (2, 1.4, 2e-6)
    assert charge["id"] == ledger.id
    assert charge["entry"] == ledger.entries()[1].id
    sentence = second.certificate["not_covered"][0]
    assert sentence.startswith(CHOICE)
    assert "2 fits on dataset 'cohort', with epsilon 1.4 and delta 2e-6 in sum" in sentence


def test_a_fit_that_dies_is_counted(
    tmp_path: Path, fit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")

    def interrupted(*_: Any, **how: Any) -> None:
        raise KeyboardInterrupt("patient 4711")

    monkeypatch.setattr(readers, "read_cohort", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(ledger)
    [entry] = ledger.entries()
    assert (entry.status, entry.note) == ("failed", "KeyboardInterrupt")
    assert ledger.spent("cohort").epsilon_sum == 0.7


def test_the_entry_stands_before_the_first_row_is_read(
    tmp_path: Path, fit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    statuses: list[list[str]] = []
    read = readers.read_cohort

    def watched(*arguments: Any, **how: Any) -> Any:
        statuses.append([entry.status for entry in Ledger(ledger.location).entries()])
        return read(*arguments, **how)

    monkeypatch.setattr(readers, "read_cohort", watched)
    fit(ledger)
    assert statuses == [["reading"]]


def test_a_sweep_beyond_the_cap_is_refused_before_it_reads(
    tmp_path: Path, fit: Callable[..., Run]
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    cap = {"total": {"epsilon": 2.0, "basis": "the board"}}
    document = {"dpsynth_policy": 1, "name": "test", "delta": 1e-3, "caps": cap}
    settings: dict[str, Any] = {"policy": Policy.from_dict(document, "test")}
    accepted = 0
    with pytest.raises(BudgetError, match="epsilon in all: limit 2, .* of it used, 0.7 asked"):
        for _ in range(20):
            fit(ledger, **settings)
            accepted += 1
    assert accepted == ledger.spent("cohort").fits >= 2
    events = [event for past in ledger.state().past() for event in past.spend.events]
    each = len(ledger.entries()[0].plan["events"])
    assert len(events) == each * accepted and composed(events, 1e-3) <= 2.0
