"""Codes within the bins of later rows, from what first rows say of them.

Every patient has a first row and few have later ones, so first rows tell much better how codes of
a bin compare: which numbers people write, and that of the lowest ten only one occurs. Later rows
may differ, as a tail that goes on does. So of each code, its share of its bin is expected to be
that of first rows, give or take `APART` of it, and averaged by precision with what the one-way
counts of steps say. The shares of bins stay as they are. All of it was released: post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.steps.table import StepTable
from dpsynth.models.marginals import MergedBins

Floats = npt.NDArray[np.float64]

APART = 0.3  # standard deviation of a share of a bin around that of first rows, as a part of it
TINY = 1e-12  # a share that is none


def like_first_rows(
    table: StepTable, bins: Sequence[MergedBins], firsts: Sequence[Floats], noise: float
) -> tuple[MergedBins, ...]:
    """Mend the codes within bins of the values that steps draw as they stand.

    Args:
        table: the steps.
        bins: of each of its columns.
        firsts: shares of the codes of each value in first rows; further codes are left out.
        noise: standard error of the share of a code in the one-way counts of steps.
    """
    columns = list(bins)
    start = len(columns) - len(firsts)
    for place, (shares, line) in enumerate(zip(firsts, table.lines, strict=True)):
        if line is None:
            columns[start + place] = blended(columns[start + place], shares, noise)
    return tuple(columns)


def blended(column: MergedBins, shares: Floats, noise: float) -> MergedBins:
    """Average the shares of codes in their bins with those of first rows.

    Args:
        column: bins of later rows.
        shares: of the codes in first rows.
        noise: standard error of a code's share in later rows.

    Example:
        >>> column = MergedBins(np.array([0, 0, 1], np.uint16), np.array([0.2, 0.2, 0.6]))
        >>> blended(column, np.array([0.5, 0.0, 0.5]), 1.0).shares.round(3).tolist()
        [0.4, 0.0, 0.6]
        >>> blended(column, np.array([0.5, 0.0, 0.5]), 0.0).shares.round(3).tolist()
        [0.4, 0.0, 0.6]
    """
    bin_of, own = column.bin_of, column.shares
    held = np.bincount(bin_of, weights=shares[: len(own)], minlength=column.count)
    if not (held > TINY).any():
        return column
    scale = np.where(held > TINY, column.bin_shares / np.maximum(held, TINY), 0.0)[bin_of]
    expected = np.where(scale > 0, shares[: len(own)] * scale, own)
    spread = (APART * expected) ** 2
    found = expected + (own - expected) * spread / (spread + noise**2 + TINY**2)
    held = np.bincount(bin_of, weights=found, minlength=column.count)
    scale = np.where(held > TINY, column.bin_shares / np.maximum(held, TINY), 0.0)[bin_of]
    return replace(column, shares=np.where(scale > 0, found * scale, own))
