"""How the scores of ordered columns go together, read off a mixture over their bins.

The code at share u of an ordered column has the score z = Phi^-1(u), so that scores are standard
normal. Scores of several columns are taken to be jointly normal (a Gaussian copula; Nelsen 2006,
"An Introduction to Copulas", section 2.3). A bin is an interval of scores, with mean score s.

**Correlations.** With v the variance of s over the rows of a column, which is the part of its
variance that lies between bins, the covariance of s_i and s_j over rows is about r v_i v_j for a
correlation r of the scores: E[s_i | z_i] is about v_i z_i on average. A bin without order, such as
a category or a missing value, counts by its indicator, whose covariance with s_i is about v_i times
that with z_i. Rows without a value in an ordered column tell nothing of its score.

**Regression.** Single correlations need not fit together, as noise and the approximation change
each on its own. They are shrunk to a correlation matrix: its eigenvalues become at least `FLOOR`.
Then the score of a column given all others is normal, with coefficients from the inverse matrix.

**Privacy.** A function of the mixture, which was fitted to released counts: post-processing (Dwork
and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpsynth.models import Domain
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.product_mixture import Products

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST = 0.97  # of a correlation
FLOOR = 0.02  # of the eigenvalues of the correlations
OTHERS = 64  # scores and indicators, beside the scores that are drawn, that these may follow
WEAK = 0.02  # correlation below which one of them is left out
NOTHING = 1e-9
END = 1e-9  # of the shares of a column: scores are finite


@dataclass(frozen=True)
class Regressions:
    """The normal law of scores given the bins of a row and each other.

    Attributes:
        places: the columns with a score to be drawn, ``[Z]``.
        of_bins: what each bin of each column, end to end, adds to the expected score, ``[D, Z]``.
        of_scores: what the scores of the others add, ``[Z, Z]``; 0 on the diagonal.
        spread: standard deviation of a score that is known from all these, ``[Z]``.
    """

    places: Ints
    of_bins: Floats
    of_scores: Floats
    spread: Floats


@dataclass(frozen=True)
class _Variable:
    """A score, or the indicator of a bin.

    Attributes:
        place: its column.
        drawn: whether it is a score that has to be drawn within bins.
        values: of each bin of all columns, end to end, ``[D]``; 0 for those of other columns.
        known: 1 for the bins of its column that have a value of it, ``[D]``.
        mean: of its values.
        between: variance of its values, as part of that of what they stand for.
    """

    place: int
    drawn: bool
    values: Floats
    known: Floats
    mean: float
    between: float


def ordered_bins(column: MergedBins, cells: int) -> npt.NDArray[np.bool_]:
    """Say which bins of a column have ordered codes: its first ``cells`` ones."""
    found = np.zeros(column.count, dtype=bool)
    found[np.unique(column.bin_of[:cells])] = True
    return found


def regressions_of(
    products: Products, domain: Domain, columns: Sequence[MergedBins]
) -> Regressions | None:
    """Read off a mixture how the scores within bins follow other columns.

    Args:
        products: the mixture, fitted to released counts.
        domain: the columns, the hidden one included.
        columns: their bins.

    Returns:
        None where no bin has several ordered codes, or there is no other column.
    """
    variables = _variables(products, domain, columns)
    drawn = [one for one in variables if one.drawn]
    if not drawn or len(columns) < 2:
        return None
    near = np.abs(_correlations(products, drawn, variables)).max(axis=0)
    others = [k for k, one in enumerate(variables) if not one.drawn and near[k] > WEAK]
    others = sorted(sorted(others, key=lambda k: -near[k])[:OTHERS])
    chosen = drawn + [variables[k] for k in others]
    matrix = _correlations(products, chosen, chosen)
    np.fill_diagonal(matrix, 1.0)
    size = len(drawn)
    roots, axes = np.linalg.eigh(matrix)
    matrix = (axes * np.maximum(roots, FLOOR)) @ axes.T
    scale = np.sqrt(np.diag(matrix))
    precision = np.linalg.inv(matrix / np.outer(scale, scale))
    weights = -precision[:size] / np.diag(precision)[:size, None]
    of_bins = np.zeros((len(drawn[0].values), size))
    for one, own in zip(chosen[size:], weights[:, size:].T, strict=True):
        standard = (one.values - one.mean * one.known) / np.sqrt(one.between)
        of_bins += standard[:, None] * own
    of_scores = weights[:, :size].copy()
    np.fill_diagonal(of_scores, 0.0)
    spread = 1.0 / np.sqrt(np.diag(precision)[:size])
    return Regressions(np.array([one.place for one in drawn]), of_bins, of_scores, spread)


def _variables(
    products: Products, domain: Domain, columns: Sequence[MergedBins]
) -> list[_Variable]:
    """Return the score of each ordered column, and the indicator of each bin without order."""
    shares = products.weights @ products.tables.astype(np.float64)
    found = []
    for place, (feature, column) in enumerate(zip(domain.features, columns, strict=True)):
        begin, end = products.offsets[place], products.offsets[place + 1]
        ordered, own = ordered_bins(column, feature.cells), shares[begin:end]
        whole = np.zeros(len(shares))
        if ordered.sum() > 1 and own[ordered].sum() > NOTHING:
            values, known = whole.copy(), whole.copy()
            values[begin:end], known[begin:end] = mean_scores(own, ordered), ordered
            part = float(own @ values[begin:end] ** 2 / own[ordered].sum())
            several = np.bincount(column.bin_of[: feature.cells], minlength=column.count) > 1
            if part > NOTHING:
                drawn = bool((several & ordered).any())
                found.append(_Variable(place, drawn, values, known, 0.0, part))
        loose = np.flatnonzero(~ordered)
        spare = np.argmax(own) if len(loose) == column.count else -1  # the others tell of it
        for bin_ in loose[loose != spare]:
            values, known = whole.copy(), whole.copy()
            values[begin + bin_], known[begin:end] = 1.0, 1.0
            variance = float(own[bin_] * (1.0 - own[bin_]))
            if variance > NOTHING:
                found.append(_Variable(place, False, values, known, float(own[bin_]), variance))
    return found


def mean_scores(shares: Floats, ordered: npt.NDArray[np.bool_]) -> Floats:
    """Return the mean score of each ordered bin, 0 for the others; their mean is 0.

    Example:
        >>> mean_scores(np.array([0.25, 0.25, 0.5]), np.ones(3, dtype=bool)).round(2).tolist()
        [-1.27, -0.32, 0.8]
    """
    own = shares[ordered] / shares[ordered].sum()
    ends = ndtri(np.clip(np.cumsum(own)[:-1], NOTHING, 1 - NOTHING))
    heights = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    found = np.zeros(len(shares))
    found[ordered] = -np.diff(heights, prepend=0.0, append=0.0) / np.maximum(own, NOTHING)
    return found


def _correlations(
    products: Products, first: Sequence[_Variable], second: Sequence[_Variable]
) -> Floats:
    """Return the correlations of what the variables stand for, ``[first, second]``."""
    tables, weights = products.tables.astype(np.float64), products.weights[:, None]

    def means(variables: Sequence[_Variable], kind: str) -> Floats:
        of_bins: Floats = np.stack([getattr(one, kind) for one in variables], axis=1)
        return tables @ of_bins

    values = [means(side, "values") for side in (first, second)]
    known = [means(side, "known") for side in (first, second)]
    both = np.maximum((known[0] * weights).T @ known[1], NOTHING)
    covariance = (values[0] * weights).T @ values[1] / both
    covariance -= np.outer([one.mean for one in first], [one.mean for one in second])
    # a score's values are means over a bin: as much smaller than it as their variance says
    scale = [np.array([_scale(one) for one in side]) for side in (first, second)]
    found = np.clip(covariance / np.outer(*scale), -MOST, MOST)
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            if one.place == other.place:
                both_loose = one.mean > 0 and other.mean > 0
                apart = -one.mean * other.mean / np.sqrt(one.between * other.between)
                found[i, j] = float(np.clip(apart, -MOST, MOST)) if both_loose else 0.0
    return np.asarray(found, dtype=np.float64)


def _scale(one: _Variable) -> float:
    return one.between if one.mean == 0.0 else float(np.sqrt(one.between))


@dataclass(frozen=True)
class Intervals:
    """The bins of an ordered column as intervals of its shares.

    Attributes:
        ends: cumulative shares of its ordered codes, from 0 to 1, ``[cells + 1]``.
        first: first code of each bin, ``[bins]``; of no meaning for bins without order.
        last: last code of each bin that holds a share.
        several: whether a bin has several codes to choose from.
        ordered: whether its codes are ordered.
    """

    ends: Floats
    first: Ints
    last: Ints
    several: npt.NDArray[np.bool_]
    ordered: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, column: MergedBins, cells: int) -> Intervals:
        """Lay out a column whose first ``cells`` codes are ordered."""
        bin_of, shares = column.bin_of[:cells].astype(np.int64), column.shares[:cells]
        ends = np.concatenate([[0.0], np.cumsum(shares)])
        ends /= max(ends[-1], END)
        ordered, every = ordered_bins(column, cells), np.arange(column.count)
        first = np.searchsorted(bin_of, every, side="left")
        after = np.searchsorted(bin_of, every, side="right")
        held = np.flatnonzero(shares > 0)
        last = held[np.clip(np.searchsorted(held, after) - 1, 0, None)] if len(held) else after - 1
        several = ordered & (ends[np.minimum(after, cells)] - ends[first.clip(0, cells)] > END)
        return cls(ends, first, np.maximum(last, first), several & (after - first > 1), ordered)

    @property
    def low(self) -> Floats:
        """Share of the column below each bin."""
        return self.ends[np.minimum(self.first, len(self.ends) - 1)]

    @property
    def high(self) -> Floats:
        """Share of the column up to the end of each bin."""
        return self.ends[np.minimum(self.last + 1, len(self.ends) - 1)]

    def shares_at(self, bins: Ints, depths: Floats) -> Floats:
        """Return the share of the column at so far into each bin."""
        return np.asarray(self.low[bins] + depths * (self.high - self.low)[bins])

    def at(self, bins: Ints) -> Places:
        """Return the interval of the bin of each row."""
        low, high = (np.clip(end, END, 1.0 - END) for end in (self.low, self.high))
        low, high, scores = self.low[bins], self.high[bins], (ndtri(low)[bins], ndtri(high)[bins])
        return Places(low, high, scores[0], scores[1], self.ordered[bins])


@dataclass(frozen=True)
class Places:
    """The interval of each row's bin, in shares and in scores."""

    low: Floats
    high: Floats
    low_score: Floats
    high_score: Floats
    ordered: npt.NDArray[np.bool_]

    def score_at(self, depths: Floats) -> Floats:
        """Return the score at so far into each row's interval; 0 without order."""
        share = self.low + depths * (self.high - self.low)
        return np.where(self.ordered, ndtri(np.clip(share, END, 1.0 - END)), 0.0)

    def depth_of(self, scores: Floats) -> Floats:
        """Return how far into its interval each row's score lies, 0 to 1."""
        width = self.high - self.low
        depths = (ndtr(scores) - self.low) / np.maximum(width, END)
        return np.where(width > END, np.clip(depths, 0.0, 1.0), 0.5)
