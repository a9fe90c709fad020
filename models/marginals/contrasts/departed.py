"""How far pairs are from what was expected of them, and which are worth a table of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SPARSE = 0.7  # expected units of a cell, below which chance is not normal
WORTH = 0.3  # of the error that a table's noise adds to all others, that it must save


@dataclass(frozen=True)
class Departed:
    """Estimated distances in L1 of the pairs from what was expected.

    Attributes:
        distances: of each pair, in units, ``[pairs]``.
        sd: standard deviation of their noise, in units.
    """

    distances: Floats
    sd: float


def distances_of(
    released: npt.NDArray[np.int64],
    expected: Sequence[Floats],
    drift: Sequence[Floats],
    *,
    parts: int,
    sigma: float,
) -> Departed:
    """Take what chance alone gives out of released departures.

    Args:
        released: departures, in parts of a unit.
        expected: units expected in each cell of each pair.
        drift: variance of each of these that the margins' noise gives, in units squared.
        parts: of a unit.
        sigma: of the noise of a departure, in parts.
    """
    chance = np.array([_by_chance(table, own) for table, own in zip(expected, drift, strict=True)])
    sums = released / parts
    squares = np.where(sums > chance, sums**2 - chance**2, 0.0)
    return Departed(np.sqrt(np.maximum(squares, 0.0)), sigma / parts)


def _by_chance(expected: Floats, drift: Floats) -> float:
    """Return the mean L1 distance of sampled counts from what is expected, in units."""
    sampling = np.where(
        expected < SPARSE, 2 * expected * np.exp(-expected), np.sqrt(2 / math.pi * expected)
    )
    return float(np.sqrt(sampling**2 + 2 / math.pi * drift).sum())


def worthwhile(departed: Departed, cells: Sequence[int], noise: float) -> list[int]:
    """Name the pairs whose tables are worth their noise, most of all first.

    Tables of c cells that share one event with weights c^(1/3) are off by sqrt(2 / pi) s C^(3/2)
    together, where C is the sum of c^(2/3) and s the noise of a cell if one table were alone. One
    more table saves its distance and costs the derivative, 1.5 sqrt(2 / pi) s sqrt(C) c^(2/3).

    Args:
        departed: of each pair.
        cells: of each pair.
        noise: s, in units.
    """
    sizes = np.asarray(cells, dtype=np.float64) ** (2 / 3)
    order = np.argsort(-departed.distances / sizes)
    price = 1.5 * WORTH * math.sqrt(2 / math.pi) * noise
    named, together = [], 0.0
    for place in order:
        together += float(sizes[place])
        if departed.distances[place] <= price * math.sqrt(together) * sizes[place]:
            break
        named.append(int(place))
    return sorted(named)
