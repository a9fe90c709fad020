"""Sums over rows with noise: what rows add is checked against the event, then noise is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.answers.event import RowSums
from dpsynth.privacy.answers.laplace_event import LaplaceCounts
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise, laplace_noise

Ints = NDArray[np.int64]
NOWHERE = -1
"""The cell of a row that adds nothing to a part."""


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What rows add: to which cell of each part, and how much.

    Attributes:
        units: the unit of each row, ``[rows]``, integers from 0.
        cells: the cell of each row in each part, ``[rows, parts]``; `NOWHERE` for none.
        values: what the row adds there, ``[rows, parts]`` whole numbers; None where each adds 1.
        like: how many units there are with just the rows of this row's unit, which stands for them
            all, ``[rows]``, the same in all its rows; None where each unit stands for itself.
    """

    units: Ints
    cells: Ints
    values: Ints | None = None
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "what rows add to sums")


def row_sums(
    rows: Contributions, sizes: Sequence[int], event: RowSums, entropy: Entropy
) -> list[Ints]:
    """Add up what rows contribute, and discrete Gaussian noise to every cell.

    Args:
        rows: of the cohort, at most ``event.rows_per_unit`` of each unit.
        sizes: number of cells of each part.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per part; negative sums may occur.

    Raises:
        InputError: rows or sizes are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = RowSums("by sex", 1, 1, largest=1, signed=False, once=False,
        ...                 shared=False, sigma=0.3)
        >>> rows = Contributions(np.arange(9), np.array([[0]] * 4 + [[1]] * 5))
        >>> [part.shape for part in row_sums(rows, [2], event, SeededEntropy(1))]
        [(2,)]
    """
    _check(rows, sizes, event)
    exact = [_sum(rows, part, size, once=event.once) for part, size in enumerate(sizes)]
    noises = gaussian_noise(event, entropy, [(event.sigma, size) for size in sizes])
    return [part + noise for part, noise in zip(exact, noises, strict=True)]


def laplace_counts(
    rows: Contributions, size: int, event: LaplaceCounts, entropy: Entropy
) -> list[Ints]:
    """Count rows or units in cells, and add discrete Laplace noise to every cell.

    Args:
        rows: of the cohort, at most ``event.rows_per_unit`` of each unit; each adds 1.
        size: number of cells.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] in a list, as `row_sums` gives it.

    Raises:
        InputError: rows or size are not what the event accounts for; no noise has been drawn then.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if rows.values is not None:
        raise InputError(f"event '{event.name}': a row adds 1 to a cell")
    _check(rows, [size], event.counted)
    exact = _sum(rows, 0, size, once=event.once)
    return [exact + laplace_noise(event, entropy, size)]


def _sum(rows: Contributions, part: int, size: int, *, once: bool) -> Ints:
    """Return the exact sums of one part; private until noise is added."""
    cells = rows.cells[:, part]
    here = cells != NOWHERE
    if once:
        return units_in_cells(rows, part, size)
    added = 1 if rows.values is None else rows.values[here, part]
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, cells[here], added if rows.like is None else added * rows.like[here])
    return total


def units_in_cells(rows: Contributions, part: int, size: int) -> Ints:
    """Return how many units there are in each cell of a part, each once; private.

    >>> cells, like = np.array([[2], [2], [1]]), np.array([5, 5, 1])
    >>> rows = Contributions(np.array([0, 0, 1]), cells, None, like)
    >>> units_in_cells(rows, 0, 3).tolist()
    [0, 1, 5]
    """
    cells = rows.cells[:, part]
    here = np.flatnonzero(cells != NOWHERE)
    pairs, first = np.unique(rows.units[here] * size + cells[here], return_index=True)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, pairs % size, 1 if rows.like is None else rows.like[here[first]])
    return total


def _check(rows: Contributions, sizes: Sequence[int], event: RowSums) -> None:
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    if len(sizes) != event.parts or any(size < 1 for size in sizes):
        raise InputError(f"{name} accounts for {event.parts} parts of at least one cell each")
    arrays = [rows.units, rows.cells, *([] if rows.values is None else [rows.values])]
    if any(array.dtype != np.int64 for array in arrays) or rows.units.ndim != 1:
        raise InputError(f"{name}: units, cells and values are whole numbers of 64 bits")
    shape = (len(rows.units), event.parts)
    if any(array.shape != shape for array in arrays[1:]):
        raise InputError(f"{name}: cells and values need a row each and a column for each part")
    if not len(rows.units):
        return
    if (rows.cells < NOWHERE).any() or (rows.cells >= np.asarray(sizes)).any():
        raise InputError(f"{name}: a row has a cell outside its part")
    if rows.units.min() < 0:
        raise InputError(f"{name}: units are whole numbers from 0")
    if rows.like is not None and not are_of_units(rows.like, rows.units):
        raise InputError(f"{name}: the units that one stands for are a whole number of each unit")
    if rows.values is not None:
        if event.once:
            raise InputError(f"{name}: a unit that counts once adds 1 to a cell")
        if max(int(rows.values.max()), -int(rows.values.min())) > event.largest:
            raise InputError(f"{name}: a row adds more than {event.largest}; clip it first")
        if not event.signed and rows.values.min() < 0:
            raise InputError(f"{name}: a row adds a negative number")
    if event.shared and _most_of_a_unit(rows) > event.largest:
        raise InputError(f"{name}: rows of a unit add more than {event.largest} to a part together")
    if int(np.unique(rows.units, return_counts=True)[1].max()) > event.rows_per_unit:
        raise InputError(
            f"{name} accounts for {event.rows_per_unit} rows of each unit; a unit has more"
        )


def are_of_units(like: Ints, units: Ints) -> bool:
    """Whether these are positive whole numbers, the same in all rows of a unit."""
    if like.dtype != np.int64 or like.shape != units.shape or like.min() < 1:
        return False
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    return bool((like == like[first][unit]).all())


def _most_of_a_unit(rows: Contributions) -> int:
    """Return the most that rows of one unit add to one part, in absolute terms."""
    added = np.abs(rows.values) if rows.values is not None else np.ones(rows.cells.shape, np.int64)
    added = np.where(rows.cells == NOWHERE, 0, added)
    _, unit = np.unique(rows.units, return_inverse=True)
    total = np.zeros((int(unit.max()) + 1, added.shape[1]), dtype=np.int64)
    np.add.at(total, unit, added)
    return int(total.max())
