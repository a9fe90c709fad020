"""Mechanisms on counts: noisy histograms of a cohort, with exact discrete noise.

Inputs are checked before any noise is drawn, and every value that leaves this module carries noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms, JointHistograms


class CodedRows(Protocol):
    """Rows as codes, grouped by privacy unit; rows beyond a unit's own are masked."""

    @property
    def codes(self) -> NDArray[Any]:
        """Codes, shape [units, rows, columns]."""
        ...

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows are real, shape [units, rows]."""
        ...


def joint_histograms(
    cohort: CodedRows, sizes: Sequence[int], event: JointHistograms, entropy: Entropy
) -> list[NDArray[np.int64]]:
    """Noisy row counts of every column at once.

    Each real row adds 1, or its share of ``event.unit_mass``, to one cell of each column's
    histogram, so a unit moves the counts by at most ``event.mass`` in each histogram. Each cell
    gets its own discrete Gaussian noise of parameter ``event.sigma``; counts may come out negative.
    Masked rows never count, whatever their codes hold.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        sizes: number of codes of each column.
        event: what the plan paid for; one histogram per column.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per column.

    Raises:
        InputError: if the cohort is not what the event accounts for; no noise has been drawn then.
    """
    counts = _count(cohort, sizes, event)
    noise = entropy.discrete_gaussian(event.sigma, sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    return [count + part for count, part in zip(counts, np.split(noise, ends), strict=True)]


def chosen_histograms(
    cohort: CodedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    sigmas: Sequence[float],
    event: ChosenHistograms,
    entropy: Entropy,
) -> list[NDArray[np.int64]]:
    """Noisy joint counts of chosen pairs of columns.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        sizes: number of codes of each column.
        pairs: the columns of each histogram; chosen without looking at the cohort.
        sigmas: the scale of each histogram's noise.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size of the first, size of the second] per pair.

    Raises:
        InputError: if the cohort, the pairs or the scales are not what the event accounts for; no
            noise has been drawn then.
    """
    rows, weights = checked_rows(cohort, sizes, event)
    columns = range(len(sizes))
    if not all(i in columns and j in columns and i != j for i, j in pairs):
        raise InputError(f"event '{event.name}': a pair must name two columns of the cohort")
    if len(pairs) != len(sigmas) or (pairs and not event.covers(sigmas)):
        raise InputError(
            f"event '{event.name}' does not pay for these histograms: too many, or too little noise"
        )
    tables = []
    for (i, j), sigma in zip(pairs, sigmas, strict=True):
        cells = rows[:, i].astype(np.int64) * sizes[j] + rows[:, j]
        counts = _weighted_counts(cells, weights, sizes[i] * sizes[j])
        counts += entropy.discrete_gaussian(sigma, counts.size)
        tables.append(counts.reshape(sizes[i], sizes[j]))
    return tables


def _count(
    cohort: CodedRows, sizes: Sequence[int], event: JointHistograms
) -> list[NDArray[np.int64]]:
    """Exact counts, after all checks. They must not leave this module."""
    rows, weights = checked_rows(cohort, sizes, event)
    if not len(sizes) == event.histograms:
        raise InputError(
            f"event '{event.name}' accounts for {event.histograms} histograms;"
            f" there are {rows.shape[1]} columns and {len(sizes)} sizes"
        )
    return [_weighted_counts(rows[:, column], weights, size) for column, size in enumerate(sizes)]


def checked_rows(
    cohort: CodedRows, sizes: Sequence[int], event: JointHistograms | ChosenHistograms
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Real rows [rows, columns] and what each counts (None: 1), after all checks."""
    codes, mask = cohort.codes, cohort.mask
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if codes.ndim != 3 or mask.shape != codes.shape[:2]:
        raise InputError("a cohort has codes [units, rows, columns] and a mask [units, rows]")
    if mask.dtype != np.bool_ or codes.dtype.kind not in "iu":
        raise InputError("the codes of a cohort are integers and its mask is boolean")
    if codes.shape[1] > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows per unit, but the cohort"
            " keeps more; read it again with the schema's max_rows"
        )
    if len(sizes) != codes.shape[2]:
        raise InputError(
            f"event '{event.name}': there are {codes.shape[2]} columns and {len(sizes)} sizes"
        )
    if any(size < 1 for size in sizes):
        raise InputError("every column needs at least one code")
    rows = codes[mask]
    if rows.size and ((rows < 0).any() or (rows.max(axis=0) >= np.asarray(sizes)).any()):
        raise InputError("the cohort holds a code outside its column; encode it with its schema")
    if event.unit_mass is None:
        return rows, None
    counts = mask.sum(axis=1, dtype=np.int64)
    share = event.unit_mass // np.maximum(counts, 1)
    return rows, np.broadcast_to(share[:, None], mask.shape)[mask]


def _weighted_counts(
    codes: NDArray[Any], weights: NDArray[np.int64] | None, size: int
) -> NDArray[np.int64]:
    """Exact counts of codes; sums of integers below 2^53 are exact in the floats of bincount."""
    counts = np.bincount(codes.astype(np.intp), weights=weights, minlength=size)
    return counts.astype(np.int64)
