"""Listed codes, counted one by one and by group: groups keep their rows where codes are hidden.

A list has hundreds or thousands of codes, most of them rare. Their counts alone would tell little:
the noise of 800 codes adds up to more rows than a chapter has. So a row also enters one cell of the
counts of groups. Both are joint histograms of the event of the one-way counts: a row moves one cell
of each by 1, and each counts as a histogram of its own in the sensitivity of the event.

Afterwards, free of charge, groups and codes are made to add up, each weighed by its precision (Hay,
Rastogi, Miklau and Suciu 2010, arXiv 0904.0942, section 4), and the codes of each group share what
the group has: no code is below zero, and codes that noise hides share what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.projection import project

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def grouped(levels: Sequence[Ints], parents: Sequence[int]) -> Floats:
    """Return counts of codes that add up to those of their groups.

    Args:
        levels: noisy counts of groups, then of codes, once or more, with noise of one scale.
        parents: the group of each code, from 0.

    Returns:
        The rows of each code. A group whose own count is below zero keeps it, evenly shared.

    Example:
        >>> grouped([np.array([90, 12]), np.array([80, 1, 12])], (0, 0, 1)).round(1).tolist()
        [83.0, 4.0, 12.0]
    """
    groups, codes = levels[0].astype(np.float64), np.mean(levels[1:], axis=0)
    noise = 1.0 / (len(levels) - 1)  # of a code, where that of a group is 1
    of = np.asarray(parents)
    number = np.bincount(of, minlength=len(groups))
    spread = noise * number
    sums = np.bincount(of, weights=codes, minlength=len(groups))
    rows = (spread * groups + sums) / (spread + 1.0)
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(number)
    counts = np.empty(len(codes))
    for group, (first, last) in enumerate(zip(ends - number, ends, strict=True)):
        members = order[first:last]
        if rows[group] <= 0 or len(members) == 1:
            counts[members] = rows[group] / max(len(members), 1)
        else:
            counts[members] = rows[group] * project(codes[members], rows[group])
    return counts
