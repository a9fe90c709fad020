"""Departures: how far each pair of columns is from what is expected of it, in one number a pair.

For each of P pairs S_p = sum over cells of |n_c - e_c|, where the expected counts
e_c are fixed by earlier releases. Counts and expected counts are kept in parts of 1 / M of a unit:
each of a unit's r rows adds floor(M / r) to one n_c of each pair, and the e_c are rounded to whole
parts. A unit moves the n_c of one pair by at most M in L1, so it moves S_p by at most M (the
triangle inequality, in each cell), and all P answers by at most M sqrt(P) in L2. P answers with
part 1 / sqrt(P) each have noise of scale ``sigma_for(1 / sqrt(P))``. Charging them as one answer,
with part 1 each, would claim sqrt(P) times less than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.counting.rows import CodedRows
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms
from dpsynth.privacy.mechanisms import checked_rows
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]

DEPARTURES = "departures from expected pairs"
"""Name of their event in a plan; certificates say by it what was released."""


def departures(
    cohort: CodedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    expected: Sequence[NDArray[np.float64]],
    event: ChosenHistograms,
    entropy: Entropy,
) -> Ints:
    """Release how far the joint counts of pairs are from what is expected, in L1, with noise.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        sizes: number of codes of each column.
        pairs: the columns of each pair; chosen without looking at the cohort.
        expected: of each pair, the units that are expected in each cell, [codes, codes]; fixed by
            earlier releases.
        event: what the plan paid for; its ``unit_mass`` is the number of parts of a unit.
        entropy: where the noise comes from.

    Returns:
        One whole number for each pair, in parts of a unit.

    Raises:
        InputError: the cohort, the pairs or the tables are not what the event accounts for; no
            noise has been drawn then.
    """
    sums = exact_departures(cohort, sizes, pairs, expected, event)
    sigma = event.sigma_for(1 / math.sqrt(max(1, len(pairs))))
    if not event.covers([sigma] * len(pairs)):
        raise InputError(f"event '{event.name}' does not pay for {len(pairs)} departures")
    (noise,) = gaussian_noise(event, entropy, [(sigma, len(sums))], answers=len(pairs))
    return sums + noise


def exact_departures(
    cohort: CodedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    expected: Sequence[NDArray[np.float64]],
    event: ChosenHistograms,
) -> Ints:
    """Add up departures, after all checks; private until noise is added."""
    rows, weights = checked_rows(cohort, sizes, event)
    columns = range(len(sizes))
    if event.unit_mass is None or weights is None or len(pairs) != len(expected):
        raise InputError(f"event '{event.name}' does not pay for these departures")
    if not all(i in columns and j in columns and i != j for i, j in pairs):
        raise InputError(f"event '{event.name}': a pair must name two columns of the cohort")
    sums = np.zeros(len(pairs), dtype=np.int64)
    for place, ((i, j), table) in enumerate(zip(pairs, expected, strict=True)):
        if table.shape != (sizes[i], sizes[j]) or not np.isfinite(table).all():
            raise InputError(f"event '{event.name}': an expected table does not fit its pair")
        cells = rows[:, i].astype(np.int64) * sizes[j] + rows[:, j]
        counts = np.bincount(cells, weights, minlength=table.size).astype(np.int64)
        parts = np.rint(table.ravel() * event.unit_mass).astype(np.int64)
        sums[place] = np.abs(counts - parts).sum()
    return sums
