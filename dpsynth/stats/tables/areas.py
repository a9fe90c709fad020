"""Means by area where some areas are small: merged, or drawn towards the others.

Post-processing of noisy numbers and sums alone. Numbers are those of `Means`: values lie within -1
and 1, N_i and S_i are the noisy number and sum of area i, with noise of sd_N and sd_S.

**Merged**: all areas whose noisy number is below the least that was asked for are one, and the
interval is Fieller's of their sums. Which areas these are depends on their noise a little, which
the interval does not know; bench/statistics_of_tables.py measures how often it holds.

**Drawn together** (Fay and Herriot, Estimates of Income for Small Places, JASA 74, 1979; James and
Stein): y_i = S_i / n_i is taken as normal around the area's mean t_i with the known variance
D_i = (sd_S^2 + m^2 sd_N^2) / k_i^2, and t_i as normal around m with the variance A + v / k_i. Here
v is what people vary: at most 1 - m^2 between the bounds (Bhatia and Davis), times the rows that
one of them may have. n_i is N_i, and at least twice sd_N, so that an area of nobody has a figure
too; k_i is one sd_N less, so that a number that noise has raised does not pass for a precise one.
Given A, t_i has the mean y_i - B_i (y_i - m) with B_i = D_i / (A + v / k_i + D_i), and m is the
mean of y_i with weights 1 / (A + v / k_i + D_i). A is not known: it is integrated out, flat between
0 and 1 (Morris, Parametric Empirical Bayes Inference, JASA 78, 1983). The interval is that of the
posterior's mean and variance. It holds the figure of the extract in so many *of the areas, on
average over them*, and not for each area by itself: an area unlike all others is drawn away from
what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.stats.axes import Axis

Floats = npt.NDArray[np.float64]
MERGE, SHRINK = "merge", "shrink"
LEAST_AREAS = 4  # to be drawn together
_GRID = 60


@dataclass(frozen=True)
class Small:
    """What is done with small areas.

    Attributes:
        how: ``merge`` or ``shrink``.
        least: the least noisy number of an area that is not merged.
    """

    how: str
    least: float = 0.0

    @classmethod
    def of(cls, entry: Mapping[str, Any], axes: tuple[Axis, ...]) -> Small | None:
        """Read it from the entry of a request; None if nothing is asked.

        Raises:
            InputError: it is neither ``shrink`` nor ``{merge: number}``, or there are no areas.
        """
        asked = entry.get("small")
        if asked is None:
            return None
        cells = int(np.prod([axis.size for axis in axes])) if axes else 1
        if asked == SHRINK:
            if cells < LEAST_AREAS:
                raise InputError(f"'small: shrink' needs {LEAST_AREAS} cells at least in 'by'")
            return cls(SHRINK)
        least = asked.get(MERGE) if isinstance(asked, Mapping) and set(asked) == {MERGE} else None
        if not isinstance(least, int | float) or least is True or not 1 <= least <= 1e9:
            raise InputError("'small' is either shrink, or {merge: least number of an area}")
        if len(axes) != 1:
            raise InputError("'small: merge' needs exactly one column in 'by'")
        return cls(MERGE, float(least))


def merged(n: Floats, least: float) -> npt.NDArray[np.int64]:
    """Return the cell of each area: its own, or one for all that have fewer; ``[areas]``.

    A single small area stays what it is.

    >>> merged(np.array([90.0, 7.0, 50.0, 11.0]), 20).tolist()
    [0, 2, 1, 2]
    """
    few = n < least
    if few.sum() < 2:
        return np.arange(len(n))
    return np.where(few, (~few).sum(), np.cumsum(~few) - 1)


def shrunk(
    n: Floats, s: Floats, sd_n: float, sd_s: float, z: float, rows: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Draw means of areas together.

    Args:
        n: noisy numbers, ``[areas]``.
        s: noisy sums of values within -1 and 1.
        sd_n: of the noise in numbers.
        sd_s: of the noise in sums.
        z: how many standard deviations intervals reach.
        rows: how many rows of one person may count in a number.

    Returns:
        Means, lower and upper ends, and the weight of each area's own figure, from 0 to 1.

    Example:
        >>> n = np.array([900.0, 20.0, 800.0, 850.0, 950.0])
        >>> means, lower, upper, own = shrunk(n, 0.2 * n + 9, 5.0, 5.0, 1.96, 1)
        >>> bool(abs(means[1] - 0.2) < abs(0.65 - 0.2)), bool(own[1] < own[0])
        (True, True)
    """
    size = np.maximum(n, max(2 * sd_n, 1.0))
    middle = float(np.clip(s.sum() / max(float(size.sum()), 1.0), -1.0, 1.0))
    own = np.clip(s / size, -1.0, 1.0)
    fewer = np.maximum(size - sd_n, max(sd_n, 1.0))
    noise = (sd_s**2 + (middle * sd_n) ** 2) / fewer**2
    people = rows * (1 - middle**2) / fewer
    spreads = (np.arange(_GRID) + 0.5) / _GRID  # roots of A
    prior = spreads[:, None] ** 2 + people
    total = prior + noise
    weights = 1 / total
    mean = (weights * own).sum(axis=1) / weights.sum(axis=1)
    likelihood = -0.5 * (np.log(total) + weights * (own - mean[:, None]) ** 2).sum(axis=1)
    likelihood -= 0.5 * np.log(weights.sum(axis=1))
    chance = spreads * np.exp(likelihood - likelihood.max())  # flat in A: spread times its step
    chance = (chance / chance.sum())[:, None]
    pull = noise / total
    drawn = own - pull * (own - mean[:, None])
    variance = prior * pull + pull**2 / weights.sum(axis=1)[:, None]
    found = (chance * drawn).sum(axis=0)
    sd = np.sqrt((chance * (variance + (drawn - found) ** 2)).sum(axis=0))
    lower, upper = np.clip(found - z * sd, -1, 1), np.clip(found + z * sd, -1, 1)
    return found, lower, upper, 1 - (chance * pull).sum(axis=0)
