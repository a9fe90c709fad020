"""How often each value of a column is assumed to occur, where only public facts are known.

A schema says which values a column may have, not how often each occurs. The error of a fit depends
on it: noise is added to every cell, so a column that fills all its cells is harder than one that
has nearly all rows in a few. Three assumptions cover the range:

- even: every value of the declared range and every category as often as any other; 20 % missing
  where values may be missing.
- typical: in turn, numbers in a bell around two fifths of the range, or with a long tail from its
  low end; shares of categories as 1 : 1/4 : 1/9 ..., or nine in ten in one; 5 % missing.
- narrow: nearly all numbers in the lowest tenth of the range, nine in ten rows in one category; 1 %
  missing.

Columns are related by one hidden number of each row: a normal score with a correlation of
`LOADINGS` with the score of each column, in turn (a Gaussian copula with one factor; Nelsen, An
Introduction to Copulas, 2006, section 2.5). Nothing here reads a row of anyone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpsynth.models.base import Codes, Domain, Feature

Floats = npt.NDArray[np.float64]

LOADINGS = (0.6, 0.1, 0.4, 0.2)  # correlation of a column's score with the hidden one, in turn
EVEN, TYPICAL, NARROW = "even", "typical", "narrow"
NAMES = (TYPICAL, EVEN, NARROW)
MISSING = {EVEN: 0.2, TYPICAL: 0.05, NARROW: 0.01}
FEW_CELLS = 9  # an ordered column of fewer cells is drawn as categories are


@dataclass(frozen=True)
class Assumption:
    """How often the values of each column occur, and how columns are related.

    Attributes:
        name: one of `NAMES`.
        shares: of the codes of each column, in the domain's order; each sums to 1.
    """

    name: str
    shares: tuple[Floats, ...]

    @classmethod
    def of(cls, name: str, domain: Domain, nullable: tuple[bool, ...]) -> Assumption:
        """Assume shares for the columns of a domain.

        Args:
            name: one of `NAMES`.
            domain: the public facts.
            nullable: whether the last code of each column is that of a missing value.
        """
        shares = []
        for place, (feature, gaps) in enumerate(zip(domain.features, nullable, strict=True)):
            values = _values(name, feature, feature.size - gaps, place)
            lost = MISSING[name] if gaps and len(values) else float(gaps)
            shares.append(np.append((1 - lost) * values, [lost] * gaps))
        return cls(name, tuple(shares))

    def with_shares(self, place: int, shares: Floats) -> Assumption:
        """Return the same with other shares of one column."""
        every = (*self.shares[:place], shares, *self.shares[place + 1 :])
        return Assumption(self.name, every)

    def rows(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw so many rows of codes, ``[rows, columns]``, independently of each other."""
        hidden = rng.standard_normal(count)
        drawn = np.empty((count, len(self.shares)), dtype=np.uint16)
        for place, shares in enumerate(self.shares):
            loading = LOADINGS[place % len(LOADINGS)]
            score = loading * hidden + np.sqrt(1 - loading**2) * rng.standard_normal(count)
            ends = np.cumsum(shares)
            drawn[:, place] = np.searchsorted(ends / ends[-1], ndtr(score), side="right").clip(
                max=len(shares) - 1
            )
        return drawn


def _values(name: str, feature: Feature, values: int, place: int) -> Floats:
    """Return the shares of a column's values, without that of missing ones."""
    if not feature.cells or feature.cells < FEW_CELLS:
        return _categories(NARROW if name == TYPICAL and place % 2 else name, values)
    points = np.asarray(feature.points or (1,) * feature.cells, dtype=np.float64)
    at = (np.cumsum(points) - points / 2) / points.sum()
    if name == EVEN:
        density = np.ones(len(points))
    elif name == NARROW:
        density = np.exp(-at / 0.03)
    elif place % 2:
        density = np.exp(-at / 0.05)
    else:
        density = np.exp(-(((at - 0.4) / 0.1) ** 2) / 2)
    weights = density * points
    rest = np.zeros(values - len(points))
    return np.append(weights / weights.sum(), rest)


def _categories(name: str, values: int) -> Floats:
    ranks = np.arange(1.0, values + 1)
    if name == EVEN:
        weights = np.ones(values)
    elif name == TYPICAL:
        weights = ranks**-2
    else:
        weights = np.where(ranks == 1, 9 * (values - 1) or 1, 1.0)
    return np.asarray(weights / max(weights.sum(), 1e-300))
