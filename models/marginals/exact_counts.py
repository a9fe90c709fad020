"""Counts and gradient steps without privacy, for `NotPrivate` fits only.

They have the shape of the private mechanisms, so that a generator differs from its reference in
the noise and in nothing else. Nothing that they return may leave the office.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import AnyRows, Cohort, in_memory
from dpsynth.privacy import ChosenHistograms, JointHistograms

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy

Ints = npt.NDArray[np.int64]


def exact_joint_histograms(
    cohort: AnyRows, sizes: Sequence[int], event: JointHistograms, entropy: Entropy
) -> list[Ints]:
    """Count the rows of every column as `mechanisms.joint_histograms` does, without noise."""
    rows, weights = _rows(in_memory(cohort), event)
    return [
        np.bincount(rows[:, j], weights, minlength=size).astype(np.int64)
        for j, size in enumerate(sizes)
    ]


def exact_chosen_histograms(
    cohort: AnyRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    sigmas: Sequence[float],
    event: ChosenHistograms,
    entropy: Entropy,
) -> list[Ints]:
    """Count the rows of pairs of columns as `mechanisms.chosen_histograms`, without noise."""
    rows, weights = _rows(in_memory(cohort), event)
    return [
        np.bincount(rows[:, i] * sizes[j] + rows[:, j], weights, minlength=sizes[i] * sizes[j])
        .astype(np.int64)
        .reshape(sizes[i], sizes[j])
        for i, j in pairs
    ]


def _rows(
    cohort: Cohort, event: JointHistograms | ChosenHistograms
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return the real rows ``[rows, columns]`` and what each counts."""
    counts = np.maximum(cohort.mask.sum(axis=1), 1)
    share = np.ones_like(counts) if event.unit_mass is None else event.unit_mass // counts
    weights = np.broadcast_to(share[:, None], cohort.mask.shape)[cohort.mask]
    return cohort.codes[cohort.mask].astype(np.int64), weights
