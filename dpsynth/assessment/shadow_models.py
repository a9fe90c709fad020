"""Shadow models: the generator is fitted many times, with and without a few exposed people.

Every fit is a whole private fit, with the run's model and budget and noise of the operating
system, on a random half of all units of source and holdout (5000 at most), and on those targets
whose coins say so. The declared size counts the others only, never who of the targets is in. A
table is drawn, what it says about the targets is kept (`shadow_models`), and the table is
thrown away.

All of this is INTERNAL: fits see real rows, and no ledger is charged. Neither a fitted generator
nor a table is kept, and nothing of the folder of features ever leaves the office.

A fit that was finished is kept on the disk, so an attack that was interrupted goes on where it was.
Fit i is a function of the settings and of i, but for the noise. Even fits teach and odd ones are
judged; how many there are is decided by the clock, not by what they show.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpsynth._util.workers import Work, WorkerPool
from dpsynth.assessment.shadow_cache import ShadowFolder
from dpsynth.assessment.shadow_design import Fit, FittedShadow, Playing, ShadowDesign, fit_and_draw
from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import shadow_attack
from dpsynth.eval.core import Tables
from dpsynth.models import Progress
from dpsynth.schema import Schema

MIN_FITS, MAX_FITS = 16, 200  # fits
SPARE = 1.25  # of an estimate of time, where too little was given
TARGETS = 8

Announce = Callable[[str], None]
Clock = Callable[[], float]


class Team(Protocol):
    """Who carries fits out; see `dpsynth._util.workers.WorkerPool`."""

    @property
    def idle(self) -> int:
        """How many wait for a number."""
        ...

    def start_workers(self, count: int) -> None:
        """Take so many on."""
        ...

    def start(self, number: int) -> None:
        """Begin a fit."""
        ...

    def next(self, seconds: float | None = None) -> FittedShadow | None:
        """Wait for a result."""
        ...


StartPool = Callable[[Work[FittedShadow]], AbstractContextManager[Team]]


def shadows(
    schema: Schema,
    model: str,
    epsilon: float,
    delta: float,
    tables: Tables,
    *,
    folder: str | Path,
    budget_minutes: float,
    workers: int,
    seed: int,
    targets: int = TARGETS,
    not_private: bool = False,
    announce: Announce,
    progress: Progress,
    fit: Fit = fit_and_draw,
    start_pool: StartPool = WorkerPool,
    clock: Clock = time.monotonic,
) -> Attack:
    """Attack a generator by shadow models.

    Args:
        schema: of the run.
        model: of the run.
        epsilon: of the run; without meaning if it is not private.
        delta: of the run; the same.
        tables: source and holdout are used.
        folder: where finished fits are kept, for the owner only; each setting has its own place.
        budget_minutes: no fit is started that would end later, by the slowest one of this call.
        workers: processes, one core each.
        seed: of targets, coins, people and queries; never of noise.
        targets: how many people are attacked.
        not_private: fit without noise, as the run was; only for neural models.
        announce: is told, before most of the time is spent, how long it will take.
        progress: called with ``shadows`` and the fraction done.
        fit: learns from a cohort and draws a table; another one for a control.
        start_pool: starts the workers that carry out the fits.
        clock: seconds.

    Raises:
        InputError: fewer than 16 fits would be done in time; the message says how long they take.
            What was done is kept.
    """
    if not (math.isfinite(budget_minutes) and budget_minutes > 0):
        raise InputError(f"the budget must be more than 0 minutes, not {budget_minutes:g}")
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    watch = _Watch(clock, clock(), 60 * budget_minutes, workers)
    design = ShadowDesign.of(
        schema, model, epsilon, delta, tables, seed=seed, targets=targets, not_private=not_private
    )
    cache = ShadowFolder.of(folder, design)
    fits = cache.read()
    earlier = sum(one.seconds for one in fits.values()) / workers
    with start_pool(Playing(design, fit)) as team:
        _carry_out(team, cache, fits, watch, announce, progress)
    return shadow_attack(
        [one.shadow for _, one in sorted(fits.items())],
        design.exposed.groups,
        design.delta,
        minutes=(watch.spent + earlier) / 60,
        notes=(design.note,),
    )


@dataclass
class _Watch:
    """What is known of time, in seconds.

    Attributes:
        clock: tells it.
        begun: when the call was made.
        budget: that may be spent.
        workers: at most.
        slowest: fit of this call; 0 before the first one.
        warming: what a process takes to start.
    """

    clock: Clock
    begun: float
    budget: float
    workers: int
    slowest: float = 0.0
    warming: float = 0.0

    @property
    def spent(self) -> float:
        """What is over of the budget."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """What is left of it."""
        return self.budget - self.spent

    def room(self) -> int:
        """Return how many fits can still be done, all workers together."""
        rounds = math.floor((self.left - self.warming) / max(self.slowest, 1e-3))
        return self.workers * max(0, rounds)

    def needed(self, fits: int) -> float:
        """Return what another call needs for so many fits, the first of them alone."""
        rounds = 1 + math.ceil((fits - 1) / self.workers)
        return SPARE * (2 * self.warming + rounds * self.slowest)


def _carry_out(
    team: Team,
    cache: ShadowFolder,
    fits: dict[int, FittedShadow],
    watch: _Watch,
    announce: Announce,
    progress: Progress,
) -> None:
    """Make missing fits, the lowest numbers first, as many as there is time for."""
    missing = [number for number in range(MAX_FITS) if number not in fits]
    at_work = 0

    def finished(fit: FittedShadow) -> None:
        cache.write(fit)
        fits[fit.shadow.number] = fit
        watch.slowest = max(watch.slowest, fit.seconds)

    if missing and (fit := _pilot(team, missing[0], watch)) is not None:
        finished(fit)
        missing.pop(0)
        more = min(len(missing), watch.room())
        if len(fits) + more < MIN_FITS:
            raise _too_short(len(fits), watch)
        if more:
            announce(_estimate(len(fits), more, watch))
        team.start_workers(max(0, min(watch.workers, more) - 1))
        while True:
            while missing and team.idle and watch.left >= watch.slowest:
                team.start(missing.pop(0))
                at_work += 1
            if not at_work and (not missing or watch.left < watch.slowest):
                break
            result = team.next()
            if result is not None:
                finished(result)
                at_work -= 1
                progress("shadows", min(1.0, max(len(fits) / MAX_FITS, watch.spent / watch.budget)))
    if len(fits) < MIN_FITS:
        raise _too_short(len(fits), watch)
    progress("shadows", 1.0)


def _pilot(team: Team, number: int, watch: _Watch) -> FittedShadow | None:
    """Make one fit, and time it; None if it did not end within the budget."""
    begun = watch.clock()
    team.start_workers(1)
    while not team.idle and watch.left > 0:
        team.next(watch.left)
    if not team.idle:
        return None
    team.start(number)
    while watch.left > 0:
        fit = team.next(watch.left)
        if fit is not None:
            watch.warming = max(0.0, watch.clock() - begun - fit.seconds)
            return fit
    return None


def _estimate(done: int, more: int, watch: _Watch) -> str:
    """Say how long it will take."""
    rounds = math.ceil(more / watch.workers)
    minutes = (watch.warming + rounds * watch.slowest) / 60
    earlier = f"{done - 1} are kept from an earlier call; " if done > 1 else ""
    return (
        f"shadow models: one takes {watch.slowest:.1f} s; {earlier}{more} more will be fitted, "
        f"{watch.workers} at a time, in about {max(0.1, minutes):.1f} minutes"
    )


def _too_short(done: int, watch: _Watch) -> InputError:
    """Say how long it would take; what was done is kept."""
    if not watch.slowest:
        return InputError(
            f"not one shadow model was fitted in {watch.budget / 60:g} minutes, and {MIN_FITS} are "
            f"needed; give more than {MIN_FITS / watch.workers:.0f} times as many"
        )
    minutes = math.ceil(watch.needed(MIN_FITS - done) / 60)
    return InputError(
        f"{MIN_FITS} shadow models are needed, and {watch.budget / 60:g} minutes are too few: one "
        f"takes {watch.slowest:.1f} s; {done} are done and kept, and the others take about "
        f"{minutes} minutes (workers: {watch.workers}): give so many or more"
    )
