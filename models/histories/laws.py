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
CLEAR = 2.0  # standard deviations of noise, by which a departure is shrunk
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
        """Take each code, or cells whose width grows with the root of the place in them."""
        points = np.asarray(feature.points or (1,) * feature.cells, dtype=np.float64)
        ends = np.concatenate([[0.0], np.cumsum(points)]) / points.sum()
        places = (ends[:-1] + ends[1:]) / 2
        if feature.cells <= CELLS:
            return cls(np.arange(feature.cells), places, ends)
        cell = np.minimum(np.sqrt(places) * CELLS, CELLS - 1).astype(np.int64)
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


def normal_law(cells: NumberCells, counts: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Fit a law to noisy counts of cells.

    Returns:
        Shares of the cells, and of the codes.
    """
    total = max(float(np.sum(denoised(counts, sigma, 1.2))), sigma)
    edges = scales(cells.edges)
    begun = np.maximum(denoised(counts, sigma), 0.0)
    if begun.sum() <= 0:
        begun = np.maximum(denoised(counts, sigma, 1.2), 0.0) + TINY
    best: tuple[float, int, Floats] | None = None
    for scale, edge in enumerate(edges):
        middles = (edge[:-1] + edge[1:]) / 2
        weights = begun / begun.sum()
        mean = float(weights @ middles)
        sd = max(float(np.sqrt(weights @ (middles - mean) ** 2)), 0.5 * float(np.diff(edge).min()))
        single = _fitted(np.array([mean, np.log(sd)]), edge, counts, total)
        starts = [single]
        for apart in (0.8, 1.6):
            mean, sd = single[1][0], float(np.exp(single[1][1]))
            two = [mean - apart * sd, np.log(0.6 * sd), mean + apart * sd, np.log(0.6 * sd), 0.0]
            starts.append(_fitted(np.array(two), edge, counts, total))
        for squares, found in starts:
            # a parameter has to earn a departure of two standard deviations of the noise
            price = squares + 4 * sigma**2 * len(found)
            if best is None or price < best[0]:
                best = (price, scale, found)
    assert best is not None
    _, scale, found = best
    law = _cell_shares(found, edges[scale])
    apart = denoised(counts - total * law, sigma)
    shares = np.maximum(total * law + apart, 0.0)
    shares = shares / max(float(shares.sum()), TINY)
    points = scales(cells.places)[scale]
    widths = np.gradient(points) if len(points) > 1 else np.ones(1)
    within = _densities(found, points) * np.maximum(widths, TINY) + TINY
    whole = np.bincount(cells.cell, within, minlength=cells.count)
    return shares, shares[cells.cell] * within / whole[cells.cell]


def _fitted(start: Floats, edge: Floats, counts: Floats, total: float) -> tuple[float, Floats]:
    low = float(np.log(0.3 * np.diff(edge).min()))
    high = float(np.log(2 * (edge[-1] - edge[0])))
    bounds_low = [edge[0] - 1, low, edge[0] - 1, low, -3.5][: len(start)]
    bounds_high = [edge[-1] + 1, high, edge[-1] + 1, high, 3.5][: len(start)]
    start = np.clip(start, np.add(bounds_low, TINY), np.subtract(bounds_high, TINY))
    found = least_squares(
        lambda one: total * _cell_shares(one, edge) - counts,
        start,
        bounds=(bounds_low, bounds_high),
        max_nfev=40,
    )
    return 2 * float(found.cost), found.x


def _parts(law: Floats) -> list[tuple[float, float, float]]:
    if len(law) == 2:
        return [(1.0, law[0], float(np.exp(law[1])))]
    share = 1 / (1 + np.exp(-law[4]))
    return [(share, law[0], float(np.exp(law[1]))), (1 - share, law[2], float(np.exp(law[3])))]


def _cell_shares(law: Floats, edge: Floats) -> Floats:
    found = np.zeros(len(edge) - 1)
    for share, mean, sd in _parts(law):
        ends = ndtr((edge - mean) / sd)
        ends[0], ends[-1] = 0.0, 1.0
        found += share * np.diff(ends)
    return found


def _densities(law: Floats, points: Floats) -> Floats:
    found = np.zeros(len(points))
    for share, mean, sd in _parts(law):
        found += share / sd * np.exp(-0.5 * np.minimum(((points - mean) / sd) ** 2, 200))
    return found
