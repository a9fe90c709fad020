"""What a fit will take: seconds and memory, from public facts, before its charge.

The work of each stage is counted from the schema, the preset and the plan, in three kinds that a
short trial on this machine turns into seconds: multiply-adds of matrix products, numbers that an
operation on arrays passes over, and calls of such operations from Python. No row is read: numbers
of rows and patients are the declared ones. The coefficients below say how many passes and calls a
stage makes. They were counted in the code or fitted once to measured stages, for all tables and
machines (`bench/fit_cost.py` compares estimates with fits; docs/benchmarks.md has its figures).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpsynth._util.memory_limit import memory_limit
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.models import Domain, Preset, runs_again, spec_of
from dpsynth.models.histories import HistoryDomain, PersonTable, Series
from dpsynth.models.histories.latent import PatientTable
from dpsynth.models.histories.networks import LATENT
from dpsynth.models.histories.settings import CLEAR, MAX_CONDITIONS, HistorySettings
from dpsynth.models.marginals.product_fit import SPARSE
from dpsynth.models.presets import MAX_PAIRS
from dpsynth.privacy import PoissonSgd, PrivacyPlan, gaussian_mu
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.schema import Schema
from dpsynth.synthesis.preparation import Preparation, Prepared, PreparedCohort

MEBIBYTE = 2**20
LIBRARIES, OF_NETWORKS = 270 * MEBIBYTE, 250 * MEBIBYTE
"""Memory of the libraries that any fit loads, and of those of mixtures and networks beside them."""

CODE_BYTES = 64  # of a code that is counted
SHARE_BYTES, SQUARE_BYTES, SPARSE_BYTES = 32, 40, 9
"""Of a mixture's fit: of each share of each component; of each cell of the square of all bins, and
of the same where few pairs are measured."""

CELL_PASSES, COLUMN_CALLS = 250, 400  # of coding a cell of a table; a column, for each chunk of it
CHUNK = 65_536  # rows of a table, about
NOISE_CALLS = 8  # of one whole number of noise
CODE_CALLS = 20  # of a code of a column: its noise, and the merging of bins
START_CALLS = 100_000  # of the charge, and of opening a table
PAIR_CALLS, COUNT_PASSES = 60, 4  # of a pair that is counted; of a row, for each histogram
CHOICE_CALLS = 0.5  # of a pair that may be counted
FIT_PASSES, TIE_PASSES, FIT_CALLS = 16, 8, 250
"""Of a step of a mixture: of each share of each component; the same, where a tie is weighed."""
SQUARE_PASSES = 8  # of the same, of each cell of the square of all bins
TRAIN_PASSES, TRAIN_CALLS = 40, 300  # of a step of a network: of each logit of each row
PRIVATE = 1.7  # a private step, times one of public rows: norms by unit, sums in float64
WEIGHT_PASSES = 20  # of a step, of each weight
DRAW_PASSES, ORDER_PASSES = 40, 400  # of a row that is drawn: of each logit; of each column
SETTLE_PASSES = 90  # of a row on which biases settle, of each logit
STEP_PASSES = 20_000  # of a row of a history: coded as a step, and drawn to calibrate gaps
UNITS_ROWS = 5  # rows of the mixture that a network sees, for each unit
MOST_UNITS = 60_000
SETTLED = 100_000  # rows on which biases settle
WARM_BATCH = {"distilled": 2_000, "ctgan": 4_000}
BATCH = 4_000  # rows of the mixture in a step of the other networks
COUNTED = "mixture"  # whose settings tell the counts of another package's generator
# of `latent`: a patient has so many of the rows that are kept at most; bytes of a row
KEPT_ROWS, ROW_BYTES = 0.2, 24
LAID_PASSES, FACT_PASSES, DAY_PASSES = 200, 200, 1_300
"""Of a row that is laid out for events; of a row or fact that is drawn, and of a day of a row."""
LEAST_DRAWN, MOST_DRAWN, DRAWS = 4_000, 10_000, 6  # patients who are drawn, and how often
FACTORS, SOLVED, SOLVED_CALLS = 64, 200, 20
"""Of its correlations: factors, how often those of a column are solved, and calls of that."""
PERSON_STEPS, PERSON_BATCH, PERSON_ROWS = 3_000, 1_000, 250_000  # of a network of patients


@dataclass(frozen=True)
class Work:
    """Work of a stage, in units that a trial turns into seconds.

    Attributes:
        products: multiply-adds of float32 matrix products.
        passes: numbers that operations on arrays pass over.
        calls: operations on arrays that Python calls.
    """

    products: float = 0.0
    passes: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Add the work of another stage."""
        return Work(
            self.products + other.products, self.passes + other.passes, self.calls + other.calls
        )

    def __mul__(self, times: float) -> Work:
        """Repeat it."""
        return Work(self.products * times, self.passes * times, self.calls * times)


@dataclass(frozen=True)
class Speed:
    """Seconds of this machine for a unit of each kind of work."""

    product: float
    one_pass: float
    call: float

    def seconds(self, work: Work) -> float:
        """Return how long work takes."""
        return work.products * self.product + work.passes * self.one_pass + work.calls * self.call


@cache
def speed_of_this_machine() -> Speed:
    """Try each kind of work for some hundredths of a second; the quickest of several trials counts.

    Time in which other programs had the processor is left out.
    """
    square = np.linspace(0.0, 1.0, 512 * 512, dtype=np.float32).reshape(512, 512)
    into = np.empty_like(square)  # or else it is new memory that is timed
    few, tries = square[:2, :2], 1_000
    return Speed(
        _quickest(lambda: square @ square) / 512**3,
        _quickest(lambda: np.exp(square, out=into)) / square.size,
        _quickest(lambda: [few.sum() for _ in range(tries)]) / tries,
    )


def _quickest(trial: Callable[[], object], trials: int = 25) -> float:
    found = []
    for _ in range(trials):
        start = time.thread_time()
        trial()
        found.append(time.thread_time() - start)
    return min(found)


@dataclass(frozen=True, repr=False)
class FitCost:
    """What a fit will take, about.

    Attributes:
        parts: seconds of each stage.
        bytes: the most memory that the process will hold, its libraries included.
        outside: whether a generator of another package does work that is not counted here.
    """

    parts: dict[str, float]
    bytes: int
    outside: bool = False

    def __repr__(self) -> str:
        """Say both."""
        return short_repr(self, self.words)

    @property
    def seconds(self) -> float:
        """Seconds from the charge to the end."""
        return sum(self.parts.values())

    @property
    def words(self) -> str:
        """Word both, such as ``about 4 minutes and 1.2 GB of memory``."""
        return f"about {duration(self.seconds)} and {memory(self.bytes)} of memory"

    @property
    def sentence(self) -> str:
        """Say what the fit will take, as a sentence."""
        beside = "" if not self.outside else ", without what the other package's generator takes"
        return f"This fit will take {self.words} on this machine{beside}."

    def to_dict(self) -> dict[str, float | int | bool]:
        """Return plain JSON values."""
        return {
            "seconds": round(self.seconds, 1),
            "bytes": self.bytes,
            "complete": not self.outside,
        }


def duration(seconds: float) -> str:
    """Write a duration that is known to within a factor of two.

    >>> duration(0.3), duration(44), duration(70), duration(250), duration(10_000), duration(2e5)
    ('1 second', '40 seconds', '1 minute', '4 minutes', '3 hours', '2 days')
    """
    units = (("second", 1, 60), ("minute", 60, 60), ("hour", 3600, 48), ("day", 86_400, math.inf))
    unit, size, _ = next(one for one in units if seconds < one[1] * one[2])
    count = max(1, round(seconds / size))
    if count > 20:
        count = round(count, -1)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def memory(size: int) -> str:
    """Write bytes with two digits.

    >>> memory(553_000_000), memory(1_240_000_000), memory(23_000_000_000)
    ('550 MB', '1.2 GB', '23 GB')
    """
    unit, name = (10**9, "GB") if size >= 995_000_000 else (10**6, "MB")
    value = float(f"{size / unit:.2g}")
    return f"{value:g} {name}"


def unadvised(sentence: str) -> None:
    """Show no sentence."""


def estimated(prepared: Preparation[Any, Any], *, in_memory: bool = True) -> FitCost:
    """Estimate what a fit will take on this machine, from public facts alone.

    Args:
        prepared: the fit.
        in_memory: whether coded rows are in memory, and not in shards or a warehouse.
    """
    if isinstance(prepared, PreparedCohort):
        work, size = (_latent if prepared.model == LATENT else _linked)(prepared)
        outside = False
    else:
        assert isinstance(prepared, Prepared)
        work, size = _flat(prepared, in_memory=in_memory)
        outside = spec_of(prepared.model).outside is not None
    speed = speed_of_this_machine()
    return FitCost({stage: speed.seconds(one) for stage, one in work.items()}, int(size), outside)


def require_memory(cost: FitCost, *, anyway: bool = False) -> None:
    """Refuse a fit that needs more memory than this process can have, before its charge.

    Args:
        cost: of the fit.
        anyway: whether to try it all the same.

    Raises:
        InputError: it needs more; nothing was charged.
    """
    limit = memory_limit()
    if anyway or limit is None or cost.bytes <= limit.bytes:
        return
    raise InputError(
        f"this fit needs about {memory(cost.bytes)} of memory, and {limit.words} "
        f"{memory(limit.bytes)}; nothing was charged. Use a machine with more memory, a schema "
        "with fewer columns, or another model; or try it all the same with --any-memory"
    )


@dataclass(frozen=True)
class _Table:
    """The public sizes that the work on a table follows from.

    Attributes:
        rows: of the table, as declared.
        columns: the hidden one included.
        bins: of all columns together, about.
        codes: that are counted one by one, of all columns and levels.
        again: whether pairs are counted in two events.
        contrasts: whether products of contrasts come first.
        rounds: of the mixture's fit: several, where noise is small.
    """

    rows: float
    columns: int
    bins: int
    codes: int
    again: bool
    contrasts: bool
    rounds: int

    @classmethod
    def of(cls, domain: Domain, rows: float, plan: PrivacyPlan, bins: int) -> _Table:
        """Take the public facts of a table, and about how many bins a column is cut into."""
        codes = sum(
            sum(math.ceil(feature.size / max(level, 1)) for level in feature.levels)
            for feature in domain.features
        )
        of_columns = sum(min(feature.size, bins) for feature in domain.features)
        contrasts = plan.has(PRODUCTS)
        mu = gaussian_mu(plan.budget.epsilon, plan.budget.delta)
        rounds = 4 if contrasts else 1 if domain.population * mu < CLEAR else 2
        again = contrasts or runs_again(domain)
        return cls(rows, len(domain.features), of_columns, codes, again, contrasts, rounds)

    @property
    def pairs(self) -> int:
        return min(self.columns * (self.columns - 1) // 2, MAX_PAIRS)

    @property
    def measured(self) -> float:
        """Cells of all measured pairs."""
        return self.pairs * (self.bins / self.columns) ** 2

    @property
    def sparse(self) -> bool:
        """Whether so few pairs are measured that the rest of their square is left out."""
        return not self.contrasts and self.measured < SPARSE * self.bins**2

    def mixture_bytes(self, components: int) -> float:
        """Return what a mixture's fit holds: its shares several times, and the squares of bins."""
        square = SPARSE_BYTES if self.sparse else SQUARE_BYTES
        return SHARE_BYTES * components * self.bins + square * self.bins**2

    def coding(self) -> Work:
        """Read the cells, and code them."""
        chunks = math.ceil(self.rows / CHUNK)
        return Work(
            passes=CELL_PASSES * self.rows * self.columns,
            calls=COLUMN_CALLS * self.columns * chunks + START_CALLS,
        )

    def counting(self, *, pairs: bool) -> Work:
        """Count columns, and pairs of them, and add noise to each count."""
        work = Work(
            passes=COUNT_PASSES * self.rows * self.columns,
            calls=CODE_CALLS * self.codes + PAIR_CALLS * self.columns,
        )
        if not pairs:
            return work
        work += Work(calls=CHOICE_CALLS * self.columns**2 / 2)
        work += Work(calls=CODE_CALLS * self.codes)  # tails are fitted again, to pairs
        of_pairs = Work(
            passes=COUNT_PASSES * self.rows * self.pairs,
            calls=PAIR_CALLS * self.pairs + NOISE_CALLS * self.measured,
        )
        return work + of_pairs * (2 if self.again else 1)

    def mixture_step(self, components: int, *, tied: bool) -> Work:
        """Take a step of a mixture's fit."""
        shares = components * self.bins
        passes = FIT_PASSES + (TIE_PASSES if tied else 0)
        work = Work(passes=passes * shares, calls=FIT_CALLS)
        if self.sparse:
            return work + Work(passes=self.measured * components / 2)
        square = Work(2.0 * shares * self.bins, SQUARE_PASSES * self.bins**2)
        if self.contrasts:
            square += Work(2.0 * shares * self.columns + 2.0 * components * self.columns**2)
        return work + square

    def drawing(self, rows: float) -> Work:
        """Draw rows of a mixture."""
        return Work(passes=rows * (DRAW_PASSES * self.bins + ORDER_PASSES * self.columns))

    def settling(self, rows: float) -> Work:
        """Move a network's biases until its columns have their shares of so many rows."""
        along = self.columns * self.bins / 2  # each logit adds up the weights of earlier columns
        return Work(passes=rows * (SETTLE_PASSES * self.bins + along))

    def linear(self, hidden: int) -> float:
        """Return the weights of an autoregressive network."""
        return self.bins**2 + 2.0 * hidden * self.bins


def training_step(rows: float, logits: float, weights: float) -> Work:
    """Take a step of a network: forward, backward, and the optimizer's."""
    return Work(
        2.0 * rows * weights, TRAIN_PASSES * rows * logits + WEIGHT_PASSES * weights, TRAIN_CALLS
    )


def _flat(prepared: Prepared, *, in_memory: bool) -> tuple[dict[str, Work], float]:
    """Count the work of a fit of one table, and the bytes that it holds."""
    schema, plan = prepared.codec.published, prepared.plan
    assert isinstance(schema, Schema)
    spec = spec_of(prepared.model)
    domain = prepared.domain.with_visits()
    rows = schema.rows.value
    preset = Preset.of(COUNTED if spec.outside is not None else spec.name, domain, plan.budget)
    table = _Table.of(domain, rows, plan, preset.bins)
    measures = spec.measures_pairs
    work = {"reading": table.coding(), "histograms": table.counting(pairs=measures)}
    size: float = LIBRARIES + (4.0 * rows * table.columns if in_memory else 0)
    size += 12.0 * min(rows, CHUNK) * table.columns + CODE_BYTES * table.codes
    if not measures or spec.outside is not None:
        return work, size
    work["mixture"] = table.mixture_step(preset.components, tied=preset.tie > 0) * (
        preset.mixture_steps * table.rounds
    )
    size += OF_NETWORKS + table.mixture_bytes(preset.components)
    if not spec.preset:
        return work, size
    drawn = UNITS_ROWS * min(domain.population, MOST_UNITS)
    weights = table.linear(preset.masked)
    if preset.hidden:
        weights = 2.0 * table.bins * preset.hidden + 2.0 * preset.hidden**2
    batch = WARM_BATCH.get(spec.name, BATCH)
    if spec.name == "distilled" and not preset.masked:
        batch = BATCH
    step = training_step(batch, table.bins, weights)
    work["warming up"] = table.drawing(drawn) + step * preset.warm_steps
    settled = Work()
    if preset.settling_steps:
        one = training_step(BATCH / 2, table.bins, weights / 2)
        one += Work(BATCH * 3.0 * table.bins**2 / 2, 4.0 * SQUARE_PASSES * table.bins**2)
        settled = one * preset.settling_steps
    elif not preset.rounds:
        settled = table.settling(SETTLED)
    steps = _steps_of(plan)
    if steps is None:
        work["warming up"] += settled
        taken = 0.0
    else:
        taken = steps.sampling_rate * domain.population * rows / max(1, schema.population.value)
        private = training_step(taken, table.bins, weights) * PRIVATE
        private += training_step(BATCH, table.bins, weights)
        if preset.rounds:  # a generator takes a turn now and then
            private += training_step(BATCH, table.bins, weights) * (2.0 / preset.rounds)
        work["training"] = private * steps.steps + settled
    size += 16.0 * drawn * table.columns + 24.0 * max(batch, taken) * table.bins + 40.0 * weights
    size += 0.0 if preset.rounds else 8.0 * SETTLED * (table.columns + 20)
    return work, size


def _steps_of(plan: PrivacyPlan) -> PoissonSgd | None:
    """Return the event of private steps, if the plan has one."""
    return next((event for event in plan.events if isinstance(event, PoissonSgd)), None)


def _linked(prepared: PreparedCohort) -> tuple[dict[str, Work], float]:
    """Count the work of a fit of linked tables, and the bytes that it holds."""
    domain, plan = prepared.domain, prepared.plan
    persons = PersonTable(domain)
    settings = HistorySettings.of(domain, plan.budget)
    table = _Table.of(persons.as_domain, domain.population, plan, settings.person_bins)
    rows = _rows_of(domain)
    values = sum(
        domain.population * series.max_rows / 2 * (len(series.values) + 2)
        for one in domain.tables
        for series in one.series
    )
    step = table.mixture_step(settings.components, tied=True)
    work = {
        "reading": table.coding() + Work(passes=CELL_PASSES * values),
        "patients": table.counting(pairs=True) + step * (settings.person_steps * table.rounds),
        "steps": Work(passes=STEP_PASSES * rows),
    }
    size: float = LIBRARIES + OF_NETWORKS + table.mixture_bytes(settings.components)
    size += 8.0 * values + 12.0 * domain.population * table.columns
    for one in domain.tables:
        for series in one.series:
            own = _step_table(series, domain, plan, settings.steps.bins)
            mixture = own.mixture_step(settings.steps.components, tied=True)
            of_series = own.counting(pairs=True) + mixture * (settings.steps.steps * own.rounds)
            if one.is_wide:
                of_series += _taught(own, 0.5)
            work["steps"] += of_series
    if not spec_of(prepared.model).preset:
        return work, size
    drawn = 1.0 - persons.baseline / table.columns
    work["warming up"] = _taught(table, drawn)
    size += 24.0 * PERSON_ROWS * table.columns + 60.0 * table.bins**2
    event = _steps_of(plan)
    if event is not None:
        taken = event.sampling_rate * domain.population
        one_step = training_step(taken, table.bins, table.linear(0)) * PRIVATE
        work["training"] = one_step * event.steps + _taught(table, drawn) * 0.2
        work["training"] += Work(passes=STEP_PASSES * rows)
        size += 24.0 * taken * table.bins
    return work, size


def _latent(prepared: PreparedCohort) -> tuple[dict[str, Work], float]:
    """Count the work of a fit of `latent`, and the bytes that it holds."""
    domain = prepared.domain
    patients, columns = domain.population, len(PatientTable(domain).columns)
    most = {table.name: sum(one.max_rows for one in table.series) for table in domain.tables}
    free = sum(most[one.name] for one in domain.tables if one.inside is None and not one.due)
    each = KEPT_ROWS * sum(most.values())
    drawn = DRAWS * min(max(2 * patients, LEAST_DRAWN), MOST_DRAWN)
    solved = SOLVED * columns
    work = {
        "reading": Work(passes=2 * CELL_PASSES * patients * each),
        "rows": Work(passes=LAID_PASSES * patients * each),
        "patients": Work(solved * FACTORS**2 * (columns + FACTORS), calls=SOLVED_CALLS * solved),
        "days": Work(
            passes=drawn * (FACT_PASSES * (each + columns) + DAY_PASSES * KEPT_ROWS * free)
        ),
    }
    tests = max(len(table.series) for table in domain.tables)
    return work, LIBRARIES + patients * (ROW_BYTES * each + 24.0 * (columns + tests**2))


def _taught(table: _Table, drawn: float) -> Work:
    """Teach a network of linked tables rows of a mixture; it draws a part of the columns."""
    step = training_step(PERSON_BATCH, drawn * table.bins, drawn * table.linear(0))
    return step * PERSON_STEPS + table.drawing(PERSON_ROWS) + table.settling(SETTLED / 2)


def _rows_of(domain: HistoryDomain) -> float:
    """Return how many rows all histories may have: half of what is kept of each patient."""
    kept = sum(series.max_rows for one in domain.tables for series in one.series)
    return domain.population * kept / 2


def _step_table(series: Series, domain: HistoryDomain, plan: PrivacyPlan, bins: int) -> _Table:
    """Return about what the steps of a series are: its values twice, and a few conditions."""
    features = (*series.values, *series.values, *domain.baseline[:MAX_CONDITIONS])
    own = Domain(features, domain.population, 1)
    return _Table.of(own, domain.population, plan, bins)
