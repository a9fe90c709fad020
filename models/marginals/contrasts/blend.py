"""What the mixture is fitted to: measured tables averaged with what was expected of each pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SPREAD = 1.25  # standard deviation over mean absolute deviation
BEYOND = 2.0  # standard deviations of a distance's noise, that it may be
LEAST = 0.005  # of the rows: no pair is known better from one number
FLAT = 0.05  # of the mean cell, in the standard deviation of a rare cell


def prior_sd(expected: Floats, distance: float, noise: float, total: float) -> Floats:
    """Return how far each cell may be from what is expected of it, as a standard deviation.

    Args:
        expected: units in each cell of a pair.
        distance: of the pair from it, in L1, in units.
        noise: standard deviation of this distance's noise.
        total: number of units.
    """
    off = max(distance, BEYOND * noise, LEAST * total)
    cells = expected.size
    shape = np.sqrt(cells * expected / total + FLAT)
    return np.asarray(SPREAD * off / cells * shape)


def blended(expected: Floats, sd: Floats, table: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Average a measured table with its expectation, each cell by precision.

    Returns:
        The average, and its standard deviation, in what both are counted in.
    """
    own, theirs = 1 / np.maximum(sd, 1e-12) ** 2, 1 / max(sigma, 1e-12) ** 2
    mean = (own * expected + theirs * table) / (own + theirs)
    return mean, np.asarray(1 / np.sqrt(own + theirs))
