"""An audit of the training in one run: canaries among synthetic rows.

m canary patients, each of them put into the data by a fair coin; the rest of the data is drawn from
a run (or any table that holds no real person). The run's own plan is carried out on them once more,
with the operating system's noise, and an attacker guesses the coins: from the weights that a run
keeps (black box), and from every noisy release (white box, see `transcript`). How many
guesses are right bounds epsilon from below (`dpsynth.eval.attack_stats.tradeoff`).

Nothing here reads a private row, so nothing is charged and the result may be published. It is about
the mechanism as it is written and installed: the same code, plan and noise as the fit's.

A canary's codes are uniform over the schema's: a person like nobody else. Every second canary has
as many rows as a unit may have, all equal, so that a limit that was kept by row and not by unit
would show. Canaries of linked tables are whole histories.

Canary patients of linked tables: unusual whole histories, among patients drawn from a run.

A canary's baseline, events and values are uniform over the schema's codes: a patient like nobody
else, made without a look at any data. Every second canary has as many rows of every series as count
at most, all of one value, so that a limit that was kept by row, by table or by series, and not by
patient, would show. The others have two rows of one series of each table: one step, which carries
all that a patient may weigh.

The white-box attacker sees every noisy count of the plan. The black-box attacker draws a cohort
from what was learned, and asks how dense it is around a canary's whole history (`summaries`),
compared with a cohort of the audited run, which saw no canary (DOMIAS, van Breugel et al., arXiv
2302.12580).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import (
    NEVER,
    Codec,
    Cohort,
    Histories,
    HistoryCodec,
    SeriesRows,
    summaries,
    summary_schema,
)
from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import Scored, TrainingClaim, training
from dpsynth.eval.core import RealTables
from dpsynth.eval.distances import Metric, log_density, width_of
from dpsynth.models import Domain, Generator, generator_class, histories_class, silent
from dpsynth.models.auditing import Transcript, log_likelihood
from dpsynth.models.generators import Independent
from dpsynth.models.histories import (
    CohortGenerator,
    HistoryDomain,
    PersonTable,
    Series,
    domain_of,
    one_row_each,
)
from dpsynth.models.marginals import cohort_with_visits
from dpsynth.privacy import Entropy, ObservedPlan, OsEntropy, PrivacyPlan, deltas, epsilon
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Run, bootstrapped, fitting_state, plan_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Progress = Callable[[str, float], None]

POINTS = 200  # of a claimed curve
BACKGROUND = 20_000  # units drawn from the run, at most
CANARIES = 1_000
MAX_CANARIES, MIN_CANARIES = 10_000, 50
TWIN = 10.0  # times that a twin's releases are more telling than the fit's


class Plants(Protocol):
    """Canaries and everybody else of an audit; of one table, or of linked ones."""

    def __len__(self) -> int:
        """Return the number of canaries."""

    def data(self, included: Bools) -> Any:
        """Return what a fit reads: everybody else, and then the canaries that are in."""

    def observer(self, generator: Any, kind: type[Transcript]) -> Transcript:
        """Return an observer of a generator's fit who knows all of them."""

    def black(self, fitted: Any) -> Floats:
        """Score the canaries by what a fit keeps, ``[m]``."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit on a background and some of the canaries, and what an attacker makes of it.

    Attributes:
        included: which canaries were in, ``[m]``.
        black: scores from what the fit keeps, ``[m]``; higher where a canary seems to be in.
        white: scores from all that the plan's events released, ``[m]``; None where nobody watched.
        seconds: how long the fit took.
    """

    included: Bools
    black: Floats
    white: Floats | None
    seconds: float


def check_canaries(count: int) -> None:
    """Refuse numbers of canaries that say nothing or take for ever.

    Raises:
        InputError: there are too few or too many.
    """
    if not MIN_CANARIES <= count <= MAX_CANARIES:
        raise InputError(f"canaries must be {MIN_CANARIES} to {MAX_CANARIES}, not {count}")


def canaries(domain: Domain, count: int, rng: np.random.Generator) -> Cohort:
    """Draw canary patients: uniform codes; every second one has all its rows, and equal ones."""
    rows = domain.max_rows
    codes = np.stack([rng.integers(0, size, count) for size in domain.sizes], axis=-1)
    mask = np.zeros((count, rows), dtype=bool)
    mask[:, 0] = True
    mask[1::2] = True
    laid = np.where(mask[:, :, None], codes[:, None, :], 0).astype(np.uint16)
    return Cohort(laid, mask)


@dataclass(frozen=True, eq=False)
class PlantedRows:
    """Canaries among the units of one table.

    Attributes:
        background: units that are no real person's.
        planted: the canaries, see `canaries`.
        baseline: a generator that saw no canary: how likely each would be anyway.
    """

    background: Cohort
    planted: Cohort
    baseline: Generator | None = None

    def __len__(self) -> int:
        """Return the number of canaries."""
        return len(self.planted.mask)

    def data(self, included: Bools) -> Cohort:
        """Return the background, and behind it the canaries that are in."""
        return Cohort(
            np.concatenate([self.background.codes, self.planted.codes[included]]),
            np.concatenate([self.background.mask, self.planted.mask[included]]),
        )

    def observer(self, generator: Generator, kind: type[Transcript]) -> Transcript:
        """Return an observer of a generator's fit."""
        planted, others = (seen_by(generator, one) for one in (self.planted, self.background))
        return kind(planted, others)

    def black(self, fitted: Generator) -> Floats:
        """Score by likelihood, against that of the baseline."""
        likely = log_likelihood(fitted, self.planted)
        if self.baseline is not None:
            likely -= log_likelihood(self.baseline, self.planted)
        return likely


def trial(
    generator: Any,
    plan: PrivacyPlan,
    plants: Plants,
    *,
    rng: np.random.Generator,
    entropy: Entropy | None = None,
    observer: type[Transcript] | None = Transcript,
    progress: Progress = silent,
) -> Trial:
    """Carry a plan out on a background and on those canaries whose coins say so.

    Args:
        generator: unfitted.
        plan: calibrated for it.
        plants: the canaries, and everybody else.
        rng: of the coins.
        entropy: source of noise; the operating system's if None.
        observer: the class that sees the releases; another for a control, None for real rows.
        progress: of the fit's stages.
    """
    started = time.monotonic()
    included = rng.random(len(plants)) < 0.5
    heard = None if observer is None else plants.observer(generator, observer)
    terms = plan if heard is None else ObservedPlan(plan, heard)
    paid = plan.opened(entropy or OsEntropy())
    fitted = generator.fit(plants.data(included), terms, paid, progress)
    black = plants.black(fitted)
    white = None if heard is None else heard.scores()
    return Trial(included, black, white, time.monotonic() - started)


def audited_training(
    run: Run,
    *,
    count: int = CANARIES,
    units: int = BACKGROUND,
    seed: int,
    progress: Progress = silent,
) -> tuple[Attack, int]:
    """Audit the training of a run on rows that are drawn from the run.

    Two fits are made, with the same canaries: one by the run's plan, and a twin with a part of its
    noise, which leaks a known epsilon and shows how well the attacks see.

    Args:
        run: the artifact of a private fit, of one table or of linked ones; nothing else is read.
        count: canaries.
        units: of the background, at most; few make a canary easier to see.
        seed: of the background, the canaries and their coins; the noise has none.
        progress: called with a stage and its fraction done.

    Returns:
        What was found, all of it public, and how many units the background had.
    """
    plan, rng = plan_of(run), np.random.default_rng(seed)
    plants: Plants
    unfitted: Callable[[], Any]
    if isinstance(run.schema, LinkedSchema):
        plants, unfitted, background = planted_histories(run, count, units, rng)
    else:
        plants, unfitted, background = planted_rows(run, count, units, rng)

    def played(terms: PrivacyPlan, name: str) -> Trial:
        def named(stage: str, part: float) -> None:
            progress(f"{name}: {stage}", part)

        return trial(unfitted(), terms, plants, rng=rng, progress=named)

    louder = tuple(event.with_mu(event.mu() * TWIN) for event in plan.events)
    fit = played(plan, "canaries")
    twin = played(replace(plan, events=louder), "twin")
    attack = training(
        claim_of(plan),
        views_of(fit),
        views_of(twin),
        epsilon(louder, plan.budget.delta),
        {"background": "run", "model": run.model, "seconds": round(fit.seconds, 1)},
    )
    return attack, background


def planted_rows(
    run: Run, count: int, units: int, rng: np.random.Generator
) -> tuple[PlantedRows, Callable[[], Generator], int]:
    """Draw canaries and a background for a run of one table.

    Returns:
        Both of them, what makes an unfitted generator, and how many units the background has.
    """
    domain = Domain.of(run.schema, Codec(run.schema))
    kind = generator_class(run.model)
    rows = bootstrapped(run, seed=int(rng.integers(2**62)))
    background = Cohort(rows.codes[:units], rows.mask[:units])
    planted = canaries(domain, count, rng)
    baseline = kind.restore(domain, run.config, run.arrays)
    plants = PlantedRows(background, planted, baseline)
    return plants, lambda: kind(domain), len(background.mask)


def views_of(planted: Trial) -> dict[str, Scored]:
    """Return the canaries as each attacker scores them."""
    views = {"black": planted.black, "white": planted.white}
    return {
        name: Scored(planted.included, score) for name, score in views.items() if score is not None
    }


def seen_by(generator: Generator, cohort: Cohort) -> Cohort:
    """Return a cohort as the generator's events see it, with the hidden column where it has one."""
    if isinstance(generator, Independent):
        return cohort
    return cohort_with_visits(cohort, generator.domain.order)


def claim_of(plan: PrivacyPlan) -> TrainingClaim:
    """Return what a plan claims: its budget, and the curve that its events account for."""
    budget = plan.budget
    epsilons = np.concatenate([[0.0], np.geomspace(0.01, 4 * budget.epsilon + 4, POINTS)])
    return TrainingClaim(budget.epsilon, budget.delta, epsilons, deltas(plan.events, epsilons))


Ints = npt.NDArray[np.int64]

DRAWN = 20_000  # patients of the cohort that the black-box attacker draws, at most


def canary_histories(domain: HistoryDomain, count: int, rng: np.random.Generator) -> Histories:
    """Draw canary patients from public facts alone; see the module."""
    baseline = np.column_stack(
        [rng.integers(0, feature.size, count) for feature in domain.baseline]
    ).astype(np.uint16)
    ends = np.full(count, domain.last)
    if domain.end is not None:
        ends = domain.end.days_of(baseline[:, domain.end.column].astype(np.int64))
    shape = (count, len(domain.events))
    days = rng.integers(domain.first, ends[:, None] + 1, shape)
    onsets = np.where(rng.random(shape) < 0.5, days, NEVER)
    many = np.arange(count) % 2 == 1
    tables = []
    for table in domain.tables:
        only = rng.integers(len(table.series), size=count)
        first, last = (domain.first, ends) if table.timed else (0, 0 * ends)
        own = []
        for place, series in enumerate(table.series):
            two = np.where(only == place, min(2, series.max_rows), 0)
            own.append(_rows(series, np.where(many, series.max_rows, two), first, last, rng))
        tables.append(tuple(own))
    return Histories(baseline, ends, onsets, tuple(tables))


def _rows(
    series: Series, counts: Ints, first: int, ends: Ints, rng: np.random.Generator
) -> SeriesRows:
    """Draw so many rows of each patient: on days of follow-up, in order, and of one value each."""
    patients = np.repeat(np.arange(len(counts)), counts)
    days = rng.integers(first, ends[patients] + 1)
    days = days[np.lexsort((days, patients))]
    values = [rng.integers(0, value.size, len(counts)) for value in series.values]
    return SeriesRows(patients, days, np.column_stack(values).astype(np.uint16)[patients])


@dataclass(frozen=True, eq=False)
class PlantedHistories:
    """Canary patients among patients who are drawn from a run; as `PlantedRows` is for one table.

    Attributes:
        background: patients who are no real person.
        planted: the canaries.
        codec: of both.
        drawn: patients of a generator that saw no canary.
        seed: of the cohort that the black-box attacker draws.
    """

    background: Histories
    planted: Histories
    codec: HistoryCodec
    drawn: Histories
    seed: int

    def __len__(self) -> int:
        """Return the number of canaries."""
        return len(self.planted)

    def data(self, included: Bools) -> Histories:
        """Return the background, and behind it the canaries that are in."""
        return self.background.beside(self.planted.take(np.flatnonzero(included)))

    def observer(self, generator: CohortGenerator, kind: type[Transcript]) -> Transcript:
        """Return an observer of a generator's fit."""
        both, person = (self.planted, self.background), PersonTable(generator.domain)
        canaries, others = (one_row_each(person.codes(one)) for one in both)
        return kind(canaries, others, both)

    def black(self, fitted: CohortGenerator) -> Floats:
        """Score by how dense a drawn cohort is around each history, against the baseline's."""
        drawn = fitted.sample(len(self.drawn), np.random.default_rng(self.seed))
        schema = summary_schema(self.codec)
        planted, own, before = (
            RealTables.read(schema, summaries(one, self.codec)).source
            for one in (self.planted, drawn, self.drawn)
        )
        metric = Metric.of(Codec(schema))
        canaries, *cohorts = map(metric.points, (planted, own, before))
        width = width_of(metric, cohorts[1], cohorts[0])
        near, anyway = (log_density(metric, canaries, one, width) for one in cohorts)
        return np.asarray(near - anyway)


def planted_histories(
    run: Run, count: int, units: int, rng: np.random.Generator
) -> tuple[PlantedHistories, Callable[[], CohortGenerator], int]:
    """Draw canaries and a background for a run of linked tables.

    Returns:
        Both of them, what makes an unfitted generator, and how many patients the background has.
    """
    codec = HistoryCodec(run.schema)
    domain = domain_of(codec)
    kind: type[CohortGenerator] = histories_class(run.model)
    with fitting_state(run.model):
        audited = kind.restore(domain, run.config, run.arrays)
        background = audited.sample(min(units, run.schema.population.value), rng)
        drawn = audited.sample(min(DRAWN, run.schema.population.value), rng)
    planted, seed = canary_histories(domain, count, rng), int(rng.integers(2**62))
    plants = PlantedHistories(background, planted, codec, drawn, seed)
    return plants, lambda: kind(domain), len(background)
