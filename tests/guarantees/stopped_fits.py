"""An office whose fit is stopped and goes on: shared by the tests of checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.schema.schema import Schema
from dpsynth.synthesis.checkpoints import NAME
from dpsynth.synthesis.fitting import fit
from dpsynth.synthesis.run import Run

STEPS = 5  # of the fixture few_steps


PLACES = {
    "reading": ("reading", 1.0),
    "counting": ("mixture", 0.0),
    "warm": ("warming up", 0.5),
    "training": ("training", 3 / STEPS),
    "settling": ("settling", 0.0),
}


@dataclass
class Office:
    """A folder with a source, a ledger and the checkpoints of one fit."""

    folder: Path
    schema: Schema
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.sqlite")

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in self.ledger.entries() if not entry.voidable]

    @property
    def checkpoint(self) -> Path:
        return self.folder / "kept" / NAME

    def fit(self, progress: Callable[[str, float], None] = lambda *_: None, **other: Any) -> Run:
        settings = {"epsilon": 2, "delta": 1e-5, "dataset": "clinic", "model": "autoregressive"}
        return fit(
            self.folder / "source.csv",
            self.schema,
            **settings | self.settings | {"ledger": self.ledger} | other,
            output=self.folder / "run",
            checkpoints=self.folder / "kept",
            progress=progress,
        )

    def stopped(self, stage: str, part: float, **other: Any) -> None:
        """Fit, and be stopped by Ctrl-C at a stage."""

        def stop(now: str, fraction: float) -> None:
            if (now, fraction >= part) == (stage, True):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.fit(stop, **other)

    def copy(self, name: str) -> Office:
        """Copy the checkpoints and the source beside, with the ledger left where it is."""
        other = self.folder.with_name(name)
        shutil.copytree(self.folder, other)
        (other / "ledger.sqlite").unlink()
        (other / "ledger.sqlite").symlink_to(self.folder / "ledger.sqlite")
        return replace(self, folder=other)
