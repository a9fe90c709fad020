"""Canary patients of linked tables: unusual whole histories, among patients drawn from a run.

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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import (
    NEVER,
    Codec,
    Histories,
    HistoryCodec,
    SeriesRows,
    summaries,
    summary_schema,
)
from dpsynth.eval.core import RealTables
from dpsynth.eval.distances import Metric, log_density, width_of
from dpsynth.models import histories_class
from dpsynth.models.auditing import Transcript
from dpsynth.models.histories import (
    CohortGenerator,
    HistoryDomain,
    PersonTable,
    Series,
    domain_of,
    one_row_each,
)
from dpsynth.synthesis import CohortRun, fitting_state

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
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
    run: CohortRun, count: int, units: int, rng: np.random.Generator
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
