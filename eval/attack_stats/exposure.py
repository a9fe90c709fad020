"""Who is most exposed: people unlike others, with rare values, or with many visits.

An average hides them, and they are the ones whom a release endangers first (Stadler, Oprisanu and
Troncoso, Synthetic Data: Anonymisation Groundhog Day, arXiv 2011.07018, section 5). Exposure is
taken from the person's own rows and from the reference, never from who is in the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.attack_stats.people import by_unit
from dpsynth.eval.core import Bins, TableView
from dpsynth.eval.distances import Metric
from dpsynth.eval.distances.nearest import nearest

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SHARE = 0.1  # of the people, who are the most exposed ones
MIN_GROUP = 20  # of a group; fewer say nothing


@dataclass(frozen=True, eq=False)
class ExposureGroup:
    """A part of the people that are attacked.

    Attributes:
        key: ``everyone``, ``outliers``, ``rare`` or ``visits``.
        title: a few words for people.
        belongs: whether each unit is in it, units in order of their numbers ``[units]``.
    """

    key: str
    title: str
    belongs: Bools


def groups_of(
    players: TableView, reference: TableView, codec: Codec, metric: Metric
) -> list[ExposureGroup]:
    """Return everyone, and the most exposed tenth in each sense that the table allows."""
    apart = nearest(metric, metric.points(players), metric.points(reference)).squared[:, 0]
    units, distance = by_unit(players, np.sqrt(apart))
    candidates = [
        ExposureGroup("everyone", "everyone", np.ones(len(units), dtype=bool)),
        _top("outliers", "people unlike others", distance),
        _top(
            "rare",
            "people with rare values",
            -by_unit(players, _commonness(players, reference, codec))[1],
        ),
    ]
    rows = np.unique(players.units, return_counts=True)[1].astype(float)
    if rows.max() > 1:
        candidates.append(_top("visits", "people with most rows", rows))
    some = [group for group in candidates[1:] if not group.belongs.all()]
    return [candidates[0], *(group for group in some if group.belongs.sum() >= MIN_GROUP)]


def _top(key: str, title: str, exposure: Floats) -> ExposureGroup:
    """Take those above the quantile, or, where many are equal, those at it too."""
    cut = float(np.quantile(exposure, 1 - SHARE))
    belongs = exposure > cut
    if belongs.sum() < MIN_GROUP:
        belongs = exposure >= cut
    return ExposureGroup(key, title, belongs)


def _commonness(players: TableView, reference: TableView, codec: Codec) -> Floats:
    """Return, for each row, the reference's share of its rarest value, in logs."""
    bins = Bins.of(reference.codes, codec)
    mine, theirs = bins.cut(players.codes), bins.cut(reference.codes)
    minimum = np.full(players.rows, np.inf)
    for place, size in enumerate(bins.sizes):
        counts = np.bincount(theirs[place], minlength=size)
        minimum = np.minimum(minimum, (counts[mine[place]] + 0.5) / (reference.rows + 1))
    return np.asarray(np.log(minimum))
