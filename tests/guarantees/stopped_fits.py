"""An office whose fit is stopped and goes on: shared by the tests of checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth import Execution, fit
from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Entry
from dpsynth.models.dpsgd import DpSgd
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.synthesis.checkpoints import NAME, FitCheckpoints

STEPS = 5  # of the fixture few_steps


@dataclass
class Spent:
    """What a run descends from: the events of counts, and the private steps."""

    counts: int = 0
    steps: int = 0


def watch_spending(patch: pytest.MonkeyPatch, counts: Sequence[tuple[Any, str]]) -> Spent:
    """Count what is drawn; what a checkpoint does not hold is lost when a fit is stopped.

    Args:
        patch: undone when the test ends.
        counts: functions that run the events of counts, by who has them and their names.
    """
    spent, kept = Spent(), Spent()
    noisy_sum = DpSgd.noisy_sum
    write, read = FitCheckpoints._record_and_write, FitCheckpoints.__init__

    def watched(count: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **settings: Any) -> Any:
            spent.counts += 1
            return count(*given, **settings)

        return counted

    def summed(self: Any, *given: Any) -> Any:
        spent.steps += 1
        return noisy_sum(self, *given)

    def written(self: Any, state: Any) -> None:
        write(self, state)
        kept.counts, kept.steps = spent.counts, spent.steps

    def opened(self: Any, *given: Any) -> None:
        spent.counts, spent.steps = kept.counts, kept.steps
        read(self, *given)

    for owner, name in counts:
        patch.setattr(owner, name, watched(getattr(owner, name)))
    patch.setattr(DpSgd, "noisy_sum", summed)
    patch.setattr(FitCheckpoints, "_record_and_write", written)
    patch.setattr(FitCheckpoints, "__init__", opened)
    return spent


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
            execution=Execution(checkpoints=self.folder / "kept"),
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
