"""Distributions of numbers from noisy histograms: a normal law or two, and what stands out.

A histogram has at most `CELLS` public cells. Its law is one or two normal distributions on the best
of three public scales, by least squares. Where cells depart from it by more than their noise, they
are put back: the departures' orthonormal Haar coefficients c are shrunk to
c max(0, 1 - (`CLEAR` s / c)^2), with the noise s of a cell (Haar 1910; the garrote of Breiman 1995).

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import ndtr

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CELLS = 64  # of a histogram
CLEAR = 4.0  # errors that one of some thousand cells of noise reaches by chance (sqrt(2 log n))
NEAR = 0.02  # of the range: up to here from the lower bound, cells are about as wide as each other
PRICE = 4.0  # squares of the noise of a cell, that a parameter has to save
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

    >>> denoised(np.array([100.0, 101.0, 0.0, 1.0]), 5.0).round().tolist()
    [100.0, 100.0, 0.0, 0.0]
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
    """

    cell: Ints
    places: Floats
    edges: Floats

    @classmethod
    def of(cls, feature: Feature) -> NumberCells:
        """Take each code, or cells that widen from the lower bound on, as laboratory values do."""
        points = np.asarray(feature.points or (1,) * feature.cells, dtype=np.float64)
        ends = np.concatenate([[0.0], np.cumsum(points)]) / points.sum()
        places = (ends[:-1] + ends[1:]) / 2
        if feature.cells <= CELLS:
            return cls(np.arange(feature.cells), places, ends)
        spread = np.log1p(places / NEAR) / np.log1p(1 / NEAR)
        cell = np.minimum(spread * CELLS, CELLS - 1).astype(np.int64)
        used, cell = np.unique(cell, return_inverse=True)
        last = np.searchsorted(cell, np.arange(len(used)), side="right")
        return cls(cell, places, np.concatenate([[0.0], ends[last]]))

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1


def scales(places: Floats) -> list[Floats]:
    """Return public scales of places between 0 and 1."""
    return [places, np.sqrt(places), np.log(places + 1e-3)]


def normal_law(
    cells: NumberCells, counts: Floats, sigma: float, *, scaled: bool = True
) -> tuple[Floats, Floats]:
    """Fit a law to noisy counts of cells.

    Args:
        cells: of the codes.
        counts: of the cells.
        sigma: noise of a count.
        scaled: whether all scales are tried, or only that of the places.

    Returns:
        Shares of the cells, and of the codes.
    """
    total = max(float(np.sum(denoised(counts, sigma, 1.2))), sigma)
    every = scales(cells.edges)[: 3 if scaled else 1]
    begun = np.maximum(denoised(counts, sigma), 0.0)
    if begun.sum() <= 0:
        begun = np.maximum(denoised(counts, sigma, 1.2), 0.0) + TINY
    singles = [_single(edge, begun, counts, total) for edge in every]
    scale = int(np.argmin([squares for squares, _ in singles]))
    edge, (squares, found) = every[scale], singles[scale]
    mean, sd = found[0], float(np.exp(found[1]))
    for apart in (0.8, 1.6):
        two = np.array([mean - apart * sd, np.log(0.6 * sd), mean + apart * sd, np.log(0.6 * sd), 0])
        price, double = _fitted(two, edge, counts, total)
        # three more parameters, of which one says where: each has to earn its place
        if price + 3 * PRICE * sigma**2 < squares:
            squares, found = price + 3 * PRICE * sigma**2, double
    law = _cell_shares(found, edge)
    apart_from = denoised(counts - total * law, sigma)
    shares = np.maximum(total * law + apart_from, 0.0)
    shares = shares / max(float(shares.sum()), TINY)
    points = scales(cells.places)[scale]
    widths = np.gradient(points) if len(points) > 1 else np.ones(1)
    within = _densities(found, points) * np.maximum(widths, TINY) + TINY
    whole = np.bincount(cells.cell, within, minlength=cells.count)
    return shares, shares[cells.cell] * within / whole[cells.cell]


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


def _single(edge: Floats, begun: Floats, counts: Floats, total: float) -> tuple[float, Floats]:
    middles, weights = (edge[:-1] + edge[1:]) / 2, begun / begun.sum()
    mean = float(weights @ middles)
    sd = float(np.sqrt(weights @ (middles - mean) ** 2))
    sd = max(sd, 0.5 * float(np.diff(edge).min()))
    return _fitted(np.array([mean, np.log(sd)]), edge, counts, total)


def _fitted(start: Floats, edge: Floats, counts: Floats, total: float) -> tuple[float, Floats]:
    low = float(np.log(0.3 * np.diff(edge).min()))
    high = float(np.log(edge[-1] - edge[0]))
    bounds_low = np.array([edge[0], low, edge[0], low, -3.0][: len(start)])
    bounds_high = np.array([edge[-1], high, edge[-1], high, 3.0][: len(start)])
    start = np.clip(start, bounds_low + TINY, bounds_high - TINY)
    found = least_squares(
        lambda one: total * _cell_shares(one, edge) - counts,
        start,
        jac=lambda one: total * _slopes(one, edge),
        bounds=(bounds_low, bounds_high),
        max_nfev=40,
    )
    return 2 * float(found.cost), found.x


def _parts(law: Floats) -> list[tuple[float, float, float]]:
    if len(law) == 2:
        return [(1.0, law[0], float(np.exp(law[1])))]
    share = 1 / (1 + np.exp(-law[4]))
    return [(share, law[0], float(np.exp(law[1]))), (1 - share, law[2], float(np.exp(law[3])))]


def _ends(edge: Floats, mean: float, sd: float) -> Floats:
    ends = ndtr((edge - mean) / sd)
    ends[0], ends[-1] = 0.0, 1.0
    return ends


def _cell_shares(law: Floats, edge: Floats) -> Floats:
    return np.asarray(
        sum(share * np.diff(_ends(edge, mean, sd)) for share, mean, sd in _parts(law))
    )


def _slopes(law: Floats, edge: Floats) -> Floats:
    """Return how the shares of cells move with each parameter, ``[cells, parameters]``."""
    columns = []
    for share, mean, sd in _parts(law):
        z = (edge - mean) / sd
        height = np.exp(-0.5 * np.minimum(z**2, 200)) / np.sqrt(2 * np.pi)
        height[[0, -1]] = 0.0
        columns += [share * np.diff(-height / sd), share * np.diff(-height * z)]
    if len(law) > 2:
        (share, *first), (_, *second) = _parts(law)
        apart = np.diff(_ends(edge, *first)) - np.diff(_ends(edge, *second))
        columns.append(share * (1 - share) * apart)
    return np.stack(columns, axis=1)


def _densities(law: Floats, points: Floats) -> Floats:
    found = np.zeros(len(points))
    for share, mean, sd in _parts(law):
        found += share / sd * np.exp(-0.5 * np.minimum(((points - mean) / sd) ** 2, 200))
    return found
