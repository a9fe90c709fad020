"""Few patients: products of contrasts first, departures next, then the tables that are worth it.

At 10 000 patients, 29 columns and epsilon 1, a cell of a pair gets noise of some 80 patients if all
pairs are counted. Products of a few scores of each column have less noise for what they tell,
however many they are, as a row that is long is shrunk. So three events take the place of the
pairs'. Each follows from what was released before:

1. products of contrasts (`scores`), which give each pair an expected table by a model of them all
   (`factors`) and by what they say beyond it (`expected`);
2. how far each pair departs from it (`departed`);
3. the tables of those pairs that are worth their noise.

What the mixture is fitted to is an average of both, and the products of these tables (`blend`).
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
from dpsynth.models.marginals.contrasts.blend import blended, prior_sd
from dpsynth.models.marginals.contrasts.departed import Departed, distances_of, worthwhile
from dpsynth.models.marginals.contrasts.expected import expected_tables
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
        plan.observer.multiplied(whole, contrasts.whole, of_products, binning)
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
