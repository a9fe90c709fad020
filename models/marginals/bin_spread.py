"""Wide bins of an ordered column, cut where one bin holds too much of the column's spread.

Bins of about equal numbers of rows suit a column whose values lie close together. The last bin of a
long tail is different: a stay of 6 to 90 days is one bin of a fifth of the patients. Where in that
bin a patient lies decides the mean of the column, and only the one-way counts tell it, with the
noise of 85 cells.

Pairs of columns tell it better. A bin has a row in each pair of its column, and the sum of that row
is one more noisy count of the bin. A table of 39 columns counts it 38 times. With 8 000 patients at
epsilon 3, all of them together know a bin to 17 patients, be it wide or narrow. So it pays to cut
the last bin into a few: their noisy counts say how far out the tail goes.

**Rule.** A column of n rows has variance v. A bin of m rows, with variance w of their codes around
their own mean, holds m w / (n v) of it (the law of total variance). While a bin holds more than
`PART`, the one that holds most is cut in two, where that takes most from its part (the cut of
k-means with two centres: MacQueen 1967, "Some methods for classification and analysis of
multivariate observations"). Both parts keep at least ``minimum`` rows, which should be two standard
deviations of the noise of one count. A column gains at most `MORE` bins, since each makes all
pairs of its column a little less precise. A normal column of eight equal bins stays as it is: its
outermost bins hold 2 % each.

**Privacy.** The rows of each leaf are estimates from released noisy counts, so the cuts are
post-processing. The pairs that are counted afterwards have the sensitivity of any pair of columns,
whatever the bins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PART = 0.05  # of a column's variance that a bin may hold
MORE = 3  # bins that a column gains, at most


def cut_wide_bins(bin_of: Ints, counts: Floats, places: Floats, *, minimum: float) -> Ints:
    """Cut the bins of an ordered column that hold much of its spread.

    Args:
        bin_of: the bin of each leaf, rising from 0 in steps of 0 or 1, ``[leaves]``.
        counts: rows of each leaf, not negative.
        places: mean code of each leaf, rising.
        minimum: rows of a part.

    Returns:
        The new bin of each leaf.

    Example:
        >>> counts, places = np.array([50.0, 30, 10, 5, 3, 2]), np.arange(6.0)
        >>> cut_wide_bins(np.array([0, 1, 1, 1, 1, 1]), counts, places, minimum=4).tolist()
        [0, 1, 2, 3, 3, 3]
    """
    found = bin_of.copy()
    mass = float(counts.sum())
    if mass <= 0:
        return found
    places = places - float(counts @ places) / mass
    spread = float(counts @ places**2)
    for _ in range(MORE):
        ends = np.concatenate([[0], np.flatnonzero(np.diff(found)) + 1, [len(found)]])
        cuts = [
            _best_cut(counts[low:high], places[low:high], minimum=minimum)
            for low, high in zip(ends[:-1], ends[1:], strict=True)
        ]
        wide = max(range(len(cuts)), key=lambda place: cuts[place][0])
        held, cut = cuts[wide]
        if held <= PART * spread:
            break
        found[ends[wide] + cut :] += 1
    return found


def _best_cut(counts: Floats, places: Floats, *, minimum: float) -> tuple[float, int]:
    """Return the spread of a bin's rows around their mean, and the first leaf of the second part.

    The spread is 0 for a bin that cannot be cut.
    """
    rows, moments = np.cumsum(counts), np.cumsum(counts * places)
    left, right = rows[:-1], rows[-1] - rows[:-1]
    allowed = (left >= minimum) & (right >= minimum) & (left > 0) & (right > 0)
    if not allowed.any():
        return 0.0, 0
    spread = float(counts @ places**2) - moments[-1] ** 2 / rows[-1]
    between = np.full(len(left), -np.inf)
    between[allowed] = (moments[:-1] ** 2)[allowed] / left[allowed]
    between[allowed] += ((moments[-1] - moments[:-1]) ** 2)[allowed] / right[allowed]
    return spread, int(np.argmax(between)) + 1
