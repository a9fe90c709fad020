"""When products of contrasts come before tables of pairs, and what share of the budget each gets.

A public function of (population, columns, codes, epsilon), like all settings (`presets`). What it
rests on was measured by bench/few_patients.py; docs/benchmarks.md has the figures.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from dpsynth.models.base import Domain, Feature
from dpsynth.privacy import ChosenHistograms, JointHistograms, PrivacyBudget, Share, gaussian_mu
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.pair_statistics import DEPARTURES, PRODUCTS

PARTS_OF_PRODUCTS = 2**19  # norm of what a unit's products add up to, in whole numbers
PARTS_OF_A_UNIT = 2**16  # in which departures are counted
MAX_PRODUCTS = 2**18  # of the scores of all pairs of columns
ORDERED = 2  # scores of ordered bins: where a value lies, and how far out
MAX_COLUMN_WIDTH = 16  # bins of a column, about
OF_PRODUCTS, OF_DEPARTURES = 0.4, 0.1  # of what the columns leave; tables of pairs have the rest
MANY = 18  # columns, whose pairs would be counted twice
FEWEST_COLUMNS, MOST_COLUMNS = 10, 120  # measured: 10 to 100
CLEAR = 0.12  # noise of all pairs, from which on it pays where pairs are counted twice
NARROW = 0.2  # the same where they are counted once
NOISY = 0.5  # from here on, shares change no more


def noise_of_pairs(domain: Domain, budget: PrivacyBudget) -> float:
    """Return how far a pair is off, in L1 over the number of units, if all pairs are counted.

    About: the whole budget, cells in the place of noise's 0.8 of a standard deviation each.
    """
    widths = [min(feature.size, MAX_COLUMN_WIDTH) for feature in domain.features]
    pairs = len(widths) * (len(widths) - 1) / 2
    if pairs == 0:
        return 0.0
    cells = (sum(widths) ** 2 - sum(width**2 for width in widths)) / 2 / pairs
    return (
        math.sqrt(pairs) * cells / (domain.population * gaussian_mu(budget.epsilon, budget.delta))
    )


def contrasts_first(domain: Domain, budget: PrivacyBudget) -> bool:
    """Say whether a fit asks for products of contrasts first: few patients for many columns."""
    if not FEWEST_COLUMNS <= len(domain.features) <= MOST_COLUMNS:
        return False
    least = CLEAR if len(domain.features) >= MANY else NARROW
    return noise_of_pairs(domain, budget) >= least


def contrast_shares(
    domain: Domain,
    budget: PrivacyBudget,
    one_way: JointHistograms,
    tables: ChosenHistograms,
    training: float,
) -> list[Share]:
    """Divide the budget between columns, products, departures and tables.

    The noisier pairs are, the more goes to columns: where most pairs get no table, nothing else
    tells the margins.

    Args:
        domain: public facts, the hidden column included.
        budget: of the whole fit.
        one_way: the event of the columns.
        tables: that of the tables of pairs.
        training: share of the budget that DP-SGD gets.
    """
    noise = noise_of_pairs(domain, budget) / CLEAR
    noisy = min(1.0, max(0.0, math.log(noise) / math.log(NOISY / CLEAR)))
    columns = 0.25 + 0.25 * noisy
    rest = (1 - columns) * (1 - training)
    pairs = len(domain.features) * (len(domain.features) - 1) // 2
    products = products_of(score_widths(domain.features, MAX_PRODUCTS))

    def event(name: str, most: int, mass: int) -> ChosenHistograms:
        return ChosenHistograms(name, most, domain.max_rows, UNDECIDED, mass)

    return [
        Share(one_way, columns * (1 - training)),
        Share(event(PRODUCTS, products, PARTS_OF_PRODUCTS), rest * OF_PRODUCTS),
        Share(event(DEPARTURES, pairs, PARTS_OF_A_UNIT), rest * OF_DEPARTURES),
        Share(tables, rest * (1 - OF_PRODUCTS - OF_DEPARTURES)),
    ]


def score_widths(features: Sequence[Feature], most: int) -> list[int]:
    """Return how many scores each column may have: public facts.

    A column without an order has one for each of its codes, another has `ORDERED`, and one for each
    code that stands for no value. Where these are too many together, wide columns have fewer.

    Args:
        features: of the columns.
        most: products of scores of different columns, together.

    Example:
        >>> score_widths([Feature("ward", 40, 0), Feature("age", 91, 90)], most=60)
        [20, 3]
    """
    widths = [one.size - one.cells + (ORDERED if one.cells else 0) for one in features]

    def together(cap: int) -> int:
        return products_of([min(width, cap) for width in widths])

    cap = bisect_right(range(1, max(widths) + 1), most, key=together)
    return [min(width, max(cap, 1)) for width in widths]


def products_of(widths: Sequence[int]) -> int:
    """Return how many products the scores of different columns have."""
    return (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
