"""Pairs of columns: which are measured, with what noise each, and which turn out to be related.

A table of few columns has all its pairs measured once. In one of many columns most pairs have no
relation to speak of, and an even split of the budget would leave little for those that have. So
half of it measures all pairs, and the other half those again that stand out of the noise. The rest
is taken to be independent, which is closer to the truth than their noise: at 100 columns and 20 000
rows that matters more than anything else (docs/benchmarks.md). Which pairs stand out follows from
released counts; nothing is chosen by looking at rows.

What the counts of pairs say of each single column: shares of its bins, and its tails.

A pair of columns counts the bins of both. Its sums over the other column are noisy counts of this
column's bins: a table of standard deviation s and k bins of the other column gives each bin with
standard deviation s sqrt(k). The noise of different pairs is independent, so the sums of all pairs
are averaged with weights 1 / (s^2 k), and the average has variance 1 / sum of the weights. A column
of a table of 39 columns is counted 38 times in this way: at epsilon 3, all of them together know a
bin better than its one-way count does, and a bin of 80 thin cells many times better.

**Shares of bins.** One-way counts and sums of pairs are independent looks at the same rows, so they
are averaged by their precision too, and projected to shares that sum to 1. These shares take the
place of the one-way ones: in what the generator is fitted to, and in the products of columns that
replace the pairs without relation. (Those products would otherwise repeat the one-way noise of a
column many times over, and outweigh its pairs.) The sums of a pair then enter the fit twice, once
by the column and once by the pair itself. That gives them somewhat more weight beside the one-way
counts than their precision: little is lost, since they are the more precise. A one-way share that
the sums of pairs contradict, by more than `SEEN` standard deviations of both, is as uncertain as
that difference says: the bin is in a tail whose shape is none of those that were fitted.

**Tails.** The fit of a tail takes the sums of the bins as one more level (`tails`). This changes
only the shares of the codes within each bin.

**Privacy.** All this is a function of released counts and of the public scale of their noise, so it
is post-processing (Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpsynth.models import Domain
from dpsynth.models.marginals.adaptive_cells import leaves_of
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.projection import SEEN, project
from dpsynth.models.marginals.tails import Level
from dpsynth.privacy import ChosenHistograms

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]

TREND = 2e-4  # how often a pair without a trend is taken to have one
TINY = 1e-12
OF_TARGET = 2.0  # how much more precisely a pair with a target is measured than others
STANDS_OUT = 2.0  # standard deviations of the chi-square distance between noise and no relation


@dataclass(frozen=True)
class Pairs:
    """Noisy joint counts of pairs of binned columns.

    Attributes:
        places: the columns of each.
        tables: their counts, ``[bins, bins]``.
        sigmas: standard deviation of the noise of one count in each.
    """

    places: tuple[Pair, ...]
    tables: tuple[Floats, ...]
    sigmas: tuple[float, ...]

    def each(self) -> Iterator[tuple[Pair, Floats, float]]:
        """Yield the columns of each pair, their counts, and the noise of one count."""
        return zip(self.places, self.tables, self.sigmas, strict=True)

    def related(
        self,
        bins: Sequence[MergedBins],
        total: float,
        *,
        hidden: bool,
        trends: Sequence[Floats] | None = None,
        kept: Callable[[Pair], bool] | None = None,
    ) -> list[int]:
        """Say which pairs depart from the product of their columns by more than noise does.

        The squared departure over sigma^2 is chi-square with as many degrees of freedom as the
        pair has cells where columns are independent. At least one pair is named, and all those of
        the hidden column, by which rows are weighed.

        A trend spreads over all cells of a pair and may hide in their noise, though its sum does
        not: along scores of both columns, that sum over its own noise is standard normal where
        columns are independent (a contrast; Agresti, Categorical Data Analysis, 2013, section 3.4).

        Args:
            bins: of the columns.
            total: number of rows, as released.
            hidden: whether the first column is the number of rows.
            trends: of each column, scores of its bins, ``[scores, bins]``, as `trends_of`; without
                them, trends count as any departure.
            kept: pairs that are named whatever they show; a public fact.
        """
        scores = []
        for (i, j), table, sigma in zip(self.places, self.tables, self.sigmas, strict=True):
            apart = float(((table - _product(bins, i, j, total)) ** 2).sum()) / sigma**2
            score = (apart - table.size) / math.sqrt(2 * table.size)
            if trends is not None and score <= STANDS_OUT:
                contrasts = np.abs(trends[i] @ table @ trends[j].T) / sigma
                needed = -float(ndtri(TREND / 2 / contrasts.size))
                score = max(score, STANDS_OUT + float(contrasts.max()) - needed)
            named_anyway = (hidden and i == 0) or (kept is not None and kept((i, j)))
            scores.append(math.inf if named_anyway else score)
        named = [place for place, score in enumerate(scores) if score > STANDS_OUT]
        return named or [int(np.argmax(scores))] if scores else []

    def over(self, total: float) -> Pairs:
        """Return shares of a total in the place of counts."""
        tables = tuple(table / total for table in self.tables)
        return Pairs(self.places, tables, tuple(sigma / total for sigma in self.sigmas))

    def sharpened(self, again: Sequence[int], finer: Pairs) -> Pairs:
        """Average pairs that were measured again, each count weighed by its precision."""
        tables, sigmas = list(self.tables), list(self.sigmas)
        for place, table, sigma in zip(again, finer.tables, finer.sigmas, strict=True):
            old, new = sigmas[place] ** -2, sigma**-2
            tables[place] = (old * tables[place] + new * table) / (old + new)
            sigmas[place] = (old + new) ** -0.5
        return Pairs(self.places, tuple(tables), tuple(sigmas))

    def others_independent(
        self, related: Sequence[int], bins: Sequence[MergedBins], total: float
    ) -> Pairs:
        """Put the product of their columns in the place of all pairs but those named."""
        related_places = set(related)
        tables = tuple(
            table if place in related_places else _product(bins, *self.places[place], total)
            for place, table in enumerate(self.tables)
        )
        return Pairs(self.places, tables, self.sigmas)


def trends_of(bins: MergedBins, cells: int) -> Floats:
    """Return scores of a column's bins that sum to 0 over its rows, with squares that sum to 1.

    An ordered column has one: the middle of each bin among the rows; a bin of codes without an
    order has 0. A column of categories has one for each, that tells it from all others.

    Args:
        bins: of the column, with their shares.
        cells: how many of its codes are ordered.
    """
    shares = bins.bin_shares
    if cells:
        ordered = np.zeros(bins.count, dtype=bool)
        ordered[np.unique(bins.bin_of[:cells])] = True
        mass = np.where(ordered, shares, 0.0)
        middle = np.cumsum(mass) - mass / 2
        scores = np.where(ordered, middle - mass @ middle / max(mass.sum(), TINY), 0.0)[None]
    else:
        scores = np.eye(bins.count) - shares[:, None]
    lengths = np.sqrt((scores**2).sum(axis=1, keepdims=True))
    return np.asarray(scores / np.maximum(lengths, TINY))


def _product(bins: Sequence[MergedBins], i: int, j: int, total: float) -> Floats:
    return np.outer(bins[i].bin_shares, bins[j].bin_shares) * total


def choose_pairs(
    bins: tuple[MergedBins, ...], units: float, event: ChosenHistograms, *, hidden: bool
) -> list[Pair]:
    """Choose which pairs to measure, from what is known already: at most ``event.most`` of them.

    No cell of a pair can differ from the product of its columns by more than the mass outside the
    commonest bin of either (a constant column has no relation to find). Pairs are taken by that
    bound; those for which it lies below the noise of one cell are left out. With a hidden column,
    its pairs come first.
    """
    varied = [place for place, column in enumerate(bins) if column.count > 1]
    spare = {place: 1.0 - float(bins[place].bin_shares.max()) for place in varied}
    candidates = [(min(spare[i], spare[j]), i, j) for i, j in combinations(varied, 2)]
    floor = math.sqrt(max(1, len(candidates))) / event.mu() / units
    worth = [pair for pair in candidates if pair[0] > floor]
    worth.sort(key=lambda pair: (not hidden or pair[1] != 0, -pair[0]))
    return sorted((i, j) for _, i, j in worth[: event.most])


def pair_noise(
    sizes: tuple[int, ...],
    pairs: Sequence[Pair],
    event: ChosenHistograms,
    weights: Sequence[float] | None = None,
) -> list[float]:
    """Split the event's precision among the pairs: weights as the cube root of their cells.

    A pair of c cells that is measured with standard deviation s is off by about c s in L1; the
    weights w = 1 / s that minimise the sum of c / w under a bound on the sum of w^2 are c^(1/3).
    ``weights`` makes some pairs more precise than others, by public facts.
    """
    roots = np.array([(sizes[i] * sizes[j]) ** (1 / 3) for i, j in pairs])
    roots *= 1.0 if weights is None else np.asarray(weights)
    parts = roots / math.sqrt(float((roots**2).sum()) or 1.0)
    return [event.sigma_for(float(part)) for part in parts]


def weight_of(domain: Domain) -> Callable[[Pair], float]:
    """Say by how much a pair is measured more precisely than others: by what its columns are.

    What a model of the synthetic rows learns of a target, it learns from the target's relations to
    other columns. They are few of all pairs, and mostly of few cells: with 29 columns, one of them
    a target of two codes, all others get 5 % more noise (docs/benchmarks.md).

    Args:
        domain: public facts; its targets are those of the schema.

    Example:
        >>> from dpsynth.models import Domain, Feature
        >>> age, sex = Feature("age", 9, 9), Feature("sex", 2, 0)
        >>> ill = Feature("ill", 2, 0, target=True)
        >>> weight = weight_of(Domain((age, sex, ill), population=1000, max_rows=1))
        >>> weight((0, 1)), weight((1, 2))
        (1.0, 2.0)
    """
    targets = {place for place, feature in enumerate(domain.features) if feature.target}

    def weight(pair: Pair) -> float:
        return 1.0 if targets.isdisjoint(pair) else OF_TARGET

    return weight


Ints = npt.NDArray[np.int64]

EXACT = 1e-12  # rows squared: variances below are none
NOTHING = 1e-9  # share of a bin without rows; its codes keep their shares of it


@dataclass(frozen=True)
class Margin:
    """What all pairs of a column say of its bins.

    Attributes:
        counts: noisy rows of each bin, ``[bins]``.
        variance: of the noise in each of them; infinite if the column is in no pair.
    """

    counts: Floats
    variance: float


def margins_of(bins: Sequence[MergedBins], pairs: Pairs) -> tuple[Margin, ...]:
    """Average the sums of all pairs by column.

    Args:
        bins: of each column.
        pairs: released counts of pairs; none that was computed from one-way counts.
    """
    sums = [np.zeros(column.count) for column in bins]
    weights = [0.0] * len(bins)
    for where, table, sigma in pairs.each():
        for axis, place in enumerate(where):
            weight = 1.0 / max(sigma**2 * table.shape[1 - axis], EXACT)
            sums[place] += weight * table.sum(axis=1 - axis)
            weights[place] += weight
    return tuple(
        Margin(column / weight, 1.0 / weight) if weight else Margin(column, np.inf)
        for column, weight in zip(sums, weights, strict=True)
    )


def bins_with_margins(
    bins: Sequence[MergedBins],
    variances: Sequence[Floats],
    margins: Sequence[Margin],
    *,
    total: float,
) -> tuple[tuple[MergedBins, ...], tuple[Floats, ...]]:
    """Average the shares of bins with what the pairs say; codes keep their shares of their bin.

    Args:
        bins: of each column, with their one-way shares.
        variances: of the noise in the one-way count of each bin, in rows squared, by column.
        margins: of each column.
        total: the noisy number of rows.

    Returns:
        The bins with their new shares, and the variances of these, in rows squared.
    """
    columns, spreads = [], []
    for column, own, margin in zip(bins, variances, margins, strict=True):
        if not np.isfinite(margin.variance):
            columns.append(column)
            spreads.append(own)
            continue
        counts = column.bin_shares * total
        squares = (margin.counts - counts) ** 2
        against = squares > SEEN**2 * (own + margin.variance)
        own = np.where(against, squares - margin.variance, own)
        weight = own / (own + margin.variance) if margin.variance > EXACT else np.ones_like(own)
        counts = weight * margin.counts + (1.0 - weight) * counts
        shares = np.maximum(project(counts, total), NOTHING)
        columns.append(_shared(column, shares / shares.sum(), column.shares))
        spreads.append(weight * margin.variance)
    return tuple(columns), tuple(spreads)


def bins_with_tails(
    domain: Domain,
    bins: Sequence[MergedBins],
    counts: Sequence[Ints],
    margins: Sequence[Margin],
    *,
    total: float,
    sigma: float,
    alike: bool = False,
    points: Sequence[Floats | None] | None = None,
) -> tuple[MergedBins, ...]:
    """Fit the tails to one-way counts and pairs; bins keep their codes and their shares.

    Args:
        domain: the columns.
        bins: of each column.
        counts: released one-way counts, as `leaves_of` takes them.
        margins: of each column.
        total: the noisy number of rows.
        sigma: standard deviation of the noise of a one-way count.
        alike: as the leaves were cut that bins were merged from.
        points: the same.
    """
    levels = [
        _level(feature.cells, column, margin)
        for feature, column, margin in zip(domain.features, bins, margins, strict=True)
    ]
    leaves = leaves_of(
        domain, counts, total=total, sigma=sigma, bins=levels, alike=alike, points=points
    )
    return tuple(
        column if level is None else _shared(column, column.bin_shares, found.code_shares(total))
        for column, level, found in zip(bins, levels, leaves, strict=True)
    )


def _level(cells: int, column: MergedBins, margin: Margin) -> Level | None:
    """Return the counts of the ordered bins; None if there are none."""
    if cells == 0 or not EXACT < margin.variance < np.inf:
        return None
    edges = np.flatnonzero(np.diff(column.bin_of[:cells].astype(np.int64), prepend=-1))
    whole = np.append(edges, cells).astype(np.int64)
    return Level(margin.counts[: len(edges)], whole, margin.variance**0.5)


def _shared(column: MergedBins, of_bins: Floats, of_codes: Floats) -> MergedBins:
    """Give bins new shares, and their codes shares of them; a bin without keeps those it had."""
    held = np.bincount(column.bin_of, weights=of_codes, minlength=column.count)
    whole = np.where(held > 0, held, column.bin_shares)[column.bin_of]
    within = np.where(held[column.bin_of] > 0, of_codes, column.shares)
    within = np.divide(within, whole, out=np.zeros_like(within), where=whole > 0)
    return replace(column, shares=of_bins[column.bin_of] * within)
