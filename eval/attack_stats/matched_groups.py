"""People in the data and as many others, side by side with a synthetic table.

Units are the same in number on the two sides, since whoever has more of them is nearer to
everything. If source and holdout were dealt by chance, each unit is on the one side or on the other
as by a fair coin; and where the synthetic table says nothing about single people, it does not know
how the coins fell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats.success import Success
from dpsynth.eval.core import Rate, Tables, TableView
from dpsynth.eval.distances import Metric, Neighbours, Points, nearest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MAX_ROWS = 100_000  # of the synthetic table, and of each side, about


@dataclass(frozen=True, eq=False)
class MatchedGroup:
    """Rows of some units.

    Attributes:
        view: the rows.
        points: the same, for distances.
        unit: of each row, numbered from 0 in random order ``[rows]``.
        units: how many.
    """

    view: TableView
    points: Points
    unit: Ints
    units: int

    def hit(self, rows: Bools) -> Rate:
        """Count the units of which some row is hit."""
        return Rate(len(np.unique(self.unit[rows])), self.units)


@dataclass(frozen=True, eq=False)
class MatchedGroups:
    """What is compared.

    Attributes:
        metric: the distance.
        synthetic: rows to be judged; a sample of a large table.
        points: the same, for distances.
        source: units of the data.
        holdout: as many other units.
    """

    metric: Metric
    synthetic: TableView
    points: Points
    source: MatchedGroup
    holdout: MatchedGroup

    @classmethod
    def of(cls, tables: Tables, others: TableView, rng: np.random.Generator) -> MatchedGroups:
        """Draw as many units of the source as of others; fewer of both where rows are many."""
        metric = Metric.of(tables.codec)
        views = (tables.source, others)
        units = [np.unique(view.units) for view in views]
        rows_of_unit = sum(view.rows for view in views) / sum(map(len, units))
        count = min(*map(len, units), max(1, int(MAX_ROWS / rows_of_unit)))
        sides = []
        for view, every in zip(views, units, strict=True):
            sample = view.take(np.flatnonzero(np.isin(view.units, _some(every, count, rng))))
            unit = rng.permutation(count)[np.unique(sample.units, return_inverse=True)[1]]
            sides.append(MatchedGroup(sample, metric.points(sample), unit, count))
        synthetic = tables.synthetic.sample(MAX_ROWS, rng)
        return cls(metric, synthetic, metric.points(synthetic), sides[0], sides[1])

    @property
    def units(self) -> int:
        """Return how many there are on each side."""
        return self.source.units

    def from_synthetic(self, side: MatchedGroup) -> Neighbours:
        """Return of each synthetic row the nearest rows of two different units of a side."""
        return nearest(self.metric, self.points, side.points, 2, side.unit)

    def to_synthetic(self, side: MatchedGroup) -> Floats:
        """Return the squared distance of each row of a side to the nearest synthetic row."""
        return nearest(self.metric, side.points, self.points).squared[:, 0]

    def success(self, source: Bools, holdout: Bools) -> Success:
        """Compare units by rows that are hit."""
        return Success(self.source.hit(source), self.holdout.hit(holdout))


def _some(units: Ints, count: int, rng: np.random.Generator) -> Ints:
    return units if count == len(units) else rng.choice(units, size=count, replace=False)
