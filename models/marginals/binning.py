"""The binned columns of a fit: from a cohort's codes to bins, and from drawn bins back to codes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort, Lookup, Rows
from dpsynth.models import Codes, Domain, Law
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.product_mixture import Products
from dpsynth.models.marginals.within_bins import WithinBins, nothing_within

Floats = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]
AnyLaw = TypeVar("AnyLaw", bound=Law)

TRIED = 4_000  # rows by which it is told how many of those in the bins of a condition meet it
ENOUGH = 0.01  # of them, for the others to be thrown away


@dataclass(frozen=True)
class Binning:
    """The bins of all columns of a domain.

    Attributes:
        domain: the columns, the hidden one included.
        columns: their bins, in the same order.
        within: how codes within bins follow other columns; None where each column is on its own.
        grains: how much commoner the values of each round unit of a column are than an even spread
            makes them, ``[columns, units]``; None where they were not measured.
        whole: the columns before they were kept to allowed codes; None if they were not.
    """

    domain: Domain
    columns: tuple[MergedBins, ...]
    within: WithinBins | None = None
    grains: Floats | None = None
    whole: tuple[MergedBins, ...] | None = None

    @property
    def hidden(self) -> int:
        """Number of hidden columns, 0 or 1."""
        return self.domain.hidden

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each column."""
        return tuple(column.count for column in self.columns)

    def row_factors(self) -> Floats | None:
        """By how much a row weighs more than a unit, by bin of the hidden column; None without."""
        return row_factors(self.columns[0]) if self.hidden else None

    def given(
        self, allowed: Mapping[int, Truth], loose: Collection[int] = ()
    ) -> tuple[Binning, dict[int, Floats]]:
        """Keep to allowed codes: bins that draw no others, and how much of each bin that is.

        Where codes within bins follow other columns, a bin is likelier to hold an allowed code in
        some rows than in others. Kept to it, all its rows count the same. Left as it is, it draws
        other codes too, which have to be thrown away, and what is left has the law of the rows that
        meet the condition.

        Args:
            allowed: codes of some columns, by their place in the domain.
            loose: columns whose bins are left as they are, if they follow others; a bin with an
                allowed code is returned as kept.

        Returns:
            The binning, and of the same columns the share of each bin's rows that is kept. A bin
            without rows may still draw any of its codes, if one of them is allowed.
        """
        columns, factors = list(self.columns), {}
        follow = [] if self.within is None else self.within.places.tolist()
        for place, codes in allowed.items():
            column = columns[place]
            kept = np.where(codes, column.shares, 0.0)
            before, after, some = (
                np.bincount(column.bin_of, weights=weights, minlength=column.count)
                for weights in (column.shares, kept, codes)
            )
            if place in follow and place in loose:
                factors[place] = (some > 0).astype(np.float64)
                continue
            part = np.divide(after, before, out=np.ones_like(after), where=before > 0)
            columns[place] = MergedBins(column.bin_of, kept)
            factors[place] = np.where(some > 0, part, 0.0)
        return replace(self, columns=tuple(columns), whole=self.whole or self.columns), factors

    def following(self, products: Products, rng: np.random.Generator) -> Binning:
        """Let codes within bins follow the other columns, as a mixture over the bins says.

        Args:
            products: the mixture, fitted to released counts: this is post-processing.
            rng: of rows that are drawn from it.
        """
        return replace(self, within=WithinBins.of(products, self.domain, self.columns, rng))

    def binned(self, rows: Rows) -> Rows:
        """Give rows the bins of their codes, wherever they lie."""
        return rows.recoded([Lookup(j, column.bin_of) for j, column in enumerate(self.columns)])

    def coarsen(self, cohort: Cohort) -> npt.NDArray[np.uint16]:
        """Map a cohort's codes to bins, ``[units, rows, columns]``."""
        columns = [column.coarsen(cohort.codes[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(columns, axis=-1)

    def refine(
        self, bins: npt.NDArray[np.integer], rng: np.random.Generator, *, even: bool
    ) -> Codes:
        """Turn binned rows into codes ``[rows, columns]`` of the table's columns, in its order."""
        codes = np.column_stack(
            [column.refine(bins[:, j], rng, even=even) for j, column in enumerate(self.columns)]
        )
        if self.within is not None and len(bins):
            columns = self.whole or self.columns
            codes = self.within.refined(
                bins, codes, self.domain, columns, rng, even=even, kept=self.columns
            )
        return codes[:, list(self.domain.drawn)]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Lay the bins of all columns end to end, as arrays of a run."""
        grains = {} if self.grains is None else {"grains": self.grains[list(self.domain.drawn)]}
        return (
            grains
            | {
                "bin_of": np.concatenate([column.bin_of for column in self.columns]),
                "shares": np.concatenate([column.shares for column in self.columns]),
            }
            | (self.within or nothing_within(self.sizes)).arrays(self.sizes)
        )

    @classmethod
    def restore(cls, domain: Domain, arrays: Mapping[str, npt.NDArray[Any]]) -> Binning:
        """Cut what `arrays` laid end to end back into columns."""
        ends = np.cumsum(domain.sizes)[:-1]
        parts = zip(np.split(arrays["bin_of"], ends), np.split(arrays["shares"], ends), strict=True)
        columns = tuple(MergedBins(bin_of, shares) for bin_of, shares in parts)
        within = WithinBins.restore(arrays, [column.count for column in columns])
        grains = arrays.get("grains")
        if grains is not None:
            of_table, grains = grains, np.ones((len(domain.features), grains.shape[1]))
            grains[list(domain.drawn)] = of_table  # the hidden column has none
        return cls(domain, columns, within, grains)


def is_kept(codes: Codes, allowed: Mapping[int, Truth]) -> Truth:
    """Tell which rows of codes hold allowed ones in all columns, by place among those drawn."""
    parts = [some[codes[:, place]] for place, some in allowed.items()]
    return np.logical_and.reduce(parts) if parts else np.ones(len(codes), dtype=bool)


def least_narrowed(
    allowed: Mapping[int, Truth], given: Callable[[Collection[int]], tuple[AnyLaw | None, float]]
) -> tuple[AnyLaw | None, float]:
    """Return a law under a condition that leaves the bins of as many columns as it can.

    At least `ENOUGH` of its rows hold allowed codes alone. Columns in which most do not are
    narrowed first.

    Args:
        allowed: codes of some columns, by their place among those that are drawn.
        given: the law with the bins of some of them left as they are, and the share of its rows.
    """
    loose = sorted(allowed)
    while True:
        law, share = given(loose)
        if law is None or not loose:
            return law, share
        codes = law.sample(TRIED, np.random.default_rng(0), even=False)
        if is_kept(codes, allowed).mean() >= ENOUGH:
            return law, share
        loose.remove(min(loose, key=lambda place: float(allowed[place][codes[:, place]].mean())))


def row_factors(bins: MergedBins) -> Floats:
    """Return by how much each bin of the hidden column weighs more in rows than in units."""
    rows = np.arange(1, len(bins.bin_of) + 1)
    weighed = np.bincount(bins.bin_of, weights=bins.shares * rows, minlength=bins.count)
    return np.asarray(np.maximum(weighed / np.maximum(bins.bin_shares, 1e-12), 1.0))
