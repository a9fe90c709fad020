"""P14 for linked tables: no row of any table is read before the ledger has reserved for it.

The check: tables whose rows can only be had while the ledger holds an open entry. The broken twin
reads one table to look at it, before the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.errors import DpsynthError
from dpsynth.ledger import Ledger
from dpsynth.synthesis import PreparedCohort, fitting, readers
from dpsynth.tables import simulate_cohort
from dpsynth.tables.table import FrameTable

from ..support.short_training import shorten_histories, shorten_networks

ENOUGH = 2**60  # bytes that no disk has


class Unpaid(Exception):
    """Rows were asked for while no entry was open."""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    chunks = FrameTable.chunks

    def paid(self: FrameTable, progress: Any = None) -> Iterator[pd.DataFrame]:
        if "reading" not in [one.status for one in Ledger(ledger.location).entries("clinic")]:
            raise Unpaid
        yield from chunks(self, progress)

    monkeypatch.setattr(FrameTable, "chunks", paid)
    shorten_histories(monkeypatch)
    shorten_networks(monkeypatch)
    return ledger


def fit(ledger: Ledger, **more: Any) -> None:
    fitting.fit(
        simulate_cohort(60, seed=1),
        "clinic",
        epsilon=2,
        delta=1e-5,
        dataset="clinic",
        ledger=ledger,
        **more,
    )


def test_every_table_is_read_after_the_reservation(ledger: Ledger) -> None:
    fit(ledger)
    assert [entry.status for entry in ledger.entries("clinic")] == ["charged"]


def test_a_look_before_the_fit_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = readers.open_linked

    def curious(*arguments: Any) -> Any:
        tables = opened(*arguments)
        next(iter(tables["labs"].chunks()))
        return tables

    monkeypatch.setattr(readers, "open_linked", curious)
    with pytest.raises(Unpaid):
        fit(ledger)
    assert not ledger.entries("clinic")


def test_a_run_for_which_there_is_no_room_costs_nothing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PreparedCohort, "room", lambda *_: ENOUGH)
    with pytest.raises(DpsynthError):
        fit(ledger, output=tmp_path / "run")
    assert not ledger.entries("clinic")
