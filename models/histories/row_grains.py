"""Grains of the numbers of linked tables: whole, half, tenth, or heaped at round values.

The event of `dpsynth.models.marginals.grains`, for a patient with rows in several tables.

**How far a patient moves the counts.** The table of patients has H_0 columns with grains; she adds
1 to one cell of each histogram, so she moves them by L2 norm sqrt(H_0) at most. In a table t of
rows, each of her k rows of a series weighs floor(M / (k sqrt(s))), where s is the number of its
series in which she has rows. Series are parts of each of H_t histograms, and she adds M / sqrt(s)
at most to each part, however many rows she has. So each histogram moves by a vector of whole
numbers from 0 of L2 norm at most M, and all H_t by at most M sqrt(H_t)
(`dpsynth.privacy.mechanisms`). That is the sensitivity of a `JointHistograms` with unit mass M, one
for each table. Squares of Gaussian parameters add up, so the events of all tables bound her in all
of them together; each gets its part of `SHARE` by its number of histograms, so that all have noise
of the same size in parts of a patient, as one event over all would.

A weight of floor(M / k) for each *table* of a patient, or of 1 for each row, would not do: rows
that are all alike fall into one cell.

What follows from the counts is in `roundings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Histories
from dpsynth.models import Feature
from dpsynth.models.grain_settings import GRAINS, SHARE
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals.grains import GrainCounts, cells_in
from dpsynth.privacy import (
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyPlan,
    Share,
    WeightedRows,
    weighted_histograms,
)
from dpsynth.privacy.events import UNDECIDED

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """The columns of one table whose grains are counted: public facts.

    Attributes:
        table: of rows; None for the table of patients.
        place: among the tables of the domain; -1 for the table of patients.
        series: the values of each series; one for the table of patients.
    """

    table: HistoryTable | None
    place: int
    series: tuple[tuple[Feature, ...], ...]

    @property
    def columns(self) -> list[int]:
        """Places of the values that have grains in some series: one histogram each."""
        return [
            place
            for place, values in enumerate(zip(*self.series, strict=True))
            if any(value.units for value in values)
        ]

    @property
    def counting(self) -> list[int]:
        """Places of the series that have a value with grains."""
        return [
            place
            for place, values in enumerate(self.series)
            if any(value.units for value in values)
        ]

    @property
    def event(self) -> JointHistograms:
        """What the counts cost, before their noise is set."""
        columns = len(self.columns)
        if self.table is None:
            return JointHistograms(f"patients: {GRAINS}", columns, 1, UNDECIDED)
        rows = sum(self.table.series[place].max_rows for place in self.counting)
        name = f"{self.table.name}, rows: {GRAINS}"
        return JointHistograms(name, columns, min(rows, MASS), UNDECIDED, MASS)

    def sizes(self, column: int) -> list[int]:
        """Cells of a histogram in each counting series: grains, and one for rows without."""
        features = [self.series[place][column] for place in self.counting]
        return [feature.units + 1 for feature in features]

    def rows(self, histories: Histories, mass: int) -> WeightedRows:
        """Give each row its cell in each histogram, and its weight; by patient.

        Args:
            histories: patients with their rows.
            mass: L2 norm of what a patient's rows weigh, at most.
        """
        patients = len(histories)
        owners = [np.arange(patients)]
        codes = [histories.baseline]
        if self.table is not None:
            of_series = [histories.rows[self.place][place] for place in self.counting]
            owners = [one.patients for one in of_series]
            codes = [one.values for one in of_series]
        cells = []
        for column in self.columns:
            starts = np.cumsum([0, *self.sizes(column)[:-1]])
            parts = [
                start + cells_in(own, self.series[place], column)
                for place, start, own in zip(self.counting, starts, codes, strict=True)
            ]
            cells.append(np.concatenate(parts))
        weights = weights_of_rows(owners, patients, mass)
        series = np.repeat(np.arange(len(owners)), [len(own) for own in owners])
        return WeightedRows(tuple(cells), np.concatenate(owners), weights, series)


def weights_of_rows(owners: Sequence[Ints], patients: int, mass: int) -> Ints:
    """Return what each row weighs: the rows of a patient at most ``mass``, in L2 over the series.

    Example:
        >>> weights_of_rows([np.array([0, 0, 1]), np.array([0])], 2, 12).tolist()
        [4, 4, 12, 8]
    """
    counts = [np.bincount(own, minlength=patients) for own in owners]
    series = np.sum([count > 0 for count in counts], axis=0)
    parts = [
        weight_of(series[own], count[own], mass) for own, count in zip(owners, counts, strict=True)
    ]
    return np.concatenate(parts)


def weight_of(series: Ints, rows: Ints, mass: int) -> Ints:
    """Return floor(mass / (rows sqrt(series))), exactly; both are at least 1.

    Example:
        >>> weight_of(np.array([1, 4, 2]), np.array([3, 2, 1]), 720_720).tolist()
        [240240, 180180, 509625]
    """
    squares = mass**2 // (series * rows**2)
    return np.asarray(np.sqrt(squares), dtype=np.int64)  # a root below 2^26 is rounded down


def counted_of(domain: HistoryDomain) -> list[Counted]:
    """Return the tables that have columns with grains: a public fact."""
    tables = [Counted(None, -1, (domain.baseline,))]
    tables += [
        Counted(table, place, tuple(one.values for one in table.series))
        for place, table in enumerate(domain.tables)
    ]
    return [one for one in tables if one.columns]


def with_row_grains(shares: Sequence[Share], domain: HistoryDomain) -> tuple[Share, ...]:
    """Put the events of the grains first, and give the others what they leave.

    Args:
        shares: of a fit, which add up to 1.
        domain: public facts.
    """
    tables = counted_of(domain)
    if not tables:
        return tuple(shares)
    columns = sum(len(one.columns) for one in tables)
    own = [Share(one.event, SHARE * len(one.columns) / columns) for one in tables]
    return (*own, *(Share(one.event, one.fraction * (1.0 - SHARE)) for one in shares))


Found = dict[int, list[GrainCounts]]  # by place of the table, for each of all its series


def count_grains(
    histories: Histories,
    domain: HistoryDomain,
    plan: PrivacyPlan | ObservedPlan,
    entropy: Entropy,
) -> Found:
    """Run the events of the grains, each once; nothing for a plan without them.

    Args:
        histories: patients with their rows.
        domain: public facts.
        plan: calibrated; watched, each release is told.
        entropy: source of noise.
    """
    found: Found = {}
    for one in counted_of(domain):
        if not plan.has(one.event.name):
            continue
        event = plan.event(one.event.name)
        assert isinstance(event, JointHistograms)
        sizes = [one.sizes(column) for column in one.columns]
        sigmas = [event.sigma] * len(sizes)
        rows = one.rows(histories, event.mass)
        noisy = weighted_histograms(rows, sizes, sigmas, event, entropy)
        if isinstance(plan, ObservedPlan):
            canaries, others = (one.rows(side, event.mass) for side in plan.observer.histories)
            plan.observer.weighed(noisy, sigmas, canaries, others)
        found[one.place] = _by_series(one, noisy, sizes, event)
    return found


def _by_series(
    one: Counted,
    noisy: Sequence[Ints],
    sizes: Sequence[Sequence[int]],
    event: JointHistograms,
) -> list[GrainCounts]:
    """Cut the counts up again; a column beside the tests of a long table counts for all tests."""
    counts = [[np.zeros(0)] * len(values) for values in one.series]
    for column, histogram, own in zip(one.columns, noisy, sizes, strict=True):
        parts = np.split(histogram.astype(np.float64), np.cumsum(own)[:-1])
        if column > 0 and one.table is not None:
            parts = [np.sum(parts, axis=0)] * len(parts)
        for place, part in zip(one.counting, parts, strict=True):
            counts[place][column] = part[:-1]
    return [GrainCounts(tuple(own), event.sigma, float(event.mass)) for own in counts]
