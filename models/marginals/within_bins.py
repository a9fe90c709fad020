"""Codes within a bin follow the other columns of the row, as far as the bins show that they do.

A generator draws bins. If the code within a bin is then drawn by the column's own shares alone, a
patient with the largest weight of her bin is no likelier to have a large waist than one with the
smallest: within bins, all columns are independent. The pairs of bins say more. If weight and waist
rise together from bin to bin, they rise together within bins too.

**Scores.** The code at share u of an ordered column has the score Phi^-1(u), so a bin is an
interval of scores. Scores are jointly normal, with a law that `bin_scores` reads off the mixture.

**Drawing.** Given the bins of a row, each score lies in its own interval. Scores are drawn by Gibbs
sampling: in turn, each given the others and the bins, `SWEEPS` times (Robert 1995, "Simulation of
truncated normal variables", section 3). A column whose bins hold one code each is not drawn: its
bin stands for its score.

**Thresholds.** A bin that a threshold of another column cuts has two parts. A row of
its lower part takes a place among the rows of that part alone, and so does one of the upper part.

**Shares are kept.** Of a score only its place among the rows of its bin is used. Where many rows
are in a bin, the row of the k-th smallest score of n gets the code at share (k - 1/2) / n of the
bin, so each code has the rows that its share says, whatever the scores. Where there are few, and
where rows have to be independent, a score takes the place that it has among rows of the mixture,
which were drawn at the end of the fit (``ranks``).

**Privacy.** All is a function of the mixture and of the shares of codes, which were fitted to
released counts: post-processing (Dwork and Roth 2014, "The Algorithmic Foundations of Differential
Privacy", proposition 2.1). It must not be given rows of patients in the place of the mixture's.

A bin that a threshold of another column cuts: its codes follow the values of that column.

Hypotension may mean a systolic pressure below 100. A bin from 96 to 103 then holds two kinds of
rows: those with it have 96 to 99, the others 100 to 103. Scores within bins (`within_bins`) are
smooth, and would mix them. But the bins on both sides tell: nearly all rows of the bin below have
hypotension, and nearly none of the bin above.

**Rule.** Let D(b) be the distribution of another column among the rows of bin b. If D(b - 1) and
D(b + 1) overlap by at most `OVERLAP`, that column has a threshold within b. A value of it that is
likelier below than above belongs to the lower part of b, which has as many rows as such values have
in b. Of several columns with a threshold in b, the one whose distributions overlap least is taken.
The first and the last ordered bin have no neighbour on one side, and are not cut.

**Privacy.** A function of the mixture, which was fitted to released counts: post-processing (Dwork
and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpsynth.models import Codes, Domain
from dpsynth.models.marginals.bin_scores import (
    END,
    NOTHING,
    Intervals,
    ordered_bins,
    regressions_of,
)
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.product_mixture import Products

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

SWEEPS = 2
RANKED = 20  # rows of a bin from which on their own order decides
PARTED = 3  # kinds of rows of a bin: not cut, or in its lower or upper part
PARTS = 8  # of a bin's rows, between which the places of scores are kept
REHEARSAL = 8_000  # rows of the mixture from which these are read


@dataclass(frozen=True)
class WithinBins:
    """How scores within bins follow from bins and from each other.

    Attributes:
        places: the columns whose codes are drawn so, ``[Z]``.
        of_bins: what each bin of each column, end to end, adds to the expected score, ``[D, Z]``.
        of_scores: what the score of another of these columns adds, ``[Z, Z]``.
        spread: standard deviation of a score that is known from all these, ``[Z]``.
        ranks: for each bin of these columns, end to end, how far into the bin's interval the score
            lies below which 1, 2, ... of `PARTS` parts of its rows are: of a bin that is not cut,
            and of the lower and the upper part of one that is, ``[PARTED, bins, PARTS - 1]``.
        thresholds: which bins other columns cut.
    """

    places: npt.NDArray[np.uint16]
    of_bins: Singles
    of_scores: Singles
    spread: Singles
    ranks: Singles
    thresholds: Thresholds

    @classmethod
    def of(
        cls,
        products: Products,
        domain: Domain,
        columns: Sequence[MergedBins],
        rng: np.random.Generator,
    ) -> WithinBins | None:
        """Read off a mixture how codes within bins follow other columns.

        Args:
            products: the mixture, fitted to released counts.
            domain: the columns, the hidden one included.
            columns: their bins.
            rng: of the rows of the mixture that ranks are read from.

        Returns:
            None where no bin has several ordered codes, or there is no other column.
        """
        found = regressions_of(products, domain, columns)
        if found is None:
            return None
        parts = (found.of_bins, found.of_scores, found.spread, np.empty((PARTED, 0, PARTS - 1)))
        places = found.places.astype(np.uint16)
        thresholds = Thresholds.of(products, domain, columns)
        of_bins, of_scores, spread, ranks = (part.astype(np.float32) for part in parts)
        bare = cls(places, of_bins, of_scores, spread, ranks, thresholds)
        rows = products.draw(REHEARSAL, rng)
        depths = bare._depths(rows, bare._intervals(domain, columns), columns, rng)
        even, of_columns = np.arange(1, PARTS) / PARTS, []
        offsets = products.offsets
        for place, depth in zip(bare.places, depths.T, strict=True):
            count, own = columns[place].count, rows[:, place]
            apart = own + thresholds.sides(rows, int(offsets[place]), own)[0] * count
            there = [depth[apart == each] for each in range(PARTED * count)]
            of_parts = [np.quantile(one, even) if len(one) >= RANKED else even for one in there]
            of_columns.append(np.reshape(of_parts, (PARTED, count, PARTS - 1)))
        return replace(bare, ranks=np.concatenate(of_columns, axis=1).astype(np.float32))

    def refined(
        self,
        bins: npt.NDArray[np.integer],
        codes: Codes,
        domain: Domain,
        columns: Sequence[MergedBins],
        rng: np.random.Generator,
        *,
        even: bool,
        kept: Sequence[MergedBins] | None = None,
    ) -> Codes:
        """Draw the codes within bins of the columns that follow others.

        Args:
            bins: of each row, ``[rows, columns]``.
            codes: of each row, ``[rows, columns]``. Those in bins of several ordered codes, in the
                columns that follow others, may be anything.
            domain: the columns, the hidden one included.
            columns: their bins.
            rng: of the draws.
            even: let the order of rows within a bin decide; otherwise rows are independent.
            kept: the bins with the shares of the codes that may be drawn, if not all.

        Returns:
            The codes of all columns.
        """
        rows, found, begin = bins.astype(np.int64), codes.copy(), 0
        offsets = np.cumsum([0, *(column.count for column in columns)])
        intervals = self._intervals(domain, columns)
        depths = self._depths(rows, intervals, columns, rng)
        if kept is not None and kept is not columns:
            intervals = self._intervals(domain, kept)
        for k, (place, interval) in enumerate(zip(self.places, intervals, strict=True)):
            who = np.flatnonzero(interval.several[rows[:, place]])
            own, end = rows[who, place], begin + columns[place].count
            part, low, high = self.thresholds.sides(rows[who], int(offsets[place]), own)
            ranks = self.ranks[:, begin:end].reshape(-1, PARTS - 1)
            apart = own + part * columns[place].count
            depth = low + (high - low) * _places_of(depths[who, k], apart, ranks, even=even)
            code = np.searchsorted(interval.ends, interval.shares_at(own, depth), side="right") - 1
            found[who, place] = np.clip(code, interval.first[own], interval.last[own])
            begin = end
        return found

    def arrays(self, counts: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """Give all of it as arrays of a run, padded to all columns and bins.

        Which columns have several codes in a bin follows from noisy counts. Shapes of a run follow
        from public facts and the number of bins alone.

        Args:
            counts: bins of each column.
        """
        columns, ends, own = len(counts), np.cumsum(counts), self.places
        drawn, spread = np.zeros(columns, dtype=np.uint8), np.ones(columns, dtype=np.float32)
        of_bins, of_scores = (np.zeros((n, columns), dtype=np.float32) for n in (ends[-1], columns))
        ranks = np.zeros((PARTED, ends[-1], PARTS - 1), dtype=np.float32)
        drawn[own], spread[own], of_bins[:, own] = 1, self.spread, self.of_bins
        of_scores[np.ix_(own, own)] = self.of_scores
        ranks[:, _bins_of(drawn, counts)] = self.ranks
        found = {"drawn": drawn, "of_bins": of_bins, "of_scores": of_scores}
        found |= {"spread": spread, "ranks": ranks}
        return {f"within.{name}": array for name, array in found.items()} | self.thresholds.arrays()

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], counts: Sequence[int]
    ) -> WithinBins | None:
        """Rebuild it; None for a run whose codes within bins follow no other columns."""
        if "within.drawn" not in arrays or not arrays["within.drawn"].any():
            return None
        names = ("drawn", "of_bins", "of_scores", "spread", "ranks")
        drawn, of_bins, of_scores, spread, ranks = (arrays[f"within.{name}"] for name in names)
        own = np.flatnonzero(drawn)
        parts = (of_bins[:, own], of_scores[np.ix_(own, own)], spread[own])
        thresholds = Thresholds.restore(arrays, counts)
        return cls(own.astype(np.uint16), *parts, ranks[:, _bins_of(drawn, counts)], thresholds)

    def _intervals(self, domain: Domain, columns: Sequence[MergedBins]) -> list[Intervals]:
        return [Intervals.of(columns[j], domain.features[j].cells) for j in self.places]

    def _depths(
        self,
        rows: Ints,
        intervals: Sequence[Intervals],
        columns: Sequence[MergedBins],
        rng: np.random.Generator,
    ) -> Floats:
        """Draw how far into the interval of its bin each score lies, 0 to 1, ``[rows, Z]``."""
        expected, begin = np.zeros((len(rows), len(self.places))), 0
        for column, bins in zip(columns, rows.T, strict=True):
            part = self.of_bins[begin : begin + column.count]
            expected += part[bins] if part.any() else 0.0
            begin += column.count
        depths = rng.random(expected.shape)
        own = [interval.at(rows[:, j]) for j, interval in zip(self.places, intervals, strict=True)]
        scores = np.stack(
            [one.score_at(depth) for one, depth in zip(own, depths.T, strict=True)], 1
        )
        for _ in range(SWEEPS):
            for k, one in enumerate(own):
                spread = float(self.spread[k])
                mean = expected[:, k] + scores @ self.of_scores[k]
                low, high = (ndtr((end - mean) / spread) for end in (one.low_score, one.high_score))
                point = low + rng.random(len(rows)) * (high - low)
                drawn = mean + spread * ndtri(np.clip(point, END, 1.0 - END))
                drawn = np.clip(drawn, one.low_score, one.high_score)
                scores[:, k] = np.where(one.ordered, drawn, 0.0)
        return np.stack([one.depth_of(scores[:, k]) for k, one in enumerate(own)], axis=1)


def nothing_within(counts: Sequence[int]) -> WithinBins:
    """Return what draws no code, beside so many bins of each column."""
    none, no_column = np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=np.uint16)
    of_bins = np.zeros((sum(counts), 0), dtype=np.float32)
    ranks = np.zeros((PARTED, 0, PARTS - 1), dtype=np.float32)
    thresholds = Thresholds.none(counts)
    return WithinBins(no_column, of_bins, none, none.ravel(), ranks, thresholds)


def _bins_of(drawn: npt.NDArray[np.uint8], counts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Say which bins, end to end, are of the columns that are drawn."""
    return np.repeat(drawn > 0, counts)


def _among(depths: Floats, bins: Ints, ranks: Singles) -> Floats:
    """Return the share of the rows of the mixture, in the same bin, whose score lies below."""
    edges = np.pad(ranks.astype(np.float64), ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
    edges = np.maximum.accumulate(edges, axis=1)
    flat = (edges + 2.0 * np.arange(len(edges))[:, None]).ravel()
    part = np.searchsorted(flat, depths + 2.0 * bins, side="right") - 1 - bins * edges.shape[1]
    part = np.clip(part, 0, PARTS - 1)
    low, high = edges[bins, part], edges[bins, part + 1]
    within = np.divide(depths - low, high - low, out=np.full(len(depths), 0.5), where=high > low)
    return np.asarray((part + np.clip(within, 0.0, 1.0)) / PARTS)


def _places_of(depths: Floats, bins: Ints, ranks: Singles, *, even: bool) -> Floats:
    """Return at which share of its bin's rows each row has its code.

    Args:
        depths: how far into the interval of its bin the score of each row lies.
        bins: of each row.
        ranks: of all bins of the column.
        even: spread the rows of a bin evenly in the order of their scores, if they are not few.
    """
    if not even:
        return _among(depths, bins, ranks)
    order = np.argsort(bins + np.clip(depths, 0.0, 1.0 - END), kind="stable")
    rows = np.bincount(bins, minlength=len(ranks))
    starts = np.concatenate([[0], np.cumsum(rows)[:-1]])
    own = bins[order]
    found = np.empty(len(bins))
    found[order] = (np.arange(len(bins)) - starts[own] + 0.5) / rows[own]
    few = np.flatnonzero(rows[bins] < RANKED)
    found[few] = _among(depths[few], bins[few], ranks)
    return found


OVERLAP = 0.05  # of the distributions on both sides of a threshold
MOST = 32  # bins of a column that may cut others: shapes of a run follow from public facts
NONE = np.iinfo(np.uint16).max  # in the place of a column


@dataclass(frozen=True)
class Thresholds:
    """Which bins are cut, by which column, and where.

    Attributes:
        partners: of each bin of all columns, end to end, what column cuts it, or `NONE`, ``[D]``.
        below: the share of the rows of each bin in its lower part, ``[D]``.
        lower: which bins of the partner belong to the lower part, ``[D, MOST]``.
    """

    partners: npt.NDArray[np.uint16]
    below: npt.NDArray[np.float32]
    lower: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, products: Products, domain: Domain, columns: Sequence[MergedBins]) -> Thresholds:
        """Find the bins that thresholds of other columns cut.

        Args:
            products: the mixture, fitted to released counts.
            domain: the columns, the hidden one included.
            columns: their bins.
        """
        sizes = [column.count for column in columns]
        found = cls.none(sizes)
        least = np.full(sum(sizes), OVERLAP)
        for place, (feature, column) in enumerate(zip(domain.features, columns, strict=True)):
            last = int(ordered_bins(column, feature.cells).sum())
            if last <= 2:
                continue
            # two bins of share s or more with overlap o make a pair at least 2 s (1 - o) dependent;
            # half of that leaves room for rounding
            needed = (1 - OVERLAP) * float(products.shares[place][:last].min())
            for other in np.flatnonzero(products.dependence[place] >= needed).tolist():
                if other != place and sizes[other] <= MOST:
                    table = products.pair(place, other)[:last]
                    found._cut(products.offsets[place], other, table, least)
        return found

    @classmethod
    def none(cls, sizes: Sequence[int]) -> Thresholds:
        """Cut no bin of columns of so many bins."""
        bins = sum(sizes)
        partners = np.full(bins, NONE, dtype=np.uint16)
        below, lower = np.zeros(bins, dtype=np.float32), np.zeros((bins, MOST), dtype=np.uint8)
        return cls(partners, below, lower)

    def _cut(self, begin: int, other: int, table: Floats, least: Floats) -> None:
        """Cut the bins of a column by another one, in place, where it cuts them more clearly.

        Args:
            begin: first bin of the column, among all.
            other: place of the other column.
            table: shares of its bins and of those of the other one, ``[ordered bins, bins]``.
            least: overlap of the clearest threshold of each bin so far, ``[D]``.
        """
        whole = table.sum(axis=1, keepdims=True)
        rows = table / np.maximum(whole, NOTHING)
        overlaps = np.minimum(rows[:-2], rows[2:]).sum(axis=1)
        held = (whole[:-2, 0] > NOTHING) & (whole[2:, 0] > NOTHING)
        for place in np.flatnonzero(held & (overlaps < least[begin + 1 :][: len(overlaps)])):
            own = begin + 1 + int(place)
            least[own] = overlaps[place]
            lower = rows[place] > rows[place + 2]
            self.partners[own], self.below[own] = other, rows[place + 1][lower].sum()
            self.lower[own] = 0
            self.lower[own, : len(lower)] = lower

    def sides(self, rows: Ints, begin: int, own: Ints) -> tuple[Ints, Floats, Floats]:
        """Say in which part of its bin the code of each row lies.

        Args:
            rows: bins of all columns, ``[rows, columns]``.
            begin: first bin of the column, among all.
            own: bin of each row in the column.

        Returns:
            0 for a row whose bin is not cut, 1 for the lower and 2 for the upper part, and where
            this part begins and ends, as shares of the bin.
        """
        places = begin + own
        partners = self.partners[places]
        is_cut = partners != NONE
        values = rows[np.arange(len(rows)), np.where(is_cut, partners, 0)]
        is_lower = self.lower[places, np.where(is_cut, values, 0)] > 0
        below = self.below[places].astype(np.float64)
        side = np.where(is_cut, np.where(is_lower, 1, 2), 0)
        return side, np.where(side == 2, below, 0.0), np.where(side == 1, below, 1.0)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give them as arrays of a run, whose shapes follow from the numbers of bins alone."""
        return {f"thresholds.{name}": array for name, array in vars(self).items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], sizes: Sequence[int]) -> Thresholds:
        """Rebuild them; none for a run that has none."""
        if "thresholds.partners" not in arrays:
            return cls.none(sizes)
        names = ("partners", "below", "lower")
        return cls(*(arrays[f"thresholds.{name}"] for name in names))
