"""Distributions of numbers from noisy histograms: a normal law or two, and what stands out.

A histogram has at most `CELLS` public cells. Its law is one or two normal distributions on the best
of three public scales, by least squares. Where cells depart from it by more than their noise, they
are put back: the departures' orthonormal Haar coefficients c are shrunk to
c max(0, 1 - (`CLEAR` s / c)^2), with the noise s of a cell (Haar 1910; the garrote of Breiman
1995, "Better subset regression using the nonnegative garrote").

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CELLS = 64  # of a histogram
CLEAR = 4.0  # errors that one of some thousand cells of noise reaches by chance (sqrt(2 log n))
WIDE = 50.0  # times the lower bound, from which on cells widen as logarithms do
NEAR = 0.002  # of the range, in the place of a lower bound of 0
PRICE = 8.0  # squares of the noise of a cell, that a parameter has to save (log of some thousand)
TINY = 1e-9


def haar(cells: Floats) -> Floats:
    """Return orthonormal Haar coefficients of 2^k cells, the mean's first."""
    found, rest = [], cells
    while len(rest) > 1:
        pairs = rest.reshape(-1, 2)
        found.append((pairs[:, 0] - pairs[:, 1]) / np.sqrt(2))
        rest = (pairs[:, 0] + pairs[:, 1]) / np.sqrt(2)
    return np.concatenate([rest, *found[::-1]])


def from_haar(coefficients: Floats) -> Floats:
    """Return the cells of orthonormal Haar coefficients."""
    cells, at = coefficients[:1], 1
    while at < len(coefficients):
        apart = coefficients[at : 2 * at]
        cells = np.stack([cells + apart, cells - apart], axis=1).ravel() / np.sqrt(2)
        at *= 2
    return cells


def denoised(cells: Floats, sigma: float, clear: float = CLEAR) -> Floats:
    """Shrink the Haar coefficients of noisy cells.

    >>> denoised(np.array([100.0, 101.0, 0.0, 1.0]), 1.0).round().tolist()
    [100.0, 100.0, 1.0, 1.0]
    """
    size = 1 << max(len(cells) - 1, 0).bit_length()
    padded = np.zeros(size)
    padded[: len(cells)] = cells
    found = haar(padded)
    clear = (clear * sigma) ** 2
    found = found * np.maximum(0.0, 1 - clear / np.maximum(found**2, clear / 2 + TINY))
    return from_haar(found)[: len(cells)]


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Public cells of a number's ordered codes.

    Attributes:
        cell: of each ordered code, ``[codes]``.
        places: where each code lies between the bounds, from 0 to 1, ``[codes]``.
        edges: where cells begin and end, ``[cells + 1]``.
        low: the lower bound in parts of the range; `NEAR` for a bound of 0 or below.
    """

    cell: Ints
    places: Floats
    edges: Floats
    low: float

    @classmethod
    def of(cls, feature: Feature) -> NumberCells:
        """Take each code, or equal cells, of logarithms where bounds are far apart."""
        points = np.asarray(feature.points or (1,) * feature.cells, dtype=np.float64)
        ends = np.concatenate([[0.0], np.cumsum(points)]) / points.sum()
        places = (ends[:-1] + ends[1:]) / 2
        if feature.cells <= CELLS:
            return cls(np.arange(feature.cells), places, ends, feature.low or NEAR)
        low = feature.low or NEAR
        spread = places
        if feature.low * (WIDE - 1) < 1:
            spread = np.log1p(places / low) / np.log1p(1 / low)
        cell = np.minimum(spread * CELLS, CELLS - 1).astype(np.int64)
        used, cell = np.unique(cell, return_inverse=True)
        last = np.searchsorted(cell, np.arange(len(used)), side="right")
        return cls(cell, places, np.concatenate([[0.0], ends[last]]), low)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1


def scales(places: Floats, low: float) -> list[Floats]:
    """Return places between 0 and 1 on public scales: as they are, their roots and logarithms."""
    return [places, np.sqrt(places + low), np.log(places + low)]


def normal_laws(
    cells: Sequence[NumberCells], counts: Sequence[Floats], sigma: float
) -> list[tuple[Floats, Floats]]:
    """Fit laws to noisy counts of the cells of several numbers, all at once.

    Args:
        cells: of the codes of each number.
        counts: of its cells.
        sigma: noise of a count.

    Returns:
        Shares of the cells, and of the codes, of each number.
    """
    totals = [max(float(np.sum(denoised(own, sigma, 1.2))), sigma) for own in counts]
    fits: list[tuple[int, int, Floats]] = []  # number, scale, where it begins
    for place, (one, own) in enumerate(zip(cells, counts, strict=True)):
        runs = [*_begun(own)]
        for scale, edge in enumerate(scales(one.edges, one.low)):
            for first, last in runs:
                low, high = edge[first], edge[last]
                fits.append((place, scale, np.array([(low + high) / 2, np.log((high - low) / 4)])))
    best = _best(fits, cells, counts, totals)
    doubles = []
    for place, (_, scale, (mean, log_sd)) in best.items():
        sd = np.exp(log_sd)
        for apart in (0.8, 1.6):
            two = (mean - apart * sd, log_sd - 0.5, mean + apart * sd, log_sd - 0.5, 0.0)
            doubles.append((place, scale, np.array(two)))
    # three more parameters, each of which has to earn its place
    for place, found in _best(doubles, cells, counts, totals).items():
        if found[0] + 3 * PRICE * sigma**2 < best[place][0]:
            best[place] = found
    return [
        _shares(one, own, total, sigma, best[place][1], best[place][2])
        for place, (one, own, total) in enumerate(zip(cells, counts, totals, strict=True))
    ]


def _shares(
    cells: NumberCells, counts: Floats, total: float, sigma: float, scale: int, found: Floats
) -> tuple[Floats, Floats]:
    """Return shares of cells and codes by a law and what stands out of it."""
    law = _cell_shares(found, scales(cells.edges, cells.low)[scale])
    apart = denoised(counts - total * law, sigma)
    shares = np.maximum(total * law + apart, 0.0)
    shares = shares / max(float(shares.sum()), TINY)
    points = scales(cells.places, cells.low)[scale]
    widths = np.gradient(points) if len(points) > 1 else np.ones(1)
    within = _densities(found, points) * np.maximum(widths, TINY) + TINY
    whole = np.bincount(cells.cell, within, minlength=cells.count)
    return shares, shares[cells.cell] * within / whole[cells.cell]


def _best(
    fits: Sequence[tuple[int, int, Floats]],
    cells: Sequence[NumberCells],
    counts: Sequence[Floats],
    totals: Sequence[float],
) -> dict[int, tuple[float, int, Floats]]:
    """Return squares, scale and parameters of the best fit of each number."""
    width = max(one.count for one in cells)
    edges = np.empty((len(fits), width + 1))
    wanted = np.zeros((len(fits), width))
    for row, (place, scale, _) in enumerate(fits):
        edge = scales(cells[place].edges, cells[place].low)[scale]
        edges[row] = np.concatenate([edge, np.full(width + 1 - len(edge), edge[-1])])
        wanted[row, : len(counts[place])] = counts[place] / totals[place]
    squares, found = fitted_normals(edges, wanted, np.stack([start for _, _, start in fits]))
    best: dict[int, tuple[float, int, Floats]] = {}
    for row, (place, scale, _) in enumerate(fits):
        own = float(squares[row]) * totals[place] ** 2
        if place not in best or own < best[place][0]:
            best[place] = own, scale, found[row]
    return best


STEPS = 40  # of a fit


def fitted_normals(edges: Floats, wanted: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Fit normal distributions, or mixtures of two, to shares of cells by least squares.

    Steps of Levenberg (1944) and Marquardt (1963), of all fits at once.

    Args:
        edges: of the cells, ``[fits, cells + 1]``; the outer ones reach to infinity.
        wanted: shares, ``[fits, cells]``.
        start: mean and logarithm of the standard deviation; of a mixture twice, and the log odds of
            the first one, ``[fits, 2 or 5]``.

    Returns:
        Sums of squares, and parameters.
    """
    widths = np.diff(edges, axis=1)
    least = np.log(0.3 * np.where(widths > 0, widths, np.inf).min(axis=1))
    most = np.log(edges[:, -1] - edges[:, 0])
    low = np.stack([edges[:, 0], least] * 2 + [np.full(len(edges), -3.0)], axis=1)
    high = np.stack([edges[:, -1], most] * 2 + [np.full(len(edges), 3.0)], axis=1)
    number = start.shape[1]
    low, high = low[:, :number], high[:, :number]
    found = np.clip(start, low, high)
    damping = np.full(len(found), 1e-2)
    shares, slopes = _cells_and_slopes(found, edges)
    squares = ((shares - wanted) ** 2).sum(axis=1)
    for _ in range(STEPS):
        gram = np.einsum("fcp,fcq->fpq", slopes, slopes)
        pull = np.einsum("fcp,fc->fp", slopes, wanted - shares)
        scale = np.einsum("fpp->fp", gram)
        gram = gram + (damping[:, None] * scale + 1e-9)[:, :, None] * np.eye(number)
        tried = np.clip(found + np.linalg.solve(gram, pull[:, :, None])[:, :, 0], low, high)
        own, own_slopes = _cells_and_slopes(tried, edges)
        own_squares = ((own - wanted) ** 2).sum(axis=1)
        better = own_squares < squares
        found[better], squares[better] = tried[better], own_squares[better]
        shares[better], slopes[better] = own[better], own_slopes[better]
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-7, 1e7)
    return squares, found


def _cells_and_slopes(law: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return shares of cells, and how they move with each parameter."""
    parts = [(law[:, 0], np.exp(law[:, 1]))]
    first = np.ones(len(law))
    if law.shape[1] > 2:
        parts.append((law[:, 2], np.exp(law[:, 3])))
        first = 1 / (1 + np.exp(-law[:, 4]))
    shares = np.zeros((len(edges), edges.shape[1] - 1))
    columns: list[Floats] = []
    own: list[Floats] = []
    for share, (mean, sd) in zip((first, 1 - first), parts, strict=False):
        z = (edges - mean[:, None]) / sd[:, None]
        ends = ndtr(z)
        height = np.exp(-0.5 * np.minimum(z**2, 200)) / np.sqrt(2 * np.pi)
        inside = (edges > edges[:, :1]) & (edges < edges[:, -1:])
        ends = np.where(inside, ends, (edges >= edges[:, -1:]).astype(np.float64))
        height = np.where(inside, height, 0.0)
        own.append(np.diff(ends, axis=1))
        shares = shares + share[:, None] * own[-1]
        columns.append(share[:, None] * np.diff(-height / sd[:, None], axis=1))
        columns.append(share[:, None] * np.diff(-height * z, axis=1))
    if law.shape[1] > 2:
        columns.append((first * (1 - first))[:, None] * (own[0] - own[1]))
    return shares, np.stack(columns, axis=2)


def spread_law(edges: Floats, counts: Floats, sigma: float, usual: float) -> float:
    """Fit the standard deviation of a normal distribution around 0 to noisy counts of cells.

    Args:
        edges: of the cells; the outer ones reach to infinity.
        counts: of the cells.
        sigma: noise of a count.
        usual: what it is of most such distributions; a half or a double of it is a standard
            deviation away.
    """
    best = (np.inf, usual)
    for sd in usual * np.geomspace(0.2, 5.0, 49):
        shares = np.diff(_ends(edges, 0.0, float(sd)))
        total = max(float(shares @ counts) / float(shares @ shares), 0.0)
        squares = float(np.sum((counts - total * shares) ** 2)) / sigma**2
        squares += float(np.log2(sd / usual) ** 2)
        if squares < best[0]:
            best = (squares, float(sd))
    return best[1]


def time_law(counts: Floats, sigma: float) -> Floats:
    """Return the counts of the equal cells of a time without their noise, none below 0.

    The law is the mean of Weibull distributions (1951, "A statistical distribution function of wide
    applicability"), each weighed by how likely it makes the counts and by how usual it is: an even
    hazard is the middle, and a shape or a scale that is a factor e away is a standard deviation
    away. Where cells depart from it by more than their noise, they are put back.

    Args:
        counts: of the cells.
        sigma: noise of a count.
    """
    if not len(counts):
        return counts
    ends = np.linspace(0.0, 1.0, len(counts) + 1)
    shape = np.geomspace(0.3, 4.0, 14)[:, None, None]
    scale = np.geomspace(0.03, 8.0, 24)[None, :, None]
    laws = np.diff(-np.exp(-((ends / scale) ** shape)), axis=2)
    laws = laws / np.maximum(laws.sum(axis=2, keepdims=True), TINY)
    usual = np.log(shape[:, :, 0]) ** 2 + np.log(scale[:, :, 0]) ** 2
    plain = np.ones(len(counts))
    for _ in range(2):  # then without the cells that stand alone
        total = np.maximum(laws @ (plain * counts) / (laws**2 @ plain), 0.0)
        squares = (counts - total[:, :, None] * laws) ** 2 @ plain / sigma**2 + usual
        likely = np.exp(-(squares - squares.min()) / 2)
        law = np.einsum("ij,ijc->c", likely / likely.sum(), laws)
        whole = max(float(law @ (plain * counts) / (law**2 @ plain)), 0.0)
        plain = (counts - whole * law < CLEAR * sigma).astype(np.float64)
    apart = np.where(plain > 0, 0.0, counts - whole * law)
    apart += denoised(counts - whole * law - apart, sigma)
    return np.asarray(np.maximum(np.maximum(whole, TINY) * law + apart, TINY * law))


def _begun(counts: Floats) -> Iterator[tuple[int, int]]:
    """Yield runs of cells that hold most for their length: where a fit begins."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for length in (3, 8, 20):
        if length < len(counts):
            start = int(np.argmax(sums[length:] - sums[:-length]))
            yield start, start + length
    yield 0, len(counts)


def _parts(law: Floats) -> list[tuple[float, float, float]]:
    if len(law) == 2:
        return [(1.0, law[0], float(np.exp(law[1])))]
    share = 1 / (1 + np.exp(-law[4]))
    return [(share, law[0], float(np.exp(law[1]))), (1 - share, law[2], float(np.exp(law[3])))]


def _ends(edge: Floats, mean: float, sd: float) -> Floats:
    ends = ndtr((edge - mean) / sd)
    ends[0], ends[-1] = 0.0, 1.0
    return np.asarray(ends)


def _cell_shares(law: Floats, edge: Floats) -> Floats:
    return np.asarray(
        sum(share * np.diff(_ends(edge, mean, sd)) for share, mean, sd in _parts(law))
    )


def _densities(law: Floats, points: Floats) -> Floats:
    found = np.zeros(len(points))
    for share, mean, sd in _parts(law):
        found += share / sd * np.exp(-0.5 * np.minimum(((points - mean) / sd) ** 2, 200))
    return found
