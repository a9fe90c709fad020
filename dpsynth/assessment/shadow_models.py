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

What shadow models are fitted to: who is in each of them, under which plan.

Internal: see `dpsynth.assessment.shadow_models`.

Where finished shadow fits are kept: a folder for its owner only, a place for each setting.

Internal: features are about real people; see `dpsynth.assessment.shadow_models`.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.seeds import fresh_seed
from dpsynth._util.strict_json import digest, read_document, written
from dpsynth._util.workers import Work, WorkerPool, single_threaded
from dpsynth._version import __version__
from dpsynth.encoding import Cohort, select
from dpsynth.errors import ArtifactError, InputError
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import Exposed, Shadow, ShadowSight, shadow_attack
from dpsynth.eval.core import Tables, TableView
from dpsynth.files import check_apart, reason, write_atomically
from dpsynth.models import Progress, spec_of
from dpsynth.privacy import NonPrivatePlan, OsEntropy
from dpsynth.privacy.plan import NOMINAL_BUDGET
from dpsynth.schema import Declared, Schema
from dpsynth.synthesis import Prepared, RowSampler, prepare, require_small_delta

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNITS = 5_000  # of a fit, but for the targets, at most
ROWS = 20_000  # of a table that is drawn, at most
MIN_UNITS = 50  # units of source and holdout, but for the targets
LIBRARIES = ("opendp.measurements", "torch", "torch._dynamo")  # the last one by torch's optimisers
STREAM = 0x5AD0  # of the seed's random numbers, apart from those of other attacks
BASIS = "the size of a shadow table, which the auditor chose"


@dataclass(frozen=True, eq=False)
class ShadowDesign:
    """What the fits of one attack share.

    Attributes:
        schema: the run's, with the size of a shadow table.
        prepared: model and plan, calibrated for that size.
        not_private: whether fits are without noise.
        settings: all that the fits depend on, in JSON types.
        seed: of coins and people.
        exposed: the targets.
        sight: what is looked at in each table.
        codes: rows of source and holdout.
        owners: the unit of each row.
        pool: units that are not targets.
        size: how many of them are in each fit.
    """

    schema: Schema
    prepared: Prepared
    not_private: bool
    settings: dict[str, Any]
    seed: int
    exposed: Exposed
    sight: ShadowSight
    codes: Codes
    owners: Ints
    pool: Ints
    size: int

    @classmethod
    def of(
        cls,
        schema: Schema,
        model: str,
        epsilon: float,
        delta: float,
        tables: Tables,
        *,
        seed: int,
        targets: int,
        not_private: bool,
    ) -> ShadowDesign:
        """Choose targets, and calibrate the plan.

        Raises:
            InputError: there is no holdout, there are too few people, or model and budget do not
                go with a table of that size.
        """
        rng = np.random.default_rng([seed, STREAM])
        exposed = Exposed.of(tables, targets, rng)
        assert tables.holdout is not None  # `Exposed` refuses that
        codes = np.concatenate([tables.source.codes, tables.holdout.codes])
        owners = np.concatenate([tables.source.units, tables.holdout.units])
        everyone = np.unique(owners)
        pool = np.setdiff1d(everyone, exposed.units)
        size = min(UNITS, len(pool) // 2)
        if len(pool) < MIN_UNITS:
            raise InputError(f"shadow models need {MIN_UNITS} units of source and holdout at least")
        population = size + targets // 2  # never those who are in
        rows = round(population * len(codes) / len(everyone))
        smaller = replace(
            schema, population=Declared(population, BASIS), rows=Declared(rows, BASIS)
        )
        if not_private and not spec_of(model).neural:
            raise InputError(f"model '{model}' has no fit without privacy")
        if not_private:
            epsilon, delta = NOMINAL_BUDGET.epsilon, NOMINAL_BUDGET.delta
        require_small_delta(smaller, epsilon, delta)
        settings = {
            "dpsynth": __version__,
            "schema": schema.hash(),
            "model": model,
            "epsilon": epsilon,
            "delta": delta,
            "not_private": not_private,
            "tables": _digest(tables.source, tables.holdout),
            "seed": seed,
            "targets": targets,
            "units": size,
            "rows": min(ROWS, rows),
        }
        prepared = prepare(smaller, epsilon=epsilon, delta=delta, model=model)
        sight = ShadowSight.of(tables, exposed.units, rng)
        return cls(
            smaller,
            prepared,
            not_private,
            settings,
            seed,
            exposed,
            sight,
            codes,
            owners,
            pool,
            size,
        )

    @cached_property
    def name(self) -> str:
        """Of these settings."""
        return digest(self.settings)

    @property
    def delta(self) -> float:
        """At which epsilon is bounded."""
        return self.prepared.plan.budget.delta

    @property
    def rows(self) -> int:
        """Of a table that is drawn."""
        return int(self.settings["rows"])

    @property
    def note(self) -> str:
        """What a reader has to know of the fits."""
        noise = "without noise" if self.not_private else "under the run's budget"
        return (
            f"shadow models: each was fitted {noise} to {self.size} random people of source and "
            "holdout and those of the targets whose coins said so; what they show is about the "
            "method at that size"
        )

    def dealt(self, number: int) -> tuple[Bools, Ints]:
        """Return which targets are in a fit, and which others."""
        rng = np.random.default_rng([self.seed, STREAM, number])
        included = rng.random(len(self.exposed.units)) < 0.5
        return included, rng.choice(self.pool, size=self.size, replace=False)

    def cohort(self, included: Bools, others: Ints) -> Cohort:
        """Return rows as a fit takes them in, at most ``max_rows`` of a unit, in random order.

        Where a unit keeps a window of rows, their order in the table counts for that in time.
        """
        chosen = np.concatenate([others, self.exposed.units[included]])
        rows = np.flatnonzero(np.isin(self.owners, chosen))
        unit, entropy = self.schema.unit, OsEntropy()
        order = np.arange(len(rows)) if unit.keep == "window" else None
        taken, places = select(self.owners[rows], unit.max_rows, entropy, order=order)
        rows = rows[taken]
        names, seats = np.unique(self.owners[rows], return_inverse=True)
        seats = entropy.permutation(len(names))[seats]
        codes = np.zeros((len(names), unit.max_rows, self.codes.shape[1]), dtype=np.uint16)
        mask = np.zeros((len(names), unit.max_rows), dtype=bool)
        codes[seats, places] = self.codes[rows]
        mask[seats, places] = True
        return Cohort(codes, mask)


Fit = Callable[[ShadowDesign, Cohort], TableView]


def fit_and_draw(design: ShadowDesign, cohort: Cohort) -> TableView:
    """Carry the plan out on a cohort, and draw a table as a release would be drawn."""
    prepared, rules = design.prepared, design.schema.rules
    plan: Any = NonPrivatePlan(prepared.plan) if design.not_private else prepared.plan
    unfitted = prepared.generator()
    single_threaded()
    fitted = unfitted.fit(cohort, plan, prepared.plan.opened(OsEntropy()))
    frames = RowSampler(fitted, prepared.codec, rules).frames(design.rows, seed=fresh_seed())
    codes, frame = prepared.codec.read(pd.concat(frames, ignore_index=True))
    return TableView(frame, codes, np.arange(len(codes)))


@dataclass(frozen=True, eq=False)
class FittedShadow:
    """One fit that was carried out.

    Attributes:
        shadow: what its table says.
        seconds: that it took.
    """

    shadow: Shadow
    seconds: float


@dataclass(frozen=True, eq=False)
class Playing:
    """The work of each worker: fit, draw, look.

    Attributes:
        design: of the attack.
        fit: how a table comes from a cohort.
    """

    design: ShadowDesign
    fit: Fit = fit_and_draw

    def warm(self) -> None:
        """Import what the first fit would, so that it takes no longer than the others."""
        self.design.prepared.generator()
        if self.design.prepared.networks:  # others need none of them
            for library in LIBRARIES:
                import_module(library)

    def __call__(self, number: int) -> FittedShadow:
        """Make one fit."""
        started = time.monotonic()
        included, others = self.design.dealt(number)
        table = self.fit(self.design, self.design.cohort(included, others))
        features = self.design.sight.features(table)
        return FittedShadow(Shadow(number, included, features), time.monotonic() - started)


def _digest(*views: TableView) -> str:
    """Return a digest of the codes and units of tables."""
    digest = hashlib.sha256()
    for view in views:
        digest.update(repr(view.codes.shape).encode())
        digest.update(np.ascontiguousarray(view.codes).tobytes())
        digest.update(np.ascontiguousarray(view.units).tobytes())
    return digest.hexdigest()


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


FORMAT, VERSION = "dpsynth-shadow", 1
_NAME = "fit-{:03d}.json"


@dataclass(frozen=True)
class ShadowFolder:
    """Finished fits of one setting.

    Attributes:
        place: the setting's own folder.
        settings: their digest.
        shape: of the features: targets, and what is seen of each.
    """

    place: Path
    settings: str
    shape: tuple[int, int]

    @classmethod
    def of(cls, folder: str | Path, design: ShadowDesign) -> ShadowFolder:
        """Make the place of a setting, if it is not there.

        Raises:
            InputError: it cannot be made, or lies in a run or a bundle.
        """
        place = Path(folder) / design.name[:16]
        check_apart(place)
        try:
            for path in (Path(folder), place):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"the folder {place} for shadow models cannot be made: {reason(error)}"
            ) from None
        cache = cls(place, design.name, (len(design.exposed.units), design.sight.width))
        cache._write("settings.json", written({"internal": True, **design.settings}))
        return cache

    def read(self) -> dict[int, FittedShadow]:
        """Return what is there, by number; a damaged or foreign file counts as none."""
        fits = {}
        for path in sorted(self.place.glob("fit-*.json")):
            fit = self._one(path)
            if fit is not None and path.name == _NAME.format(fit.shadow.number):
                fits[fit.shadow.number] = fit
        return fits

    def write(self, fit: FittedShadow) -> None:
        """Keep a fit."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "internal": True,
            "settings": self.settings,
            "number": fit.shadow.number,
            "included": fit.shadow.included.tolist(),
            "features": fit.shadow.features.tolist(),
            "seconds": fit.seconds,
        }
        self._write(_NAME.format(fit.shadow.number), written(document))

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self.place / name, content, private=True)

    def _one(self, path: Path) -> FittedShadow | None:
        try:
            document = read_document(path)
            if (document["format"], document["settings"]) != (FORMAT, self.settings):
                return None
            included = np.array(document["included"], dtype=bool)
            features = np.array(document["features"], dtype=float)
            if features.shape != self.shape or len(included) != len(features):
                return None
            if not np.isfinite(features).all():
                return None
            shadow = Shadow(int(document["number"]), included, features)
            return FittedShadow(shadow, float(document["seconds"]))
        except (ArtifactError, KeyError, TypeError, ValueError):
            return None
