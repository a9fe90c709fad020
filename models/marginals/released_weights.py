"""What released pairs say of the weights of a log-linear model: their shares, and a normal prior.

The logits of a column are sums of weights, one for each bin of each column before it. The
likelihood of such weights depends on rows by the joint shares of pairs of columns alone, which were
released with noise (learning from noisy sufficient statistics: Bernstein and others 2017,
arXiv 1706.04646, section 3). With T the released shares of a column before and a later one, and W
their weights, it is

    sum T W - E log sum exp(logits),

where the mean is over rows that the model itself draws. It is concave in W. All of this is a
function of released counts: post-processing.

**Noise.** Weights have a normal prior. One weight of a pair with n cells moves a share by about
w / n; were it alone, a share with noise of standard deviation s would best be explained by a weight
that is smaller by the factor 1 / (1 + (n s / r)^2), r the size of weight that is expected. That is
the penalty w^2 n (s / r)^2 / 2 beside the likelihood: a pair that noise hides moves nothing. A pair
that departs from independence by more than its noise is expected to have weights of that size
(empirical Bayes), or of a part of it. Weights of bins of an ordered column that are near each other
are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.product_mixture import Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT = 1e-9  # standard errors below are none
NEVER = 1e3  # penalty of a pair that was not measured


@dataclass(frozen=True)
class WeightPrior:
    """A normal prior of the weights between bins of two columns.

    Attributes:
        size: standard deviation of a weight, at least.
        seen: of the size that a pair's own departure from independence says, if that is more.
        near: how far ordered bins are alike, as a share of the column.
        own: a bin's own part, which it has in common with no other.
        chance: how often the noise of a pair without a relation may say something of the size.
        most: standard deviation of a weight, at most.
    """

    size: float
    seen: float
    near: float
    own: float
    chance: float = 1.0
    most: float = np.inf

    def root(self, column: MergedBins, ordered: int) -> Floats:
        """Return a root of the correlation of weights along a column's bins, ``[bins, bins]``.

        Args:
            column: its bins.
            ordered: how many of its codes have an order; they come first.
        """
        correlation = np.eye(column.count)
        count = len(np.unique(column.bin_of[:ordered])) if ordered > 2 else 0
        apart = np.subtract.outer(np.arange(count), np.arange(count)) / max(count - 1, 1)
        near = np.exp(-((apart / self.near) ** 2) / 2)
        correlation[:count, :count] = (1 - self.own) * near + self.own * np.eye(count)
        return np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)

    def size_of(
        self, target: Target, offsets: Ints, before: int, later: int, factor: float = 1.0
    ) -> float:
        """Return the standard deviation of a pair's weights.

        Args:
            target: what was released.
            offsets: where each column's bins begin.
            before: the first column.
            later: the other one.
            factor: by how much larger weights are expected to be than those of other pairs.
        """
        first, other = (slice(offsets[place], offsets[place + 1]) for place in (before, later))
        noise = np.maximum(target.pair_sd[first, other], EXACT)
        apart = target.pairs[first, other] - np.outer(target.one[first], target.one[other])
        beyond = max(float((apart**2 - noise**2).mean()), 0.0)
        is_noise = float(((apart / noise) ** 2).sum()) < chi2.isf(self.chance, noise.size)
        seen = 0.0 if is_noise else noise.size * np.sqrt(beyond)
        return min(self.most, max(self.size * factor, self.seen * seen))


def penalties(noise: Floats, size: float) -> Floats:
    """Return what the square of each weight of a pair costs, ``[bins, bins]``.

    Args:
        noise: standard errors of the pair's shares, ``[bins, bins]``.
        size: standard deviation of its weights.
    """
    return np.minimum(noise.size * (noise / size) ** 2, NEVER)


def shares_after(target: Target, before: Floats, offsets: Ints, later: int) -> Floats:
    """Return the released shares of a column with all bins before it, ``[D before, bins]``.

    How often a bin occurs, before or of the column itself, is better known from all else that was
    released, so a pair says only how both go together; one that was not measured says that they do
    not.

    Args:
        target: what was released.
        before: share of each bin before the column, in rows that a model draws, ``[D before]``.
        offsets: where each column's bins begin.
        later: the column.
    """
    width, own = int(offsets[later]), slice(offsets[later], offsets[later + 1])
    one = target.one[own]
    measured = np.isfinite(target.pair_sd[:width, own].max(axis=1))[:, None]
    independent = np.outer(target.one[:width], one)
    apart = np.where(measured, target.pairs[:width, own] - independent, 0.0)
    return np.outer(before, one) + without_margins(apart, offsets[: later + 1])


def without_margins(tables: Floats, offsets: Ints) -> Floats:
    """Take from the cells of pairs what is in their sums, ``[D before, bins]``.

    All cells of a pair have the same noise, so each takes the same part of what a sum is off by
    (least squares): a pair with a column of two bins loses half of the variance of its noise.

    Args:
        tables: of a column with each column before it, one below the other.
        offsets: where the bins of each column before begin, and D before.
    """
    tables = tables - tables.mean(axis=1, keepdims=True)
    counts = np.diff(offsets)
    means = np.add.reduceat(tables, offsets[:-1], axis=0) / counts[:, None]
    return np.asarray(tables - np.repeat(means, counts, axis=0))
