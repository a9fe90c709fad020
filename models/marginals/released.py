"""What was released of columns and pairs of columns, and how far a model is from it.

A model is fitted to averages: of one-way counts and pairs, of tables and what is expected of them,
under a prior. Whether it says what was counted is judged against the counts themselves, each in its
own noise. Where a model misses a cell of share m by z = (m - r) / s, with the released share r and
its standard error s, noise alone would make |z| > 3 in .0027 of all cells.

**Privacy.** Counts were released, and the scale of their noise is public: post-processing (Dwork
and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.pairs import Pairs
from dpsynth.models.marginals.projection import SEEN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]

JUDGED = 100_000  # drawn rows by which a model is judged that cannot say its shares
FITNESS = "fitness"  # name of an array of a run
CHECKPOINT = "released."  # begins the names of its arrays


@dataclass(frozen=True)
class Fitness:
    """How a model meets what was counted of pairs of columns.

    Attributes:
        cells: that were counted.
        off: how many of them are missed by more than `SEEN` standard errors.
        furthest: standard errors by which the worst of them is missed.

    Example:
        >>> Fitness.of([np.array([0.5, -4.0]), np.array([2.0])])
        Fitness(cells=3, off=1, furthest=4.0)
    """

    cells: int
    off: int
    furthest: float

    @classmethod
    def of(cls, apart: Iterable[Floats]) -> Self:
        """Sum up by how many standard errors cells are missed, in arrays of any shape."""
        every = np.abs(np.concatenate([np.zeros(0), *(one.ravel() for one in apart)]))
        furthest = round(float(every.max(initial=0.0)), 2)
        return cls(len(every), int((every > SEEN).sum()), furthest)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give it as an array of a run."""
        return {FITNESS: np.array([self.cells, self.off, self.furthest])}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Rebuild it."""
        cells, off, furthest = arrays[FITNESS].tolist()
        return cls(int(cells), int(off), furthest)


@dataclass(frozen=True)
class Released:
    """Shares of bins and of pairs of bins, as they were counted.

    Attributes:
        sizes: bins of each column, together D.
        one: shares of the columns' bins, end to end, ``[D]``.
        pairs: shares of the cells of pairs, with their standard errors.
        units: how many units there are, as it was counted.
        one_sd: standard errors of the shares of bins, ``[D]``; None where they are exact.
    """

    sizes: tuple[int, ...]
    one: Floats
    pairs: Pairs
    units: float = 1.0
    one_sd: Floats | None = None

    @cached_property
    def offsets(self) -> list[int]:
        """First bin of each column, and D."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @cached_property
    def _earlier(self) -> list[list[int]]:
        """For each column, which of the pairs are with columns before it."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for number, (_, j) in enumerate(self.pairs.places):
            found[j].append(number)
        return found

    def shares(self, place: int) -> Floats:
        """Return the shares of a column's bins."""
        return self.one[self.offsets[place] : self.offsets[place + 1]]

    def errors(self, place: int) -> Floats:
        """Return the standard errors of the shares of a column's bins."""
        errors = np.zeros(len(self.one)) if self.one_sd is None else self.one_sd
        return errors[self.offsets[place] : self.offsets[place + 1]]

    def apart(
        self, shares_of: Callable[[int, int], Floats], rows: float = np.inf
    ) -> Iterator[Floats]:
        """Yield by how many standard errors a model misses the cells of each pair.

        Args:
            shares_of: the model's shares of the cells of a pair of columns, ``[bins, bins]``.
            rows: that these were counted in, if they were drawn, whose chance is no misfit.
        """
        for pair, table, sigma in self.pairs.each():
            shares = shares_of(*pair)
            yield np.asarray((shares - table) / np.sqrt(sigma**2 + shares / rows))

    def fitness(self, shares_of: Callable[[int, int], Floats], rows: float = np.inf) -> Fitness:
        """Sum up by how much a model misses the pairs that were counted, as in `apart`."""
        return Fitness.of(self.apart(shares_of, rows))

    def judged(self, draw: Callable[[int, np.random.Generator], Ints]) -> Fitness:
        """Compare rows that a model draws, which cannot say its shares; the same ones each time."""
        return self.of_rows(draw(JUDGED, np.random.default_rng(0)))

    def of_rows(self, rows: Ints) -> Fitness:
        """Compare rows of bins that a model drew, ``[rows, columns]``."""

        def shares(i: int, j: int) -> Floats:
            shape = self.sizes[i], self.sizes[j]
            counts = np.bincount(rows[:, i] * shape[1] + rows[:, j], minlength=shape[0] * shape[1])
            return np.asarray(counts.reshape(shape) / len(rows))

        return self.fitness(shares, len(rows))

    def before(self, place: int) -> tuple[Floats, Floats]:
        """Return the pairs of a column with those before it.

        Returns:
            Shares and standard errors of their cells, ``[bins before, bins]``; the error is
            infinite where nothing was counted.
        """
        begin = self.offsets[place]
        shares = np.zeros((begin, self.sizes[place]))
        sd = np.full_like(shares, np.inf)
        for number in self._earlier[place]:
            i, _ = self.pairs.places[number]
            own = slice(self.offsets[i], self.offsets[i + 1])
            shares[own], sd[own] = self.pairs.tables[number], self.pairs.sigmas[number]
        return shares, sd

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give them for a fit that goes on after it was stopped."""
        found = {
            "one": self.one,
            "places": np.array(self.pairs.places, dtype=np.int64).reshape(-1, 2),
            "cells": np.concatenate([np.zeros(0), *(one.ravel() for one in self.pairs.tables)]),
            "sigmas": np.array(self.pairs.sigmas),
            "units": np.array([self.units]),
            "one_sd": np.zeros(len(self.one)) if self.one_sd is None else self.one_sd,
        }
        return {f"{CHECKPOINT}{name}": array for name, array in found.items()}

    @classmethod
    def restore(
        cls, sizes: Sequence[int], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Released | None:
        """Rebuild them; None if they were not kept."""
        if f"{CHECKPOINT}one" not in arrays:
            return None
        names = ("one", "places", "cells", "sigmas", "units", "one_sd")
        one, places, cells, sigmas, units, sd = (arrays[f"{CHECKPOINT}{name}"] for name in names)
        pairs = [(int(i), int(j)) for i, j in places]
        shapes = [(sizes[i], sizes[j]) for i, j in pairs]
        ends = np.cumsum([0, *(rows * columns for rows, columns in shapes)])
        tables = [
            cells[first:last].reshape(shape)
            for first, last, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
        ]
        known = Pairs(tuple(pairs), tuple(tables), tuple(sigmas.tolist()))
        return cls(tuple(sizes), one, known, float(units[0]), sd)
