"""What shadow models are fitted to: who is in each of them, under which plan.

Internal: see `dpsynth.assessment.shadow_models`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.seeds import fresh_seed
from dpsynth._util.strict_json import digest
from dpsynth._util.workers import single_threaded
from dpsynth._version import __version__
from dpsynth.encoding import Cohort, select
from dpsynth.errors import InputError
from dpsynth.eval.attacks import Exposed, Shadow, ShadowSight
from dpsynth.eval.core import Tables, TableView
from dpsynth.models import generator_class
from dpsynth.privacy import NonPrivatePlan, OsEntropy
from dpsynth.privacy.plan import NOMINAL_BUDGET
from dpsynth.schema import Declared, Schema
from dpsynth.synthesis import Prepared, Sampler, prepare, require_small_delta

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
        if not_private and not generator_class(model).neural:
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
    frames = Sampler(fitted, prepared.codec, rules).frames(design.rows, seed=fresh_seed())
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
