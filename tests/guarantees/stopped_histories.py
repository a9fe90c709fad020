"""An office whose fit of linked tables is stopped and goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Execution, Run, fit

from .stopped_fits import Office


@dataclass
class LinkedOffice(Office):
    """Its source is a folder of tables."""

    schema: LinkedSchema  # type: ignore[assignment]

    def fit(  # type: ignore[override]
        self, progress: Callable[[str, float], None] = lambda *_: None, **other: Any
    ) -> Run:
        settings = {"epsilon": 3, "delta": 1e-5, "dataset": "clinic", "model": "autoregressive"}
        return fit(
            self.folder / "tables",
            self.schema,
            **settings | self.settings | {"ledger": self.ledger} | other,
            output=self.folder / "run",
            execution=Execution(checkpoints=self.folder / "kept"),
            progress=progress,
        )
