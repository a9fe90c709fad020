"""Empty ends of an ordered column: cells that hold noise and, as far as one can tell, no rows.

A bound that an office declares is often far beyond what occurs: stays of up to 90 days where hardly
anyone stays 14. Each empty cell still gets noise, and the projection onto non-negative counts keeps
a part of it. Over many cells that part adds up, and the synthetic table then has stays of 60 days
that no patient had. So the cells at both ends that do not stand out of the noise are emptied first.

**The rule.** Let c_1, c_2, ... be the noisy counts from one end inwards, and s the standard
deviation of the noise of each. An empty cell is noise alone, so any w empty cells sum to noise with
standard deviation s sqrt(w).

1. *Where rows begin at the latest.* Take the first run of 1, 2, 4, ... or 64 neighbouring cells
   whose sum is above `RUN` (3) s sqrt(w). Noise alone does this about once in 740 runs. Single
   heaps and stretches of many thin cells are both found in this way.
2. *Where they begin.* The run holds m rows a cell. The tail is the k cells before the end of the
   run for which c_1 + ... + c_k - `SLOPE` m k is smallest. With a slope of 1/2 this is the most
   likely place at which counts step from 0 to m (the change point of a normal mean; Hinkley 1970,
   Biometrika 57, section 2). Columns thin out towards their ends, so a slope of 1/8 loses fewer
   rows.

The rule still loses true tails that are so thin that noise hides them (docs/benchmarks.md has the
figures).

**Privacy.** The function takes the released noisy counts and the public scale of their noise. It is
a fixed function of these, so it is post-processing of a differentially private release, which has
the same guarantee (Dwork and Roth 2014, "The Algorithmic Foundations of Differential Privacy",
proposition 2.1). It must not be given exact counts: whether the outermost cell is empty often
depends on one patient.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RUN = 3.0  # standard deviations of the noise: above, a run of neighbouring cells holds rows
RUNS = (1, 2, 4, 8, 16, 32, 64)  # cells of such a run
SLOPE = 0.125  # part of the run's mean by which a cell must rise, to be taken for populated
CLEAR = 4.0  # rows of a column, in standard deviations of the noise of their sum
MIN_CELLS = 9  # ordered cells of a column; few cells keep little noise


def empty_ends(noisy: npt.ArrayLike, *, sigma: float) -> Flags:
    """Say which cells of an ordered histogram belong to an empty end, ``[cells]``.

    Args:
        noisy: released noisy counts, in the order of the cells.
        sigma: standard deviation of the noise of one count; public. 0 without privacy.

    Returns:
        True for each cell at either end that does not stand out of the noise. All False if the
        column has fewer than `MIN_CELLS` cells, or if no cell stands out at all, or if the noise of
        all cells together is more than a quarter of the rows: then the counts do not tell where the
        column has its rows.

    Example:
        >>> empty_ends([0, 2, -3, 90, 80, 70, 1, -2, 4, 0], sigma=3.0).nonzero()[0].tolist()
        [0, 1, 2, 6, 7, 8, 9]
    """
    counts = np.asarray(noisy, dtype=np.float64)
    if len(counts) < MIN_CELLS or CLEAR * sigma * np.sqrt(len(counts)) > counts.sum():
        return np.zeros(len(counts), dtype=bool)
    return _ends(counts, sigma, low=True, high=True)


def empty_codes(levels: Sequence[Floats], widths: Sequence[int], *, sigma: float) -> Flags:
    """Say which codes of a column that is counted at several levels lie in its empty ends.

    The coarsest cells tell where a tail ends, as noise hides least there. Within the outermost
    coarse cells that stand out, the tail goes on by the next level, but not through all of such a
    cell: it holds rows.

    Args:
        levels: released noisy counts of the ordered cells of each level, the coarsest first.
        widths: codes that a cell of each level spans; each a multiple of the next.
        sigma: standard deviation of the noise of one count; public.

    Returns:
        True for each code in an empty end, ``[codes]``.
    """
    empty = empty_ends(levels[0], sigma=sigma)
    for counts, coarse, width in zip(levels[1:], widths[:-1], widths[1:], strict=True):
        ratio = coarse // width
        inner = np.flatnonzero(~empty)
        empty = np.repeat(empty, ratio)[: len(counts)]
        for cell in {int(inner[0]), int(inner[-1])}:
            part = slice(cell * ratio, (cell + 1) * ratio)
            empty[part] = _ends(counts[part], sigma, low=cell == inner[0], high=cell == inner[-1])
    return empty


def _ends(counts: Floats, sigma: float, *, low: bool, high: bool) -> Flags:
    """Flag the tail at either end; nothing if that would be all cells."""
    first = _tail(counts, sigma) if low else 0
    last = _tail(counts[::-1], sigma) if high else 0
    empty = np.zeros(len(counts), dtype=bool)
    if first + last < len(counts):
        empty[:first] = True
        empty[len(counts) - last :] = True
    return empty


def _tail(counts: Floats, sigma: float) -> int:
    """Return how many cells from the start belong to the tail; all if nothing stands out."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    found: list[tuple[int, float, float]] = []  # end of a run, how far it stands out, mean
    for width in RUNS:
        runs = sums[width:] - sums[:-width]
        above = np.flatnonzero(runs > RUN * sigma * np.sqrt(width))
        if len(above):
            first = runs[above[0]]
            found.append((int(above[0]) + width, -first / np.sqrt(width), first / width))
    if not found:
        return len(counts)
    end, _, mean = min(found)
    return int(np.argmin(sums[:end] - SLOPE * mean * np.arange(end)))
