"""A ledger that an earlier dpsynth wrote is read, checked and added up: its fits are not forgotten.

`written_by_1e297c5a.sqlite` holds five fits of `ward` (one of a file without rows, which had begun
to read), one of linked tables, statistics, and a policy. Nothing in it may be edited.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.ledger import Ledger

WRITTEN = Path(__file__).with_name("written_by_1e297c5a.sqlite")


@pytest.fixture
def earlier(tmp_path: Path) -> Ledger:
    return Ledger(shutil.copyfile(WRITTEN, tmp_path / "office.sqlite"))


def test_every_entry_is_read(earlier: Ledger) -> None:
    found = [(one.dataset, one.model, one.status, one.epsilon) for one in earlier.entries()]
    assert found == [
        ("ward", "independent", "charged", 0.5),
        ("ward", "mixture", "charged", 1.0),
        ("ward", "independent", "failed", 0.25),
        ("ward", "autoregressive", "charged", 1.0),
        ("ward", "statistics", "charged", 0.5),
        ("clinic", "cohort", "charged", 2.0),
    ]
    assert all(one.counts for one in earlier.entries())


def test_it_verifies_and_adds_up(
    command_line: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, earlier: Ledger
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(earlier.place))
    assert command_line("ledger", "verify").code == 0
    shown = command_line("ledger", "show", "--json").json["datasets"]
    assert {name: (one["epsilon"], one["fits"]) for name, one in shown.items()} == {
        "ward": (3.25, 5),
        "clinic": (2.0, 1),
    }
    (room,) = shown["ward"]["room"]
    assert room["limit"] == 9.0 and room["used"] == pytest.approx(3.7707618, rel=1e-6)
