"""Shadow models with a fake clock, on a table that stands in for a fit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.assessment import shadows
from dpsynth.assessment.shadow_models import FittedShadow, ShadowDesign
from dpsynth.encoding import Cohort
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.core import Tables, TableView
from dpsynth.privacy import OsEntropy

PATIENTS = 400

TARGETS = 4


def view(design: ShadowDesign, codes: Any) -> TableView:
    frame = design.prepared.codec.decode(codes, np.random.default_rng(1))
    return TableView(frame, codes, np.arange(len(codes)))


def leaking(design: ShadowDesign, cohort: Cohort) -> TableView:
    return view(design, cohort.codes[cohort.mask])


def blind(design: ShadowDesign, cohort: Cohort) -> TableView:
    del cohort
    rng = OsEntropy().generator()
    return view(design, design.codes[rng.choice(len(design.codes), 300)])


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Team:
    """Works in this process; each fit takes as many seconds as it is told."""

    def __init__(self, work: Any, clock: Clock, seconds: Callable[[int], float]) -> None:
        self.work, self.clock, self.seconds = work, clock, seconds
        self.started = 0
        self.at_work: list[tuple[float, int]] = []
        self.began: list[float] = []
        self.began_with: list[int] = []

    @property
    def idle(self) -> int:
        return self.started - len(self.at_work)

    def start_workers(self, count: int) -> None:
        self.started += count

    def start(self, number: int) -> None:
        assert self.idle > 0
        self.began.append(self.clock.now)
        self.began_with.append(number)
        self.at_work.append((self.clock.now + self.seconds(number), number))

    def next(self, seconds: float | None = None) -> FittedShadow | None:
        self.at_work.sort()
        end, number = self.at_work[0]
        if seconds is not None and end > self.clock.now + seconds:
            self.clock.now += seconds
            return None
        self.clock.now = end
        self.at_work.pop(0)
        result: FittedShadow = self.work(number)
        return replace(result, seconds=self.seconds(number))


class Bench:
    """Plays shadow models with a fake clock; keeps what was made."""

    def __init__(self, tables: Tables, folder: Path) -> None:
        self.tables, self.folder = tables, folder
        self.clock = Clock()
        self.made: list[int] = []
        self.said: list[str] = []
        self.teams: list[Team] = []

    def play(
        self,
        minutes: float,
        *,
        seconds: Callable[[int], float] = lambda _: 60.0,
        fit: Any = blind,
        workers: int = 2,
        epsilon: float = 5.0,
        stop: int | None = None,
        seed: int = 3,
    ) -> Attack:
        def counted(design: ShadowDesign, cohort: Cohort) -> TableView:
            if len(self.made) == stop:
                raise KeyboardInterrupt
            self.made.append(1)
            table: TableView = fit(design, cohort)
            return table

        def start_pool(work: Any) -> AbstractContextManager[Team]:
            self.teams.append(Team(work, self.clock, seconds))
            return nullcontext(self.teams[-1])

        return shadows(
            self.tables.schema,
            "independent",
            epsilon,
            1e-6,
            self.tables,
            folder=self.folder,
            budget_minutes=minutes,
            workers=workers,
            seed=seed,
            targets=TARGETS,
            announce=self.said.append,
            progress=lambda *_: None,
            fit=counted,
            start_pool=start_pool,
            clock=self.clock,
        )


def design(tables: Tables, **more: Any) -> ShadowDesign:
    settings = {"seed": 1, "targets": TARGETS, "not_private": False} | more
    return ShadowDesign.of(tables.schema, "independent", 5.0, 1e-6, tables, **settings)
