"""Contrasts: scores of the bins of a column, by which relations of all pairs are first seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import ndtri
from scipy.stats import norm

from dpsynth.models import Feature
from dpsynth.models.base import VISITS
from dpsynth.models.contrast_settings import score_widths
from dpsynth.models.marginals.bin_scores import ordered_bins
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.privacy.pair_statistics import MAX_SQUARES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = 3.0  # length of a bin's scores; beyond, a few rows would decide how far all are shrunk
ROOM = 0.5  # standard deviations of a row's squared length that are left whole
TARGET = 3.0
RARE = 0.01  # share of a bin, below which its score grows no longer
TOLD = 0.04  # noise of a product, up to which a column's further scores are worth theirs
FURTHER = 0.25  # squared length of each of these
TINY = 1e-12


@dataclass(frozen=True)
class Contrasts:
    """Whole scores of the bins of all columns, together K.

    Attributes:
        whole: of each column, ``[bins, k]``; all 0 where a column has one bin.
        scale: whole parts of 1; the scores of a row's bin are about 1 long.
        mass: norm that a row's products have at most, in whole parts.
    """

    whole: tuple[Ints, ...]
    scale: float
    mass: int

    @property
    def values(self) -> tuple[Floats, ...]:
        """Scores of each column as they are counted, ``[bins, k]``."""
        return tuple(scores / self.scale for scores in self.whole)

    @cached_property
    def matrix(self) -> Floats:
        """The scores of all columns along a diagonal, ``[D, K]``."""
        return np.asarray(block_diag(*self.values))

    @cached_property
    def columns(self) -> Ints:
        """The column of each score, ``[K]``."""
        return np.repeat(np.arange(len(self.whole)), [scores.shape[1] for scores in self.whole])

    def between(self, i: int, j: int) -> tuple[npt.NDArray[np.intp], ...]:
        """Return the place of two columns in a matrix of products ``[K, K]``."""
        return np.ix_(self.columns == i, self.columns == j)

    def shrunk(self, rows: Floats) -> Floats:
        """Shrink rows of scores ``[n, K]`` as those of a unit are before they are counted."""
        ends = np.searchsorted(self.columns, np.arange(len(self.whole)))
        squares = np.add.reduceat(rows**2, ends, axis=1)
        norms = (squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1)) / 2
        limit = (self.mass / self.scale**2) ** 2
        factors = np.minimum(1.0, limit / np.maximum(norms, TINY)) ** 0.25
        return np.asarray(rows * factors[:, None])


def contrasts_of(
    bins: Sequence[MergedBins], features: Sequence[Feature], mass: int, noise: float, most: int
) -> Contrasts:
    """Choose scores for the bins of each column by released shares.

    A bin without an order has a score of its own, (1[x = a] - p_a) / max(p_a, `RARE`)^(1/4) at
    another bin x: in between of what is best for common and for rare ones. Ordered bins have the
    mean of the standard normal scores of their ranks; of a bin beside them, such as missing, it is
    0. Where noise leaves room they have a second score, the part of its square that is told by
    neither, and one for each bin beside them. The scores of a column have mean 0 and a mean squared
    length of 1, and are divided where they are longer than `LARGEST`.

    They become whole numbers such that a row whose squared length lies `ROOM` standard deviations
    above the mean, if columns were independent, adds products of norm ``mass``: longer rows will be
    shrunk. Where all columns but one have one bin, there are no products to speak of: scores stay
    small enough for exact sums.

    Args:
        bins: of each column, with their shares.
        features: the columns; scores of a target, and of the hidden column by which rows are
            weighed, are `TARGET` times as long, so that their products have less noise.
        mass: norm that the products of a unit may have.
        noise: of a product, over the number of units, in whole parts.
        most: products, together.
    """
    found = _scaled(bins, features, mass, most, further=False)
    if noise / found.scale**2 > TOLD:
        return found
    return _scaled(bins, features, mass, most, further=True)


def _scaled(
    bins: Sequence[MergedBins], features: Sequence[Feature], mass: int, most: int, *, further: bool
) -> Contrasts:
    widths = score_widths(features, most)
    scores = [
        _scores(column, feature.cells, further=further)[:, :width]
        * (TARGET if _weighs(feature) else 1.0)
        for column, feature, width in zip(bins, features, widths, strict=True)
    ]
    squares = [(score**2).sum(axis=1) for score in scores]
    shares = [column.bin_shares for column in bins]
    moments = [
        [float(part @ square), float(part @ square**2)]
        for part, square in zip(shares, squares, strict=True)
    ]
    seconds, fourths = np.array(moments).T
    spread = math.sqrt(max(0.0, float((fourths - seconds**2).sum())))
    length = float(seconds.sum()) + ROOM * spread
    size = math.sqrt(max(TINY, (length**2 - float(fourths.sum())) / 2))
    widest = sum(float((np.abs(score).max(axis=0) ** 2).sum()) for score in scores)
    exact = math.sqrt(MAX_SQUARES / 4 / max(widest, TINY))
    scale = max(1.0, min(math.sqrt(mass / size), exact))
    whole = tuple(np.rint(scale * score).astype(np.int64) for score in scores)
    return Contrasts(whole, scale, mass)


def _weighs(feature: Feature) -> bool:
    """Whether relations of a column count more: a public fact."""
    return feature.target or feature.name == VISITS


def _scores(column: MergedBins, cells: int, *, further: bool) -> Floats:
    """Return the scores of each bin, ``[bins, k]``; those that tell most come first."""
    shares, ordered = column.bin_shares, ordered_bins(column, cells)
    if column.count == 1:
        return np.zeros((1, 1))
    if column.count == 2:
        scores = _standard(np.array([0.0, 1.0]), shares)[:, None]
    elif ordered.sum() < 2:
        first = np.argsort(-shares, kind="stable")
        scores = (np.eye(column.count) - shares) * np.maximum(shares, RARE) ** -0.25
        scores = scores[:, first] / math.sqrt(max(float(shares @ (scores**2).sum(axis=1)), TINY))
    else:
        scores = _of_order(shares, ordered, further=further)
    length = np.sqrt((scores**2).sum(axis=1))
    return np.asarray(scores * np.minimum(1.0, LARGEST / np.maximum(length, TINY))[:, None])


def _of_order(shares: Floats, ordered: npt.NDArray[np.bool_], *, further: bool) -> Floats:
    """Return where ordered bins lie; and how far out, and which bins have no order."""
    mass = np.where(ordered, shares, 0.0)
    ends = np.cumsum(mass) / max(float(mass.sum()), TINY)
    heights = norm.pdf(ndtri(np.clip(np.concatenate([[0.0], ends]), 0.0, 1.0)))
    middles = -np.diff(heights) * mass.sum() / np.maximum(mass, TINY)
    scores = [np.clip(_standard(middles, mass), -LARGEST, LARGEST) * ordered]
    if further:
        known = np.stack([ordered.astype(np.float64), scores[0]])
        told = np.linalg.pinv((known * mass) @ known.T) @ (known * mass) @ scores[0] ** 2
        scores.append(math.sqrt(FURTHER) * _standard(scores[0] ** 2 - told @ known, mass) * ordered)
        for place in np.flatnonzero(~ordered):
            if RARE < shares[place] < 1 - RARE:
                absent = np.eye(len(shares))[place]
                scores.append(math.sqrt(FURTHER) * _standard(absent, shares))
    return np.stack(scores, axis=1)


def _standard(values: Floats, mass: Floats) -> Floats:
    """Return values with mean 0 and mean square 1, or 0 where all are alike; mass sums to 1."""
    centred = values - float(mass @ values) / max(float(mass.sum()), TINY)
    spread = math.sqrt(float(mass @ centred**2))
    return np.asarray(centred / spread if spread > math.sqrt(TINY) else np.zeros(len(values)))
