"""Contrasts: one score for each bin of a column, by which relations of all pairs are first seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature
from dpsynth.models.base import VISITS
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.privacy.pair_statistics.products import MAX_SQUARES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = 3.0  # of a score; beyond, a few rows would decide how far all are shrunk
ROOM = 0.5  # standard deviations of a row's squared length that are left whole
TARGET = 2.0
GRADES = 4  # categories, from which on they may be grades
WOBBLE = 0.02  # of the rows, by which a share may fall back on the way to the peak
TINY = 1e-12


@dataclass(frozen=True)
class Contrasts:
    """Whole scores of the bins of all columns.

    Attributes:
        whole: of each column, a score for each bin; all 0 where a column has one bin.
        scale: whole parts of 1; scores are about 1 long.
    """

    whole: tuple[Ints, ...]
    scale: float

    @property
    def values(self) -> tuple[Floats, ...]:
        """Scores of each column as they are counted, ``[bins]``."""
        return tuple(scores / self.scale for scores in self.whole)


def contrasts_of(bins: Sequence[MergedBins], features: Sequence[Feature], mass: int) -> Contrasts:
    """Choose a contrast for each column by released shares.

    Ordered bins get their middle rank among the rows; a bin without an order, such as missing, the
    mean. Of unordered bins the commonest is told from the rest, unless they look like grades in
    their declared order. Scores have mean 0 and variance 1, and are divided where one is above
    `LARGEST`. They become whole numbers such that a row whose squared length lies `ROOM` standard
    deviations above the mean, if columns were independent, adds products of norm ``mass``: longer
    rows will be shrunk. Where all columns but one have one bin, there are no products to speak of:
    scores stay small enough for exact sums.

    Args:
        bins: of each column, with their shares.
        features: the columns; scores of a target, and of the hidden column by which rows are
            weighed, are `TARGET` times as long, so that their products have less noise.
        mass: norm that the products of a unit may have.
    """
    scores = [
        _scores(column, feature.cells) * (TARGET if _weighs(feature) else 1.0)
        for column, feature in zip(bins, features, strict=True)
    ]
    shares = [column.bin_shares for column in bins]
    moments = [
        [float(part @ score**power) for power in (2, 4)]
        for part, score in zip(shares, scores, strict=True)
    ]
    seconds, fourths = np.array(moments).T
    spread = math.sqrt(max(0.0, float((fourths - seconds**2).sum())))
    length = float(seconds.sum()) + ROOM * spread
    norm = math.sqrt(max(TINY, (length**2 - float(fourths.sum())) / 2))
    widest = sum(float(np.abs(score).max()) ** 2 for score in scores)
    exact = math.sqrt(MAX_SQUARES / 4 / max(widest, TINY))
    scale = max(1.0, min(math.sqrt(mass / norm), exact))
    return Contrasts(tuple(np.rint(scale * score).astype(np.int64) for score in scores), scale)


def _weighs(feature: Feature) -> bool:
    """Whether relations of a column count more: a public fact."""
    return feature.target or feature.name == VISITS


def _scores(column: MergedBins, cells: int) -> Floats:
    """Return a score for each bin: mean 0, variance 1, none above `LARGEST`."""
    shares = column.bin_shares
    if column.count == 1:
        return np.zeros(1)
    if cells:
        ordered = np.zeros(column.count, dtype=bool)
        ordered[np.unique(column.bin_of[:cells])] = True
        scores = _ranks(shares, ordered)
        if np.ptp(scores) < TINY:  # all but one code is without an order
            scores = ordered - float(shares[ordered].sum())
    elif _graded(shares):
        scores = _ranks(shares, np.ones(column.count, dtype=bool))
    else:
        scores = (np.arange(column.count) == int(np.argmax(shares))) - float(shares.max())
    spread = math.sqrt(float(shares @ scores**2))
    if spread < TINY:
        return np.zeros(column.count)
    scores = scores / spread
    return np.asarray(scores * min(1.0, LARGEST / float(np.abs(scores).max())))


def _ranks(shares: Floats, ordered: npt.NDArray[np.bool_]) -> Floats:
    """Return the middle rank of each ordered bin less their mean; others have 0."""
    mass = np.where(ordered, shares, 0.0)
    ranks = np.cumsum(mass) - mass / 2
    return np.where(ordered, ranks - mass @ ranks / max(float(mass.sum()), TINY), 0.0)


def _graded(shares: Floats) -> bool:
    """Say whether categories look like grades in their declared order, such as bands of age.

    No category has half of the rows, and shares rise to one peak and fall from it, about.
    """
    peak = int(np.argmax(shares))
    if len(shares) < GRADES or shares[peak] >= 0.5:
        return False
    rising, falling = shares[: peak + 1], shares[peak:][::-1]
    return all(
        bool((np.maximum.accumulate(side) - side).max() <= WOBBLE) for side in (rising, falling)
    )
