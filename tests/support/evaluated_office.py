"""A folder with a source, a holdout, a run and a table drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsynth.cli import main
from dpsynth.schema import Schema

DEMO = Schema.load("demo")


@dataclass(frozen=True)
class Office:
    """A folder with a source, a holdout, a run and a table drawn from it."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def arguments(self) -> list[str]:
        table, holdout = self.path("out.parquet"), self.path("holdout.csv")
        return [self.path("source.csv"), "--synthetic", table, "--holdout", holdout]


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)
