"""A fit in advance: the generator and the plan as they will be, on rows that belong to no patient.

Nothing is charged, because no private row is read. The noise comes from a seeded generator for the
same reason. A fit follows whatever the generators do now, so a forecast needs no formula of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.forecasts.errors import Errors
from dpsynth.forecasts.rows import RowSource
from dpsynth.models import Progress
from dpsynth.privacy import PoissonSgd, PrivacyPlan, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.schema.column import Declared
from dpsynth.synthesis import Prepared, RowSampler, prepare

MAX_UNITS = 200_000  # that are simulated; of more, the noise is made smaller instead
ALIKE = 0.97  # correlation by which rows of a unit are alike, and differ with their number


@dataclass(frozen=True)
class Setting:
    """What would be fitted.

    Attributes:
        schema: public facts, with the population and the rows.
        epsilon: of the whole fit.
        delta: likewise.
        model: the generator's name; ``auto`` is decided before.
        publish_quality: share of the budget set aside for public figures.
    """

    schema: Schema
    epsilon: float
    delta: float
    model: str
    publish_quality: float | None = None

    @property
    def population(self) -> int:
        """Public number of units."""
        return self.schema.population.value

    def of_population(self, units: int) -> Setting:
        """Return the same of another population, with rows in proportion."""
        rows = max(1, round(self.schema.rows.value * units / self.population))
        size, count = Declared(units, "a forecast"), Declared(rows, "a forecast")
        return replace(self, schema=replace(self.schema, population=size, rows=count))

    def prepared(self) -> Prepared:
        """Calibrate the plan."""
        return prepare(
            self.schema,
            epsilon=self.epsilon,
            delta=self.delta,
            model=self.model,
            publish_quality=self.publish_quality,
        )


def simulate_fit(setting: Setting, source: RowSource, seed: int, progress: Progress) -> Errors:
    """Draw rows, fit them under the plan, draw a synthetic table, and measure how far it is off.

    Args:
        setting: what would be fitted.
        source: of the rows that stand for the private ones.
        seed: of rows, noise and the synthetic table.
        progress: of the fit.
    """
    prepared = setting.prepared()
    units = min(setting.population, MAX_UNITS)
    scale = units / setting.population
    rng = np.random.default_rng([seed, units])
    cohort = _cohort(setting.schema, source, units, rng)
    plan = prepared.plan if scale == 1 else _quieter(prepared.plan, scale)
    generator = prepared.with_codes({}).generator()  # no code is known: groups
    generator.fit(cohort, plan, SeededEntropy(seed), progress)
    rows = max(1, round(setting.schema.rows.value * scale))
    sampler = RowSampler(generator, prepared.codec, setting.schema.rules)
    try:
        drawn = sampler.codes(rows, seed=seed)
    except InputError:  # hardly a row keeps the rules, nor did those that were assumed
        drawn = generator.sample(rows, rng)
    return Errors.between(cohort.codes[cohort.mask], drawn, prepared.codec)


def _cohort(schema: Schema, source: RowSource, units: int, rng: np.random.Generator) -> Cohort:
    """Draw the rows of so many units.

    A unit has 1, 2, ... rows with geometric chances, cut at ``max_rows``, so that the mean is that
    of the public facts. Its rows are like each other, and those of units with many rows differ from
    others: rows are dealt out along a score of all their columns, to units along their number of
    rows, both blurred so that `ALIKE` of the order is kept.
    """
    most = schema.unit.max_rows
    counts = rng.choice(np.arange(1, most + 1), units, p=_row_counts(schema))
    drawn = source.rows(int(counts.sum()), rng)
    codes = np.zeros((units, most, drawn.shape[1]), dtype=np.uint16)
    if most == 1:
        codes[:, 0] = drawn
        return Cohort(codes, np.ones((units, 1), dtype=bool))
    ranks = np.argsort(np.argsort(drawn + rng.random(drawn.shape), axis=0), axis=0)
    scores = ranks @ rng.choice([-1.0, 1.0], drawn.shape[1])
    drawn = drawn[np.argsort(_blurred(scores, rng))]
    seats = np.argsort(_blurred(np.argsort(np.argsort(counts + rng.random(units))), rng))
    mask = np.arange(most) < counts[:, None]
    seated = np.zeros((units, most, drawn.shape[1]), dtype=np.uint16)
    seated[mask[seats]] = drawn
    codes[seats] = seated
    return Cohort(codes, mask)


def _blurred(scores: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Mix scores with noise, so that `ALIKE` of them is left, as a correlation."""
    own = np.asarray(scores, dtype=np.float64)
    own = (own - own.mean()) / max(float(own.std()), 1e-9)
    return np.asarray(ALIKE * own + np.sqrt(1 - ALIKE**2) * rng.standard_normal(len(own)))


def _row_counts(schema: Schema) -> npt.NDArray[np.float64]:
    """Return the shares of units with 1 .. max_rows rows, whose mean is rows over population."""
    most = schema.unit.max_rows
    if most == 1:
        return np.ones(1)
    mean = min(max(schema.rows.value / schema.population.value, 1.0), float(most))
    rows = np.arange(1, most + 1)
    low, high = -20.0, 20.0  # the logarithm of the ratio of neighbouring shares
    for _ in range(60):
        middle = (low + high) / 2
        shares = np.exp(middle * (rows - most / 2) - abs(middle) * most / 2)
        shares /= shares.sum()
        low, high = (middle, high) if shares @ rows < mean else (low, middle)
    return np.asarray(shares)


def _quieter(plan: PrivacyPlan, scale: float) -> PrivacyPlan:
    """Return the plan with less noise: the same beside fewer units as its own beside all of them.

    It protects nobody, and no private row ever meets it.
    """
    events = [
        replace(event, noise_multiplier=event.noise_multiplier * scale)
        if isinstance(event, PoissonSgd)
        else event.with_mu(event.mu() / scale)
        for event in plan.events
    ]
    return replace(plan, events=tuple(events))
