"""A mixture of product distributions: what it is fitted to, and how it is sampled evenly.

The model is P(x) = sum_k w_k prod_j P_k(x_j) over K components. It has no order of columns, every
one- and two-way marginal is a matrix product, and it is fitted to released counts
(`product_fit`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.even_draws import LEADERS, draw_evenly

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TARGET = "target."  # begins the names of what a mixture was fitted to, in a checkpoint
_SHARES = ("one", "one_sd", "pairs", "pair_sd")


@dataclass(frozen=True)
class ProductTarget:
    """Mean products of the scores of different columns (`marginals.contrasts`), together K.

    Attributes:
        scores: of the bins of all columns, each in its own scores, ``[D, K]``.
        means: of the products of two columns' scores, ``[K, K]``; upper blocks only.
        weights: one over their squared standard errors; 0 outside the upper blocks.
    """

    scores: Floats
    means: Floats
    weights: Floats


@dataclass(frozen=True)
class Target:
    """What the mixture is fitted to: shares of cells, and how precisely each is known.

    Attributes:
        sizes: bins of each column; together D.
        one: shares of the columns' bins, end to end, ``[D]``.
        one_sd: their standard errors, ``[D]``.
        pairs: joint shares, ``[D, D]``; upper blocks only, zero where nothing was measured.
        pair_sd: standard error of each measured cell, ``[D, D]``; infinite where none is.
        products: of contrasts, where they were released; cells of pairs are then in part expected
            from them, and count as met from the start, so no round of the fit is left out.
    """

    sizes: tuple[int, ...]
    one: Floats
    one_sd: Floats
    pairs: Floats
    pair_sd: Floats
    products: ProductTarget | None = None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the shares of cells with their errors, for a fit that goes on after it was stopped.

        The products of contrasts are left out: only the fit of the mixture uses them.
        """
        shares = {f"{TARGET}{name}": getattr(self, name) for name in _SHARES}
        return {name: np.ascontiguousarray(share) for name, share in shares.items()}

    @classmethod
    def restore(
        cls, sizes: tuple[int, ...], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Target | None:
        """Rebuild it without the products of contrasts; None if it was not kept."""
        if f"{TARGET}one" not in arrays:
            return None
        one, one_sd, pairs, pair_sd = (arrays[f"{TARGET}{name}"] for name in _SHARES)
        return cls(sizes, one, one_sd, pairs, pair_sd)


@dataclass(frozen=True)
class Products:
    """K product distributions with weights.

    Attributes:
        sizes: bins of each column.
        weights: of the components, ``[K]``; sums to 1.
        tables: the components' distributions of all columns, end to end, ``[K, D]``.
    """

    sizes: tuple[int, ...]
    weights: Floats
    tables: npt.NDArray[np.float32]

    @cached_property
    def offsets(self) -> Ints:
        """First place of each column in ``tables``, and D: ``[columns + 1]``."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def column(self, j: int) -> npt.NDArray[np.float32]:
        """Return the components' distributions of column j, ``[K, bins]``."""
        return self.tables[:, self.offsets[j] : self.offsets[j + 1]]

    def pair(self, i: int, j: int) -> Floats:
        """Return the shares of the cells of two columns, ``[bins, bins]``."""
        return np.asarray((self.column(i) * self.weights[:, None]).T @ self.column(j))

    @cached_property
    def shares(self) -> list[Floats]:
        """Give the share of rows with each bin of each column."""
        return np.split(self.weights @ self.tables, self.offsets[1:-1])

    @cached_property
    def dependence(self) -> npt.NDArray[np.float32]:
        """How far each pair of columns is from independent, in L1, ``[columns, columns]``."""
        weighted = self.tables * self.weights[:, None].astype(np.float32)
        joint = weighted.T @ self.tables
        one_way = weighted.sum(axis=0)
        gaps = np.abs(joint - np.outer(one_way, one_way))
        starts = self.offsets[:-1]
        by_column: npt.NDArray[np.float32]
        by_column = np.add.reduceat(np.add.reduceat(gaps, starts, 0), starts, 1)
        return by_column

    def leaders(self, maximum: int) -> tuple[tuple[int, ...], ...]:
        """Give, for each column, the earlier ones it depends on most, strongest first."""
        return tuple(
            tuple(sorted(range(j), key=lambda i: -self.dependence[i, j])[:maximum])
            for j in range(len(self.sizes))
        )

    def reordered(self, order: Sequence[int]) -> Products:
        """Return the same law with its columns in another order, given by their places."""
        places = [np.arange(*self.offsets[j : j + 2]) for j in order]
        sizes = tuple(self.sizes[j] for j in order)
        return Products(sizes, self.weights, self.tables[:, np.concatenate(places)])

    def tilted(self, column: int, factors: npt.ArrayLike) -> Products:
        """Reweigh rows by a factor of one column's bin; normalised."""
        scaled = self.column(column) * np.asarray(factors, dtype=np.float32)
        mass = scaled.sum(axis=1)
        tables = self.tables.copy()
        tables[:, self.offsets[column] : self.offsets[column + 1]] = scaled / mass[:, None]
        weights = self.weights * mass
        return Products(self.sizes, weights / weights.sum(), tables)

    def given(self, factors: Mapping[int, Floats]) -> tuple[Products | None, float]:
        """Return the law of rows under a condition, None if it cannot be met, and its probability.

        A mixture of products again: components weigh by what is left of their columns, too.

        Args:
            factors: of the bins of some columns, 0 to 1: how likely each meets the condition.

        Example:
            >>> tables = np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
            >>> law, share = Products((2,), np.array([0.5, 0.5]), tables).given({0: [0.0, 1.0]})
            >>> round(share, 2), law.weights.round(2).tolist()
            (0.45, [0.11, 0.89])
        """
        weights, tables = self.weights.astype(np.float64), self.tables.copy()
        for column, factor in factors.items():
            scaled = self.column(column) * np.asarray(factor, dtype=np.float32)
            mass = scaled.sum(axis=1)
            weights = weights * mass
            own = np.s_[self.offsets[column] : self.offsets[column + 1]]
            tables[:, own] = scaled / np.where(mass > 0, mass, 1.0)[:, None]
        share, kept = float(weights.sum()), weights > 0
        if not kept.any():
            return None, 0.0
        return Products(self.sizes, weights[kept] / share, tables[kept]), share

    def draw(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Ints:
        """Draw binned rows ``[rows, columns]``, in random order.

        With ``even``, the sample is spread more evenly than chance: components get their expected
        numbers of rows, and columns are drawn as in `even_draws`, led by those before that they
        depend on most. Every row still has the law of the mixture, but rows are not independent.
        """
        component = self._components(rows, rng, even)
        leaders = self.leaders(LEADERS) if even else ()
        bins = np.empty((rows, len(self.sizes)), dtype=np.int64)
        for j in range(len(self.sizes)):
            tables = self.column(j)
            if even:
                bins[:, j] = draw_evenly(
                    tables.take(component, axis=0), bins[:, list(leaders[j])], rng
                )
            else:
                ends = np.cumsum(tables, axis=1, dtype=np.float64)
                bins[:, j] = inverse(ends, component, rng.random(rows))
        return rng.permutation(bins) if even else bins

    def _components(self, rows: int, rng: np.random.Generator, even: bool) -> Ints:
        if not even:
            return rng.choice(len(self.weights), size=rows, p=self.weights)
        ends = np.cumsum(self.weights)
        points = (rng.random() + np.arange(rows)) / rows * ends[-1]
        components = np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)
        return np.asarray(rng.permutation(components))


def inverse(ends: Floats, component: Ints, points: Floats) -> Ints:
    """Invert distribution functions: ``ends`` are cumulative shares ``[K, bins]``.

    One search serves all rows: component k's table is laid out on [k, k + 1).
    """
    shares = ends / ends[:, -1:]
    size = shares.shape[1]
    flat = (shares + np.arange(len(shares))[:, None]).ravel()
    place = np.searchsorted(flat, component + points, side="right") - component * size
    bins: Ints = np.clip(place, 0, size - 1)
    return bins
