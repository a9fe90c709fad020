"""Few patients: products of contrasts first, departures next, then the tables that are worth it.

At 10 000 patients, 29 columns and epsilon 1, a cell of a pair gets noise of some 80 patients if all
pairs are counted. Products of a few scores of each column have less noise for what they tell,
however many they are, as a row that is long is shrunk. So three events take the place of the
pairs'. Each follows from what was released before:

1. products of contrasts (`scores`), which give each pair an expected table by a model of them all
   (`factors`) and by what they say beyond it;
2. how far each pair departs from it;
3. the tables of those pairs that are worth their noise.

What the mixture is fitted to is an average of both, and the products of these tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.models.marginals.binning import Binning
from dpsynth.models.marginals.contrasts.factors import Factored, factored
from dpsynth.models.marginals.contrasts.scores import Contrasts, contrasts_of
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.pairs import Pairs
from dpsynth.models.marginals.product_mixture import ProductTarget, Target
from dpsynth.privacy import (
    AnyPlan,
    ChosenHistograms,
    NonPrivatePlan,
    ObservedPlan,
    contrast_products,
    departures,
    exact_contrast_products,
    exact_departures,
    places_of_products,
)
from dpsynth.privacy.pair_statistics import DEPARTURES, PRODUCTS

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy


Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Margins:
    """How precisely the columns' bins are known.

    Attributes:
        variances: of the noise in the mass of each bin, squared parts of a unit, by column.
        total: noisy mass of the cohort.
        mass: parts of a unit.
    """

    variances: Sequence[Floats]
    total: float
    mass: float

    @property
    def units(self) -> float:
        """Noisy number of units."""
        return self.total / self.mass


@dataclass(frozen=True)
class Related:
    """What contrasts and departures released.

    Attributes:
        pairs: the columns of each pair.
        contrasts: scores of the bins of all columns.
        factors: fitted to the mean products of scores.
        sd: standard deviation of a product's noise.
        departed: how far each pair is from what the products make it.
        worth: places of the pairs whose tables are worth their noise.
    """

    pairs: tuple[Pair, ...]
    contrasts: Contrasts
    factors: Factored
    sd: float
    departed: Departed
    worth: tuple[int, ...]

    def tables(self, bins: Sequence[MergedBins]) -> tuple[Floats, ...]:
        """Return the shares that are expected in the cells of each pair."""
        shares = [positive(column.bin_shares) for column in bins]
        return expected_tables(shares, self.contrasts, self.pairs, self.factors, self.sd)


def relate(
    binned: Cohort,
    binning: Binning,
    margins: Margins,
    plan: AnyPlan,
    of_tables: ChosenHistograms,
    entropy: Entropy,
) -> Related:
    """Run the events of products and departures.

    Args:
        binned: the cohort's bins.
        binning: bins of each column, with their released shares.
        margins: how precisely they are known.
        plan: has both events.
        of_tables: the event of the tables, which says what they cost.
        entropy: source of noise.
    """
    bins, sizes, units = binning.columns, binning.sizes, margins.units
    of_products, of_departures = plan.event(PRODUCTS), plan.event(DEPARTURES)
    assert isinstance(of_products, ChosenHistograms)
    assert isinstance(of_departures, ChosenHistograms)
    exact = isinstance(plan, NonPrivatePlan)
    pairs = tuple(combinations(range(len(bins)), 2))
    features, sigma = binning.domain.features, of_products.sigma_for(1.0)
    contrasts = contrasts_of(bins, features, of_products.mass, sigma / units, of_products.most)
    if exact:
        whole = exact_contrast_products(binned, contrasts.whole, of_products)
    else:
        whole = contrast_products(binned, contrasts.whole, of_products, entropy)
    if isinstance(plan, ObservedPlan):
        canaries, others = (
            Cohort(binning.coarsen(side), side.mask) for side in plan.observer.sides
        )
        plan.observer.multiplied(whole, contrasts.whole, of_products, (canaries, others))
    unit = units * contrasts.scale**2
    sd = sigma / unit
    shares = [positive(column.bin_shares) for column in bins]
    products = np.zeros((len(contrasts.columns),) * 2)
    products[places_of_products([scores.shape[1] for scores in contrasts.whole])] = whole / unit
    factors = factored(products + products.T, contrasts, shares, sd, entropy.generator())
    tables = expected_tables(shares, contrasts, pairs, factors, sd)
    expected = [table * units for table in tables]
    if exact:
        sums = exact_departures(binned, sizes, pairs, expected, of_departures)
    else:
        sums = departures(binned, sizes, pairs, expected, of_departures, entropy)
    departed = distances_of(
        sums,
        expected,
        [_drift(table, shares, margins, pair) for table, pair in zip(tables, pairs, strict=True)],
        parts=of_departures.mass,
        sigma=of_departures.sigma_for(1 / math.sqrt(len(pairs))),
    )
    noise = of_tables.sigma_for(1.0) / of_tables.mass
    worth = worthwhile(departed, [table.size for table in tables], noise)
    return Related(pairs, contrasts, factors, sd, departed, tuple(worth[: of_tables.most]))


def _drift(table: Floats, shares: Sequence[Floats], margins: Margins, pair: Pair) -> Floats:
    """Return what the margins' noise adds to the variance of each expected cell, in units^2."""
    own = [
        np.asarray(margins.variances[place] / (margins.mass * shares[place]) ** 2) for place in pair
    ]
    return np.asarray(table**2 * (own[0][:, None] + own[1]))


def positive(shares: Floats) -> Floats:
    """Keep every bin above 0, so that a table can be raked to it."""
    kept = np.maximum(shares, 1e-6)
    return np.asarray(kept / kept.sum())


def target_with(
    related: Related, bins: Sequence[MergedBins], margins: Margins, known: Pairs
) -> Target:
    """Average expected and measured tables; products are a part of the target of their own.

    Args:
        related: what contrasts and departures released.
        bins: of each column, with their shares.
        margins: how precisely these are known.
        known: the tables that were measured.
    """
    measured = {pair: (table, sigma) for pair, table, sigma in known.each()}
    sizes = tuple(column.count for column in bins)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((offsets[-1], offsets[-1]))
    sd = np.full_like(joint, np.inf)
    units, mass, departed = margins.units, margins.mass, related.departed
    tables = related.tables(bins)
    for pair, table, distance in zip(related.pairs, tables, departed.distances, strict=True):
        i, j = pair
        mean = table * units
        own = prior_sd(mean, float(distance), departed.sd, units)
        if pair in measured:
            counts, sigma = measured[pair]
            mean, own = blended(mean, own, counts / mass, sigma / mass)
        block = np.s_[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
        joint[block], sd[block] = mean / units, own / units
    one_way = np.concatenate([column.bin_shares for column in bins])
    one_sd = np.sqrt(np.concatenate(margins.variances)) / margins.total
    scores, column = related.contrasts.matrix, related.contrasts.columns
    upper = column[:, None] < column
    means = upper * (scores.T @ joint @ scores)
    products = ProductTarget(scores, means, upper / related.sd**2)
    return Target(sizes, one_way, one_sd, joint, sd, products)


LEAST_SHARE = 0.02  # of what the model expects, that each cell keeps
RAKES = 12
TINY = 1e-12


def expected_tables(
    shares: Sequence[Floats],
    contrasts: Contrasts,
    pairs: Sequence[Pair],
    factors: Factored,
    sd: float,
) -> tuple[Floats, ...]:
    """Return shares of the cells of each pair, raked to its margins.

    Let T be the table of a factor model, raked, and R = C - g_i' T g_j what the released products C
    of the pair's c products are beyond it. Its least-squares table is
    p_a q_b (g_i S_i^+ R S_j^+ g_j')_ab with S_i = g_i' diag(p) g_i, so T + (1 - c sd^2 / |R|^2)_+
    times that is the estimate: shrunk as far as R may be noise (James and Stein 1961, "Estimation
    with quadratic loss"). Each cell keeps `LEAST` of T.

    Args:
        shares: of each column's bins, above 0.
        contrasts: scores of each column's bins.
        pairs: the columns of each.
        factors: fitted to the products.
        sd: standard deviation of a product's noise.
    """
    rounding = contrasts.scale**-2.0  # what whole scores alone may add to a squared length
    inverses = [
        np.linalg.pinv(scores.T @ (scores * own[:, None]), rcond=rounding, hermitian=True)
        for scores, own in zip(contrasts.values, shares, strict=True)
    ]
    duals = [
        own[:, None] * (scores @ inverse)
        for own, scores, inverse in zip(shares, contrasts.values, inverses, strict=True)
    ]
    ends, tables = np.cumsum([0, *map(len, shares)]), []
    for i, j in pairs:
        table = factors.pair(slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1]))
        table = raked(np.maximum(table, TINY), shares[i], shares[j])
        of_table = contrasts.values[i].T @ table @ contrasts.values[j]
        beyond = factors.products[contrasts.between(i, j)] - of_table
        square = float((beyond**2).sum())
        kept = max(0.0, 1 - beyond.size * sd**2 / max(square, TINY))
        if kept:
            moved = table + kept * (duals[i] @ beyond @ duals[j].T)
            table = raked(np.maximum(moved, LEAST_SHARE * table), shares[i], shares[j])
        tables.append(table)
    return tuple(tables)


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Fit a table of positive cells to both margins by iterative proportional fitting."""
    for _ in range(RAKES):
        table = table * (rows / np.maximum(table.sum(axis=1), TINY))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), TINY))
    return table


SPARSE = 0.7  # expected units of a cell, below which chance is not normal
WORTH = 0.3  # of the error that a table's noise adds to all others, that it must save


@dataclass(frozen=True)
class Departed:
    """Estimated distances in L1 of the pairs from what was expected.

    Attributes:
        distances: of each pair, in units, ``[pairs]``.
        sd: standard deviation of their noise, in units.
    """

    distances: Floats
    sd: float


def distances_of(
    released: npt.NDArray[np.int64],
    expected: Sequence[Floats],
    drift: Sequence[Floats],
    *,
    parts: int,
    sigma: float,
) -> Departed:
    """Take what chance alone gives out of released departures.

    Args:
        released: departures, in parts of a unit.
        expected: units expected in each cell of each pair.
        drift: variance of each of these that the margins' noise gives, in units squared.
        parts: of a unit.
        sigma: of the noise of a departure, in parts.
    """
    chance = np.array([_by_chance(table, own) for table, own in zip(expected, drift, strict=True)])
    sums = released / parts
    squares = np.where(sums > chance, sums**2 - chance**2, 0.0)
    return Departed(np.sqrt(np.maximum(squares, 0.0)), sigma / parts)


def _by_chance(expected: Floats, drift: Floats) -> float:
    """Return the mean L1 distance of sampled counts from what is expected, in units."""
    sampling = np.where(
        expected < SPARSE, 2 * expected * np.exp(-expected), np.sqrt(2 / math.pi * expected)
    )
    return float(np.sqrt(sampling**2 + 2 / math.pi * drift).sum())


def worthwhile(departed: Departed, cells: Sequence[int], noise: float) -> list[int]:
    """Name the pairs whose tables are worth their noise, most of all first.

    Tables of c cells that share one event with weights c^(1/3) are off by sqrt(2 / pi) s C^(3/2)
    together, where C is the sum of c^(2/3) and s the noise of a cell if one table were alone. One
    more table saves its distance and costs the derivative, 1.5 sqrt(2 / pi) s sqrt(C) c^(2/3).

    Args:
        departed: of each pair.
        cells: of each pair.
        noise: s, in units.
    """
    sizes = np.asarray(cells, dtype=np.float64) ** (2 / 3)
    order = np.argsort(-departed.distances / sizes)
    price = 1.5 * WORTH * math.sqrt(2 / math.pi) * noise
    named, together = [], 0.0
    for place in order:
        together += float(sizes[place])
        if departed.distances[place] <= price * math.sqrt(together) * sizes[place]:
            break
        named.append(int(place))
    return sorted(named)


SPREAD = 1.25  # standard deviation over mean absolute deviation
BEYOND = 2.0  # standard deviations of a distance's noise, that it may be
LEAST = 0.005  # of the rows: no pair is known better from one number
FLAT = 0.05  # of the mean cell, in the standard deviation of a rare cell


def prior_sd(expected: Floats, distance: float, noise: float, total: float) -> Floats:
    """Return how far each cell may be from what is expected of it, as a standard deviation.

    Args:
        expected: units in each cell of a pair.
        distance: of the pair from it, in L1, in units.
        noise: standard deviation of this distance's noise.
        total: number of units.
    """
    off = max(distance, BEYOND * noise, LEAST * total)
    cells = expected.size
    shape = np.sqrt(cells * expected / total + FLAT)
    return np.asarray(SPREAD * off / cells * shape)


def blended(expected: Floats, sd: Floats, table: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Average a measured table with its expectation, each cell by precision.

    Returns:
        The average, and its standard deviation, in what both are counted in.
    """
    own, theirs = 1 / np.maximum(sd, 1e-12) ** 2, 1 / max(sigma, 1e-12) ** 2
    mean = (own * expected + theirs * table) / (own + theirs)
    return mean, np.asarray(1 / np.sqrt(own + theirs))
