"""A folder with a run, a table drawn from it, and the rows on both sides of a split, to audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpsynth.assessment import attack_audit as verbs
from dpsynth.assessment import training_audit
from dpsynth.eval.attacks import Control
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate

from .evaluated_office import DEMO, call
from .evaluated_office import Office as Folder
from .quick_fit import quick_fit

PASSED = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")


class Office(Folder):
    """A folder with a fitted run, its table, and the rows on both sides of a split."""

    @property
    def tables(self) -> list[str]:
        return [self.path("train.csv"), "--synthetic", self.path("out.parquet"), "--holdout",
                self.path("holdout.csv")]  # fmt: skip


def fitted_office(folder: Path) -> Office:
    """Split a simulated table, fit one side and draw a table from the run."""
    everyone = simulate(500, seed=1)
    keys = everyone["patient_id"].unique()
    inside = everyone["patient_id"].isin(keys[np.random.default_rng(1).random(len(keys)) < 0.6])
    everyone[inside].to_csv(folder / "train.csv", index=False)
    everyone[~inside].to_csv(folder / "holdout.csv", index=False)
    quick_fit(
        folder / "train.csv",
        DEMO,
        epsilon=2.0,
        ledger=Ledger.create(folder / "ledger.sqlite"),
        output=folder / "run",
    )
    assert call("sample", str(folder / "run"), "--rows", "900", "-o", str(folder / "out.parquet"),
                "--quiet") == 0  # fmt: skip
    return Office(folder)


def make_quick(monkeypatch: pytest.MonkeyPatch, office: Office) -> None:
    """Keep the controls that need a fit for their own test; use the office's ledger."""
    monkeypatch.setattr(verbs, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(training_audit, "BACKGROUND", 300)
    monkeypatch.setenv("DPSYNTH_LEDGER", office.path("ledger.sqlite"))


def quiet_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "attacked", lambda *_, **__: ({}, [PASSED]))
