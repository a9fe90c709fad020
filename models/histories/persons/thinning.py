"""How numbers of rows thin out: their far codes, which noise hides, from what comes before them.

Few patients have many rows, but these are many of the rows. At epsilon 1, noise adds or takes tens
of patients at each far code, and one with 20 rows has 19 steps. Such numbers fall off as a power:
of real encounters by patient, each number is within a third of what the two before it say. So a
code is expected at the power law through the two codes before it, give or take `APART` of it, and
the released share is averaged with that by precision. A share that departs from it by more than
`SURE` standard deviations stays as it is: a protocol may ask for ten visits.

All of it is a function of released shares, of the scale of their noise, and of public codes, so it
is post-processing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.grids import Grid
from dpsynth.models.histories.persons.table import PersonTable
from dpsynth.models.marginals import Binning, Products, Target

Floats = npt.NDArray[np.float64]

APART = 0.3  # standard deviation of what is expected, as a part of it
SURE = 3.0  # standard deviations beyond which nothing is expected
FIRST = 4  # the first number of rows that is mended, by those of 2 and 3
STEEPEST = 8.0  # power at most
TINY = 1e-9  # a share that is none


def thin_tails(
    person: PersonTable, binning: Binning, products: Products, target: Target
) -> tuple[Binning, Products]:
    """Mend the numbers of rows of wide tables, in the bins and in the mixture.

    Args:
        person: the table of patients.
        binning: of its columns, as released.
        products: the mixture that was fitted to them.
        target: what it was fitted to.
    """
    columns = list(binning.columns)
    for place, grid in person.numbers_of_wide.items():
        old = columns[place]
        noise = target.one_sd[products.offsets[place] : products.offsets[place + 1]]
        new = replace(old, shares=thinned(old.shares, noise[old.bin_of], grid))
        factors = (new.bin_shares + TINY) / (old.bin_shares + TINY)
        columns[place], products = new, products.tilted(place, factors)
    return Binning(binning.domain, tuple(columns)), products


def thinned(shares: Floats, noise: Floats, grid: Grid) -> Floats:
    """Average shares of numbers of rows with what the two codes before each say.

    Args:
        shares: of each code, as released, ``[codes]``.
        noise: their standard errors.
        grid: of the numbers.

    Returns:
        Shares that sum to what they did.

    Example:
        >>> shares = np.array([0.0, 0.8, 0.13, 0.04, 0.02, 0.01])
        >>> thinned(shares, np.full(6, 1e-9), Grid.of_counts(5)).round(3).tolist()
        [0.0, 0.8, 0.13, 0.04, 0.02, 0.01]
        >>> thinned(shares, np.full(6, 0.01), Grid.of_counts(5)).round(3).tolist()
        [0.0, 0.802, 0.13, 0.04, 0.018, 0.01]
    """
    widths, middles, found = np.diff(grid.edges), grid.middles, shares.copy()
    for code in range(FIRST, len(found)):
        one, other = np.maximum(found[code - 2 : code] / widths[code - 2 : code], TINY)
        power = np.log(other / one) / np.log(middles[code - 1] / middles[code - 2])
        power = np.clip(power, -STEEPEST, 0.0)
        expected = widths[code] * other * (middles[code] / middles[code - 1]) ** power
        spread, apart = APART * expected, shares[code] - expected
        if abs(apart) <= SURE * np.hypot(noise[code], spread):
            found[code] = expected + apart * spread**2 / (spread**2 + noise[code] ** 2 + TINY**2)
    return np.asarray(found * (shares.sum() / found.sum()))
