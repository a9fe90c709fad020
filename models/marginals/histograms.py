"""Noisy one-way histograms, and what follows from them for free: distributions and bins.

Everything here but the histograms themselves is post-processing: it reads the released noisy
counts and public facts, never a row.

Wide bins of an ordered column, cut where one bin holds too much of the column's spread.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Codes
from dpsynth.models.marginals.adaptive_cells import AdaptiveCells
from dpsynth.models.marginals.even_draws import even_points
from dpsynth.models.marginals.projection import SEEN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def noisy_total(histograms: Sequence[Ints]) -> float:
    """Estimate the number of rows from joint histograms of the same rows.

    Each histogram's sum carries a variance that grows with its number of cells, so the sums are
    averaged with weights 1 / cells. At least 1.
    """
    sums = np.array([histogram.sum() for histogram in histograms], dtype=np.float64)
    weights = np.array([1.0 / len(histogram) for histogram in histograms])
    return float(max(1.0, (sums * weights).sum() / weights.sum()))


@dataclass(frozen=True)
class MergedBins:
    """A coarser coding of one column, and the way back.

    ``bin_of[c]`` is the bin of code c; ``shares[c]`` is the share of code c in the column, used to
    choose a code within a bin.
    """

    bin_of: npt.NDArray[np.uint16]
    shares: Floats

    @property
    def count(self) -> int:
        """Number of bins."""
        return int(self.bin_of.max()) + 1

    @property
    def bin_shares(self) -> Floats:
        """Share of each bin in the column; sums to 1."""
        shares = np.bincount(self.bin_of, weights=self.shares, minlength=self.count)
        return shares.astype(np.float64)

    def coarsen(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint16]:
        """Map codes to bins."""
        bins: npt.NDArray[np.uint16] = self.bin_of[codes]
        return bins

    def refine(
        self, bins: npt.NDArray[np.integer], rng: np.random.Generator, *, even: bool = False
    ) -> Codes:
        """Draw a code within each bin, in proportion to ``shares``; in a bin without, uniformly.

        One cumulative table serves all bins: the codes are laid out bin after bin, and a uniform
        draw inside a bin's stretch of the table finds its code by bisection. With ``even``, the
        draws within a bin are spread more evenly than chance.
        """
        order = np.argsort(self.bin_of, kind="stable")
        mass = self.shares[order]
        mass = mass + np.where(self.bin_shares[self.bin_of[order]] > 0, 0.0, 1e-12)  # uniform
        ends = np.cumsum(mass)
        last = np.searchsorted(self.bin_of[order], np.arange(self.count), side="right") - 1
        high = ends[last]
        low = np.concatenate([[0.0], high[:-1]])
        held = np.flatnonzero(mass > 0)  # rounding must not reach a code without a share
        top = held[np.searchsorted(self.bin_of[order][held], np.arange(self.count), "right") - 1]
        first = np.concatenate([[0], last[:-1] + 1])
        place = first[bins]
        several = np.flatnonzero((last > first)[bins])  # a bin of one code leaves no choice
        if len(several):
            chosen = bins[several]
            points = even_points([chosen], rng) if even else rng.random(len(chosen))
            masses = low[chosen] + points * (high - low)[chosen]
            places = np.searchsorted(ends, masses, side="right")
            place[several] = np.clip(places, first[chosen], top[chosen])
        codes: Codes = order[place].astype(np.uint16)
        return codes


def merge(
    leaves: AdaptiveCells,
    *,
    total: float,
    sigma: float,
    maximum: int,
    pool: float = 0.004,
    importance: Floats | None = None,
    outside: bool = False,
    landmarks: Sequence[int] = (),
) -> MergedBins:
    """Merge a column's leaves into bins that each stand well above the noise.

    Neighbouring leaves of a numeric column are merged until a bin holds at least
    max(total / most, 4 sigma) rows, so that a heaped value makes up most of its bin (a few thin
    leaves before it may join it, and are told apart again by ``shares``). What lies outside such
    heaps may be cut more finely (``outside``). A bin that holds much of the column's spread, such
    as that of a long tail, is then cut (`cut_wide_bins`), into parts of at least
    max(total * pool, 2 sigma) rows. Unordered codes below max(3 sigma, pool * total) rows share one
    bin; those that get no row join the bin that has most. Reads the noisy counts only.

    Args:
        leaves: the column's estimated distribution.
        total: the noisy number of rows.
        sigma: standard deviation of the noise of one count.
        maximum: number of bins that a smooth numeric column is cut into, about.
        pool: share of the rows below which an unordered code is pooled.
        importance: of a row with each ordered code, ``[cells]``, if they differ: bins hold equal
            parts of it, not of the rows, but stand out of the noise all the same.
        outside: whether what lies outside of heaps is cut by its own mass, see `_least`.
        landmarks: ordered codes with which a bin begins, however few rows it has: a bin with codes
            on both sides would mix what is of two kinds. One within a leaf has no effect.
    """
    shares = leaves.shares(total)
    counts, ordered = shares * total, leaves.ordered
    bin_of = np.zeros(len(counts), dtype=np.uint16)
    parts = _parts(leaves, landmarks)
    if importance is None:
        least = max(total / maximum, 4 * sigma)
        if outside:
            least = _least(least, counts[:ordered], total, sigma, pool)
        _merge_cells(counts[:ordered], least, bin_of, parts, floor=4 * sigma)
    else:
        codes = leaves.leaf_of[: len(importance)]
        each = leaves.within[: len(importance)] * importance
        worth = counts[:ordered] * np.bincount(codes, weights=each, minlength=ordered)[:ordered]
        worth = worth * maximum / max(float(worth.sum()), np.finfo(float).tiny)
        clear = counts[:ordered] / (4 * sigma) if sigma > 0 else worth
        _merge_cells(np.minimum(worth, clear), 1.0, bin_of, parts, floor=1.0)
    bins = 0
    if ordered:
        bin_of[:ordered] = cut_wide_bins(
            bin_of[:ordered].astype(np.int64),
            counts[:ordered],
            leaves.places,
            minimum=max(pool * total, 2 * sigma),
        )
        bins = int(bin_of[:ordered].max()) + 1
    rare = max(SEEN * sigma, pool * total)
    loose = np.arange(ordered, len(counts))
    nothing = loose[np.isneginf(leaves.counts[loose])]  # in no bin of its own: it gets no row
    loose = np.setdiff1d(loose, nothing)
    common = loose[counts[loose] >= rare]
    bin_of[common] = bins + np.arange(len(common))
    bins += len(common)
    pooled = loose[counts[loose] < rare]
    if leaves.parents is not None and len(pooled):
        bins = _pool_groups(pooled, leaves.parents[pooled - ordered], counts, rare, bins, bin_of)
        pooled = pooled[bin_of[pooled] == bins]
    bin_of[pooled] = bins if len(pooled) else 0
    some = np.delete(np.arange(len(counts)), nothing)
    bin_of[nothing] = np.bincount(bin_of[some], weights=counts[some]).argmax()
    return MergedBins(bin_of[leaves.leaf_of], shares[leaves.leaf_of] * leaves.within)


def _pool_groups(
    pooled: npt.NDArray[np.int64],
    parents: npt.NDArray[np.int64],
    counts: Floats,
    rare: float,
    bins: int,
    bin_of: npt.NDArray[np.uint16],
) -> int:
    """Give the rare codes of each group a bin, in place; returns the next free bin.

    Rare codes of a group that is rare itself are left for that bin.
    """
    rows = np.bincount(parents, weights=counts[pooled])
    number = np.cumsum(rows >= rare) - 1 + bins
    last = bins + int((rows >= rare).sum())
    bin_of[pooled] = np.where(rows >= rare, number, last)[parents]
    return last


OUTSIDE = 7  # bins that what lies outside of heaps is cut into, about
CLEAR = 1000  # standard deviations of the noise of a count that all rows are, for finer bins


def _least(least: float, counts: Floats, total: float, sigma: float, pool: float) -> float:
    """Return the least rows of a bin of ordered leaves, where heaps have at least ``least``.

    Where most rows have one value, the others would share one or two bins: of 92 % zeros and a tail
    that decides the target, the tail would be one bin. So the rows that are in no heap, R of them,
    are cut into bins of R / `OUTSIDE`, if noise and ``pool`` leave room for it. Where all rows
    are fewer than `CLEAR` standard deviations of the noise, finer bins cost more than they show.
    """
    if total < CLEAR * sigma:
        return least
    outside = float(counts[counts < least].sum())
    return min(least, max(outside / OUTSIDE, 6 * sigma, pool * total))


KINDS = 2  # bins of the codes of one kind, where a column has several kinds


def _parts(leaves: AdaptiveCells, landmarks: Sequence[int]) -> list[slice]:
    """Cut the ordered leaves where codes of another kind begin."""
    leaf_of = leaves.leaf_of.astype(np.int64)
    starts = {int(leaf_of[code]) for code in landmarks if leaf_of[code] != leaf_of[code - 1]}
    ends = sorted({0, leaves.ordered, *starts})
    return [slice(first, last) for first, last in zip(ends[:-1], ends[1:], strict=True)]


def _merge_cells(
    counts: Floats,
    minimum: float,
    bin_of: npt.NDArray[np.uint16],
    parts: Sequence[slice],
    *,
    floor: float,
) -> None:
    """Number ordered cells by bins of at least ``minimum`` rows, each part by itself, in place.

    Of several parts, each is cut into `KINDS` bins at least, if all of them have ``floor`` rows.
    """
    bins = 0
    for part in parts:
        least = minimum
        if len(parts) > 1:
            least = min(minimum, max(float(counts[part].sum()) / KINDS, floor))
        bin_of[part] = bins + _bins_of(counts[part], least)
        bins = int(bin_of[part][-1]) + 1


def _bins_of(counts: Floats, minimum: float) -> Ints:
    """Return the bin of each ordered cell; one bin if there are fewer rows than ``minimum``."""
    bin_of = np.zeros(len(counts), dtype=np.int64)
    current, mass = 0, 0.0
    for cell, count in enumerate(counts):
        if count >= minimum and 0 < mass:  # a heap stands alone: close what came before it
            if mass >= minimum / 2 or current == 0:
                current += 1
            mass = 0.0
        bin_of[cell] = current
        mass += count
        if mass >= minimum:
            current, mass = current + 1, 0.0
    if current and mass < minimum / 2:  # a thin tail joins its neighbour
        bin_of[bin_of == current] = current - 1
    return np.unique(bin_of, return_inverse=True)[1]


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
