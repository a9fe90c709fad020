"""One-way distributions on the finest cells that the noise lets one tell apart.

A column of up to 256 ordered codes is counted code by code. A wider one is counted three times: by
groups of 64 codes, of 8, and code by code. A row enters one cell of each count, so all counts of
all columns are joint histograms of one event, which also counts listed codes by group
(`grouped`). Afterwards, free of charge, the three are made
consistent (Hay, Rastogi, Miklau and Suciu 2010, arXiv 0904.0942, section 4), and the tree is cut
where a cell no longer stands out of the noise, or where its codes differ by no more than noise does
(`heaps`): below that, the points of a leaf share alike.
So an income that is always 0 or 50 000 keeps its heaps, and the tail between stays smooth.
Both ends of a column, where noise hides the cells one by one, are fitted instead, see `tails`. Each
of their codes is a leaf with the rows of the fit; the codes beyond the end share the last one.

A code that the schema does not declare, missing or an added ``other``, has no row unless its count
stands out of the noise, as clearly as noise makes one such code of one table in 200 (`clear_of`):
the schema says that there need be none, and half of the counts of noise alone are above 0. A
declared code keeps what was counted, however rare.

Listed codes, counted one by one and by group: groups keep their rows where codes are hidden.

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
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Lookup, Rows
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.base import BY_GROUP, REPEATS
from dpsynth.models.marginals.heaps import cut_tree
from dpsynth.models.marginals.projection import consistent, known_empty, project
from dpsynth.models.marginals.tails import LEAST, Level, Tails, clear_of, populated, tails_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIGMAS = 5  # a cell is split if it holds so many standard deviations of the noise,
PART = 1 / 400  # and more than this part of all rows
MOST = 1 / 64  # of all rows, in a leaf of several codes that are alike
MISFIT = 3.0  # times the variance of a tail's fit: its true shape is none of those tried
NOTHING = 1e-9  # of the rows: tails that leave less take all


@dataclass(frozen=True)
class AdaptiveCells:
    """A column's distribution.

    Attributes:
        leaf_of: the leaf of each code, ``[size]``; ordered leaves come first.
        ordered: how many leaves are ordered.
        counts: estimated rows in each leaf, ``[leaves]``; may be negative, and -inf for one that
            gets no row.
        within: share of each code in its leaf, ``[size]``; 0 for codes beyond the end of a tail.
        is_tail: whether a leaf is a tail, whose count is a fit and not below 0, ``[leaves]``.
        variances: of the noise in each count, in units of that of one cell, ``[leaves]``.
        parents: the group of each unordered leaf; None if they are in none.
    """

    leaf_of: npt.NDArray[np.uint16]
    ordered: int
    counts: Floats
    within: Floats
    is_tail: npt.NDArray[np.bool_]
    variances: Floats
    parents: Ints | None = None

    @classmethod
    def of(
        cls,
        feature: Feature,
        levels: Sequence[Ints],
        *,
        total: float,
        sigma: float,
        bins: Level | None = None,
        alike: bool = False,
        points: Floats | None = None,
        columns: int = 1,
    ) -> AdaptiveCells:
        """Cut a column into leaves.

        Args:
            feature: the column.
            levels: its noisy counts, by the coarsest level first.
            total: the noisy number of rows.
            sigma: standard deviation of the noise of one count.
            bins: noisy counts of bins, of a later event, for the fit of the tails.
            alike: whether neighbouring codes that differ by no more than noise share their rows.
            points: by which they do, if not by lattice points, ``[cells]``: what grains tell, a
                released fact. A code of 0 has no row.
            columns: of the table.
        """
        widths, cuts = feature.levels, [cells_at(feature, width) for width in feature.levels]
        ordered = [level[:cut].astype(np.float64) for level, cut in zip(levels, cuts, strict=True)]
        unordered = [level[cut:] for level, cut in zip(levels, cuts, strict=True)]
        if feature.parents:
            return cls._in_groups(grouped(unordered, feature.parents), feature)
        loose = np.stack(unordered).mean(0)
        noise = 1.0 / len(unordered)
        nothing = np.isin(np.arange(feature.cells, feature.size), feature.undeclared)
        nothing &= loose <= clear_of(columns) * sigma * noise**0.5
        loose[nothing] = -np.inf
        present = total - float(loose[~nothing].sum())
        points = np.asarray(feature.points, dtype=np.float64) if points is None else points
        some = points > 0
        if not some.all():
            ordered = known_empty(ordered, widths, some)
        tails = tails_of(ordered, widths, rows=present, sigma=sigma, points=points, bins=bins)
        if len(widths) == 1:
            leaf_of, counts = np.arange(feature.cells), ordered[0]
            mass = variances = np.ones(feature.cells)
        else:
            consistent(ordered, widths, some)
            for level, width in zip(ordered, widths, strict=True):
                _take_out(tails, level, width)
            mass = points
            minimum = max(SIGMAS * sigma, PART * total)
            leaf_of, counts, variances = cut_tree(
                ordered,
                widths,
                mass,
                minimum=minimum,
                most=MOST * total,
                sigma=sigma,
                alike=alike,
            )
        found = cls._with_tails(leaf_of, counts, variances, mass, loose, tails, noise)
        return found if some.all() else found._without(~some)

    def _without(self, empty: npt.NDArray[np.bool_]) -> AdaptiveCells:
        """Give codes that have no row no share; leaves of such codes alone join the one before."""
        cells = len(empty)
        within = self.within.copy()
        within[:cells][empty] = 0.0
        leaf_of = self.leaf_of.astype(np.int64)
        whole = np.bincount(leaf_of, weights=within, minlength=len(self.counts))
        within = np.divide(within, whole[leaf_of], out=within, where=whole[leaf_of] > 0)
        kept = np.bincount(leaf_of[:cells][~empty], minlength=len(self.counts)) > 0
        kept[self.ordered :] = True
        place = np.maximum(np.cumsum(kept) - 1, 0)
        return replace(
            self,
            leaf_of=place[leaf_of].astype(np.uint16),
            ordered=int(kept[: self.ordered].sum()),
            counts=self.counts[kept],
            within=within,
            is_tail=self.is_tail[kept],
            variances=self.variances[kept],
        )

    @classmethod
    def _in_groups(cls, counts: Floats, feature: Feature) -> AdaptiveCells:
        """Make each code of a column of listed codes a leaf."""
        ones = np.ones(feature.size)
        places = np.arange(feature.size).astype(np.uint16)
        return cls(places, 0, counts, ones, ones == 0, ones / REPEATS, np.array(feature.parents))

    @classmethod
    def _with_tails(
        cls,
        leaf_of: Ints,
        counts: Floats,
        variances: Floats,
        mass: Floats,
        loose: Floats,
        tails: Tails,
        of_loose: float,
    ) -> AdaptiveCells:
        """Make the codes of each tail leaves, before and after the leaves of the body.

        The variance of a tail is `MISFIT` times that of its fit as a whole, and its codes share it
        as they do the rows. `LEAST` rows more, spread evenly, keep it above 0 for a code without.

        Args:
            leaf_of: the leaf of each ordered code as if there were no tails, ``[cells]``.
            counts: of these leaves.
            variances: of the noise in them.
            mass: by which the codes of a leaf share its rows, ``[cells]``.
            loose: counts of the unordered codes; each is a leaf.
            tails: what was found of them.
            of_loose: variance of the noise in each unordered count.
        """
        lower, upper = tails.rows[: tails.first], tails.rows[tails.last :]
        begin, end = populated(lower[::-1]), populated(upper)
        places = [np.maximum(np.arange(len(lower)) - len(lower) + begin, 0)]
        places += [leaf_of[tails.first : tails.last] + begin]
        places += [np.minimum(np.arange(len(upper)), end - 1) + begin + len(counts)]
        used, leaf_of = np.unique(np.concatenate(places), return_inverse=True)
        low, high = lower[len(lower) - begin :], upper[:end]
        own = np.concatenate([low, counts, high])[used]
        parts = [
            (rows + LEAST / max(len(rows), 1)) / (rows.sum() + LEAST) * MISFIT * noise
            for noise, rows in zip(tails.variances, (low, high), strict=True)
        ]
        noise = np.concatenate([parts[0], variances, parts[1]])[used]
        is_tail = (used < begin) | (used >= begin + len(counts))
        mass = np.where(is_tail[leaf_of], tails.rows, mass)
        whole = np.bincount(leaf_of, weights=mass)[leaf_of]
        within = np.divide(mass, whole, out=np.zeros_like(mass), where=whole > 0)
        last, ones = len(own) + np.arange(len(loose)), np.ones(len(loose))
        return cls(
            np.concatenate([leaf_of, last]).astype(np.uint16),
            len(own),
            np.concatenate([own, loose]),
            np.concatenate([within, ones]),
            np.concatenate([is_tail, ones == 0]),
            np.concatenate([noise, ones * of_loose]),
        )

    @property
    def places(self) -> Floats:
        """Mean code of the rows of each ordered leaf, ``[ordered]``."""
        leaf_of = self.leaf_of[self.leaf_of < self.ordered]
        weights = self.within[: len(leaf_of)] + NOTHING
        sums = np.bincount(leaf_of, weights=weights * np.arange(len(leaf_of)))
        return np.asarray(sums / np.bincount(leaf_of, weights=weights), dtype=np.float64)

    def shares(self, total: float) -> Floats:
        """Return the share of each leaf: non-negative, and sums to 1.

        Tails keep the rows that were fitted; the projection moves the other counts only, since it
        would take most from cells of few rows.
        """
        shares = np.where(self.is_tail, self.counts / total, 0.0)
        left = 1.0 - float(shares.sum())
        moved = ~self.is_tail & np.isfinite(self.counts)
        if left > NOTHING and moved.any():
            shares[moved] = left * project(self.counts[moved], total * left)
        return np.asarray(shares / shares.sum())

    def code_shares(self, total: float) -> Floats:
        """Return the share of each code in the column: non-negative, sums to 1."""
        return self.shares(total)[self.leaf_of] * self.within


def _take_out(tails: Tails, level: Floats, width: int) -> None:
    """Take the rows of the tails out of the counts of a level, in place.

    A cell that lies in a tail as a whole gets no share of what its parent holds.
    """
    starts = np.arange(0, len(tails.rows), width)
    level -= np.add.reduceat(tails.rows, starts)
    level[(starts + width <= tails.first) | (starts >= tails.last)] = -np.inf


def sizes_of(domain: Domain) -> tuple[int, ...]:
    """Return the number of cells of every count of every column."""
    return tuple(
        cells_at(feature, width) + loose_at(feature, width)
        for feature in domain.features
        for width in feature.levels
    )


def levelled(rows: Rows, domain: Domain) -> Rows:
    """Give every count of every column a column of its own: ``[units, rows, counts]``."""
    if all(len(feature.levels) == 1 for feature in domain.features):
        return rows
    coarse = ((j, one, width) for j, one in enumerate(domain.features) for width in one.levels)
    return rows.recoded([Lookup(j, _coarse(feature, width)) for j, feature, width in coarse])


def leaves_of(
    domain: Domain,
    counts: Sequence[Ints],
    *,
    total: float,
    sigma: float,
    bins: Sequence[Level | None] | None = None,
    alike: bool = False,
    points: Sequence[Floats | None] | None = None,
) -> tuple[AdaptiveCells, ...]:
    """Cut every column of a domain into leaves, from the counts of `levelled` codes.

    ``bins`` are noisy counts of each column's bins, of a later event, for the fit of the tails.
    ``alike`` and ``points`` of each column are as in `AdaptiveCells.of`.
    """
    rest, none = iter(counts), [None] * len(domain.features)
    return tuple(
        AdaptiveCells.of(
            feature,
            [next(rest) for _ in feature.levels],
            total=total,
            sigma=sigma,
            bins=level,
            alike=alike,
            points=own,
            columns=len(domain.features),
        )
        for feature, level, own in zip(domain.features, bins or none, points or none, strict=True)
    )


def _coarse(feature: Feature, width: int) -> Codes:
    """Return the cell of each code of a column, ``[size]``."""
    if width == BY_GROUP:
        return np.array(feature.parents, dtype=np.uint16)
    codes = np.arange(feature.size)
    moved = codes - feature.cells + cells_at(feature, width)
    return np.where(codes >= feature.cells, moved, codes // width).astype(np.uint16)


def cells_at(feature: Feature, width: int) -> int:
    """Return how many cells of so many codes the ordered codes of a column make."""
    return 0 if width == BY_GROUP else -(-feature.cells // width)


def loose_at(feature: Feature, width: int) -> int:
    """Return how many cells the unordered codes of a column make: groups, or one each."""
    return max(feature.parents) + 1 if width == BY_GROUP else feature.size - feature.cells


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
