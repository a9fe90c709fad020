"""The ledger of an office knows its own bundles."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dpsynth.bundle import release, verify
from dpsynth.errors import VerificationError
from dpsynth.ledger import Ledger

from ..support.forger import Forger


def test_the_ledger_knows_its_own_bundles(bundle: Path, run_folder: Path, tmp_path: Path) -> None:
    ledger = Ledger.present()
    released = release(run_folder, tmp_path / "made", size=50, seed=1)
    assert any("the ledger matches" in line for line in verify(released, ledger=ledger))
    with pytest.raises(VerificationError, match="another ledger"):
        verify(released, ledger=Ledger.create(tmp_path / "elsewhere.sqlite"))


def test_a_head_that_the_ledger_never_had_is_found(
    run_folder: Path, tmp_path: Path, forger: Forger
) -> None:
    """Consistent in itself, for the seal is keyed; the ledger sees it."""
    released = release(run_folder, tmp_path / "made", size=50, seed=1)
    seal = hashlib.sha256(b"another").hexdigest()
    type(forger)(released).edit("privacy.json", lambda d: d["ledger"].update(seal=seal))
    verify(released)
    with pytest.raises(VerificationError, match="ledger: "):
        verify(released, ledger=Ledger.present())
