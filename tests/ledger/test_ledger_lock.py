"""Who writes has the ledger alone from before its first look: no second check on an old state."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, database


def test_a_second_writer_waits_before_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that takes its lock at the first write alone would let both look and pass."""
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    first = Ledger.create(tmp_path / "ledger.sqlite")
    second = Ledger(tmp_path / "ledger.sqlite")
    looked = []
    with first.writing() as pen:
        assert pen.state.entries == ()
        with pytest.raises(BudgetError, match="another process locked it"):
            with second.writing() as other:
                looked.append(other.state)
        assert second.state().entries == ()  # whoever only looks need not wait
    assert looked == []
    with second.writing() as pen:
        assert pen.state.entries == ()
