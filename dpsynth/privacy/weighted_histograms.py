"""Noisy histograms of rows that carry whole weights: how the histories of units are counted.

**How far a unit moves them.** A row adds its weight, a whole number from 0, to one cell of each
histogram. If the weights of a unit's rows add up to at most M, the unit moves each histogram by a
vector of non-negative whole numbers whose sum, and so whose L2 norm, is at most M, however many
rows it has. Nothing else is used by the bounds of `JointHistograms` and `ChosenHistograms` with
``unit_mass`` M. So a unit of k rows may give each of them floor(M / k), and the number of its rows
needs no cap. A weight of floor(M / sqrt(k)) is NOT covered: k equal rows move one cell by about
M sqrt(k).

Rows of several series (laboratory tests, say) may be counted in one histogram whose cells name the
series: a unit's weights over all series then have to add up to at most M, and the histogram costs
no more than that of one series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms, JointHistograms

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows that each add a whole weight to one cell of each histogram.

    Attributes:
        cells: the cell of each row, ``[rows]`` integers, for every histogram.
        units: the unit of each row, ``[rows]``, integers from 0.
        weights: what each row adds, ``[rows]``, integers from 0.
    """

    cells: tuple[NDArray[Any], ...]
    units: Ints
    weights: Ints


def weighted_histograms(
    rows: WeightedRows,
    sizes: Sequence[int],
    sigmas: Sequence[float],
    event: JointHistograms | ChosenHistograms,
    entropy: Entropy,
) -> list[Ints]:
    """Count weights in every histogram, and add discrete Gaussian noise to every cell.

    Args:
        rows: each unit's weights add up to at most ``event.mass``.
        sizes: number of cells of each histogram.
        sigmas: the scale of each histogram's noise; the event's own for `JointHistograms`.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per histogram.

    Raises:
        InputError: rows, sizes or scales are not what the event accounts for; no noise has been
            drawn then.
    """
    _check(rows, sizes, sigmas, event)
    counts = [
        _counted(cells, rows.weights, size) for cells, size in zip(rows.cells, sizes, strict=True)
    ]
    return [
        count + entropy.discrete_gaussian(sigma, len(count))
        for count, sigma in zip(counts, sigmas, strict=True)
    ]


def _check(
    rows: WeightedRows,
    sizes: Sequence[int],
    sigmas: Sequence[float],
    event: JointHistograms | ChosenHistograms,
) -> None:
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if not len(rows.cells) == len(sizes) == len(sigmas):
        raise InputError(f"event '{event.name}': each histogram needs cells, a size and a scale")
    if isinstance(event, JointHistograms):
        paid = len(sizes) == event.histograms and set(sigmas) == {event.sigma}
    else:
        paid = event.covers(sigmas)
    if not paid:
        raise InputError(
            f"event '{event.name}' does not pay for these histograms: too many, or too little noise"
        )
    if not all(array.ndim == 1 and array.dtype.kind in "iu" for array in _arrays(rows)):
        raise InputError("cells, units and weights are whole numbers, one for each row")
    if len({len(array) for array in _arrays(rows)}) > 1:
        raise InputError("cells, units and weights are whole numbers, one for each row")
    if len(rows.units) == 0:
        return
    if min(rows.units.min(), rows.weights.min()) < 0:
        raise InputError("units and weights are whole numbers from 0")
    if any(
        cells.min() < 0 or cells.max() >= size
        for cells, size in zip(rows.cells, sizes, strict=True)
    ):
        raise InputError("a row has a cell outside its histogram")
    if int(_counted(rows.units, rows.weights, 1).max()) > event.mass:
        raise InputError(
            f"event '{event.name}' accounts for a mass of {event.mass} of each unit; a unit's rows "
            "weigh more"
        )


def _arrays(rows: WeightedRows) -> tuple[NDArray[Any], ...]:
    return (*rows.cells, rows.units, rows.weights)


def _counted(places: NDArray[Any], weights: Ints, size: int) -> Ints:
    """Sum weights by place; sums of integers below 2^53 are exact in the floats of bincount."""
    return np.bincount(places.astype(np.intp), weights, minlength=size).astype(np.int64)
