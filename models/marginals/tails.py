"""Tails of an ordered column: cells that noise hides one by one, told by their sum and their slope.

A bound that an office declares is often far beyond what occurs: stays of up to 90 days where hardly
anyone stays 30. Each of the cells beyond gets noise. Kept as it is, noise becomes rows: stays of 60
days that no patient had. Emptied, the long stays are lost that some patients had: 60 rows in 20
cells are less than the noise. So neither is done. What is known of a tail is how many rows it has
in all and how fast it thins out, and rows are drawn by that.

**Where a tail begins.** Let s be the standard deviation of the noise of a cell, in rows. Empty
cells are noise alone, so w of them sum to noise with standard deviation s sqrt(w). A window of 1,
2, 4, ... or 64 neighbouring cells is clear if its sum is above z s sqrt(w), with the z that a
normal number exceeds with probability `FALSE` / cells: 3.9 for 100 cells, 4.6 for 2000. So noise
makes a single cell clear in one of 200 columns (Bonferroni). Windows overlap, and several widths
are tried, which makes that a few times as often. The clear window that begins furthest out tells
where the column surely has rows. The tail is all from there to the bound.

**How it thins out.** The expected rows of the cell d cells into the tail are

    M g(d),    g(d) proportional to exp(-(d / L)^c),

with an unknown number of rows M, length L and bend c. Of c, `BENDS` are taken: .7 thins out more
slowly than a geometric law (c = 1), 1.5 nearly like a normal distribution, and 3 is a plateau with
an end. The noisy counts n are normal around it, so for each g the least squares estimate of M is
n.g / g.g, with standard deviation s / sqrt(g.g). M is not negative: with a flat prior on M >= 0 its
posterior is that normal law, cut at 0, and the likelihood of the shape g is, up to a constant,

    exp(z^2 / 2) Phi(z) s / sqrt(g.g),    z = n.g / (s sqrt(g.g)).

(The integral over M >= 0 of the normal likelihood; Gelman et al. 2013, "Bayesian Data Analysis",
section 3.2, on the flat prior.) Lengths have prior weight 1 / sqrt(L) among steps of equal ratio,
so of two tails that noise does not tell apart the shorter one is likelier. The rows of a cell are
the mean of M g over all shapes and M. No shape is chosen, so a small change of the noise changes
little. Two things are then mended: a cell that is z s above the fit keeps its count (people write
200 more often than 197), and the outermost cells with less than `LEAST` rows together get none.

If the two tails overlap, single cells tell little: the column is cut in the middle of the overlap,
and all of it is tail.

Before this, counts are moved by the same amount each so that they sum to the number of rows of the
column. That number is known more precisely than the sum of the cells, from all columns together.

**Wide columns** are counted at several levels. All levels tell where a tail begins, and all enter
the fit: each is an independent look at sums of the same cells. Pairs of columns are counted by bins
afterwards. Their sums over the other column are one more look at this column, with less noise for
far cells, so the tails are fitted once more with them (`pairs`). Counts of different noise
enter in units of their own: with standard deviation s_i of count i, n_i / s_i and g_i / s_i take
the places of n and g above, and 1 that of s.

**Privacy.** The functions take the released noisy counts and public facts: the scale of the noise,
widths of cells, lattice points. They are fixed functions of these, so this is post-processing of a
differentially private release, which has the same guarantee (Dwork and Roth 2014, "The Algorithmic
Foundations of Differential Privacy", proposition 2.1). They must not be given exact counts: where
the outermost cell lies often depends on one patient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FALSE = 0.005  # of columns of noise alone: the share of which one cell stands out
WINDOWS = (1, 2, 4, 8, 16, 32, 64)  # cells of such a window
BENDS = (0.7, 1.0, 1.5, 3.0)  # of how a tail thins out
LENGTHS = 24  # lengths of tails that are tried, evenly in their logarithm
SHORTEST = 0.3  # of them, in cells
LEAST = 0.5  # rows: what is left of a tail below is cut off
EXACT = 1e-9  # rows: noise below is none
MIN_CELLS = 9  # ordered cells of a column; few cells keep little noise


@dataclass(frozen=True)
class Level:
    """Noisy counts of neighbouring cells that together are the ordered codes of a column.

    Attributes:
        counts: of the rows in each cell, ``[cells]``.
        edges: first code of each cell, and the end, ``[cells + 1]``.
        sigma: standard deviation of the noise of each count, in rows.
    """

    counts: Floats
    edges: Ints
    sigma: float

    def moved(self, rows: float) -> Level:
        """Move all counts by the same amount, so that they sum to the number of rows."""
        return replace(self, counts=self.counts + (rows - self.counts.sum()) / len(self.counts))

    def reversed(self) -> Level:
        """Count the codes from the other end."""
        return replace(self, counts=self.counts[::-1], edges=self.edges[-1] - self.edges[::-1])


@dataclass(frozen=True)
class Tails:
    """The two ends of a column.

    Attributes:
        first: first code of the column's body; codes before it are the lower tail.
        last: first code of the upper tail.
        rows: expected rows of each code in a tail, 0 in the body, ``[codes]``.
        variances: of the noise in all rows of the lower and of the upper tail, in units of the
            variance of the noise of a cell.
    """

    first: int
    last: int
    rows: Floats
    variances: tuple[float, float]


def tails_of(
    levels: Sequence[npt.ArrayLike],
    widths: Sequence[int],
    *,
    rows: float,
    sigma: float,
    points: npt.ArrayLike = (),
    bins: Level | None = None,
) -> Tails:
    """Fit both tails of an ordered column.

    Args:
        levels: released noisy counts of the ordered cells of each level, the coarsest first.
        widths: codes that a cell of each level spans; the last is 1.
        rows: noisy number of rows that have a value in the column.
        sigma: standard deviation of the noise of one count, in rows; public. 0 without privacy.
        points: lattice points of each code; empty if one each. Neighbouring codes share their rows
            by them.
        bins: released noisy counts of bins, of a later event. They enter the fit, and do not move
            the place where a tail begins.

    Returns:
        The tails; both without a code if the column has fewer than `MIN_CELLS` cells, or if no
        window is clear: then the counts do not tell where the column has its rows.

    Example:
        >>> counts = [90, 80, 60, 25, 14, 3, 7, -2, 1, 0, -3, 2]
        >>> found = tails_of([counts], (1,), rows=277, sigma=4.0)
        >>> found.first, found.last, found.rows[found.last :].round(1).tolist()
        (1, 4, [13.0, 4.1, 1.8, 1.0, 0.6, 0.4, 0.0, 0.0])
    """
    tables = [np.asarray(level, dtype=np.float64) for level in levels]
    codes = len(tables[-1])
    edges = [
        np.minimum(np.arange(len(t) + 1) * w, codes) for t, w in zip(tables, widths, strict=True)
    ]
    none = Tails(0, codes, np.zeros(codes), (1.0, 1.0))
    if codes < MIN_CELLS:
        return none
    upper = [Level(table, cuts, sigma) for table, cuts in zip(tables, edges, strict=True)]
    if sigma > EXACT:
        upper = [level.moved(rows) for level in upper]
    starts = [_start([level.reversed() for level in upper]), _start(upper)]
    if min(starts) < 0:
        return none
    first, last = codes - starts[0], starts[1]
    if first > last:  # they overlap, in one cell or in several that stand out only together
        first, last = (last, first) if first == last + 1 else ((first + last) // 2,) * 2
    weights = _weights(codes, widths, points)
    if bins is not None and sigma > EXACT:
        upper = [bins.moved(rows), *upper]
    low, low_noise = _fit([level.reversed() for level in upper], codes - first, weights[::-1])
    high, high_noise = _fit(upper, last, weights)
    found = np.concatenate([low[::-1], np.zeros(last - first), high])
    return Tails(first, last, found, (low_noise, high_noise))


def populated(rows: Floats) -> int:
    """Return up to which code of a tail there are rows; at least 1 of a tail that has codes."""
    return int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else min(1, len(rows))


def clear_of(cells: int) -> float:
    """Return the z that noise exceeds in one cell of a column with probability `FALSE`, at most."""
    from scipy.special import ndtri

    return float(-ndtri(FALSE / cells))


def _start(levels: Sequence[Level]) -> int:
    """Return the first code of the clear window that begins furthest up; -1 if none is clear."""
    found, z = -1, clear_of(len(levels[-1].counts))
    for level in levels:
        sums, limit = np.concatenate([[0.0], np.cumsum(level.counts)]), z * level.sigma
        for width in WINDOWS:
            clear = np.flatnonzero(sums[width:] - sums[:-width] > limit * np.sqrt(width))
            if len(clear):
                found = max(found, int(level.edges[clear[-1]]))
    return found


def _fit(levels: Sequence[Level], start: int, weights: Floats) -> tuple[Floats, float]:
    """Return the expected rows of each code from ``start`` on, and the variance of their sum.

    The last level is that of the codes; its noise is the unit of the variance.
    """
    from scipy.special import log_ndtr

    size, finest = len(weights) - start, levels[-1]
    counts = finest.counts[start:]
    if size == 0 or finest.sigma < EXACT or not weights[start:].any():
        return np.maximum(counts, 0.0) * (weights[start:] > 0), 1.0
    lengths = np.geomspace(SHORTEST, max(float(size), 1.0), LENGTHS)
    shapes = np.concatenate(
        [np.exp(-((np.arange(size) / lengths[:, None]) ** bend)) for bend in BENDS]
    )
    shapes *= weights[start:]
    short = shapes.sum(axis=1) < np.finfo(float).tiny  # that reach no code with rows but the first
    shapes[short, np.argmax(weights[start:] > 0)] = 1.0
    shapes /= shapes.sum(axis=1, keepdims=True)
    sums = np.pad(np.cumsum(shapes, axis=1), ((0, 0), (1, 0)))
    noisy, seen = np.empty(0), np.empty((len(shapes), 0))
    for level in levels:
        whole = level.edges[:-1] >= start
        cuts = np.append(level.edges[:-1][whole], level.edges[-1]) - start
        noisy = np.append(noisy, level.counts[whole] / level.sigma)
        seen = np.append(seen, np.diff(sums[:, cuts], axis=1) / level.sigma, axis=1)
    squares = (seen**2).sum(axis=1)
    spread = 1 / np.sqrt(squares)
    best = seen @ noisy / squares
    z = best / spread
    likely = z**2 / 2 + log_ndtr(z) + np.log(spread) - np.tile(np.log(lengths) / 2, len(BENDS))
    shares = np.exp(likely - likely.max())
    shares /= shares.sum()
    hazard = np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(z))
    fitted = (shares * np.maximum(best + spread * hazard, 0.0)) @ shapes
    fitted = np.where(counts - fitted > clear_of(len(weights)) * finest.sigma, counts, fitted)
    left = np.cumsum(fitted[::-1])[::-1]
    return np.where(left < LEAST, 0.0, fitted), float(shares @ (1 / squares)) / finest.sigma**2


def _weights(codes: int, widths: Sequence[int], points: npt.ArrayLike) -> Floats:
    """Return the lattice points of each code over their mean in its neighbourhood."""
    own = np.asarray(points, dtype=np.float64)
    if not len(own) or len(widths) == 1:
        return np.ones(codes)
    cells = np.arange(codes) // widths[-2]
    mean = (np.bincount(cells, weights=own) / np.bincount(cells))[cells]
    return np.divide(own, mean, out=np.zeros_like(own), where=mean > 0)
