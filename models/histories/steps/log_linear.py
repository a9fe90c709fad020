"""The network of a wide table's steps, fitted to the released pairs themselves: post-processing.

Its logits are sums of weights (`marginals.released_weights`). A mixture that has the same pairs
draws a row from the one component that fits it best, which says little of a row that no component
has; a sum of what each column says generalises.

What is known before a step is taken from steps of drawn patients, and after a first round the
network draws these itself: from her first row on, each of her rows is known before the next one.
In rows of the mixture what is known goes together less closely than in those of patients (where one
column almost follows from another, by a tenth of all rows), and weights that suit such rows are not
those of patients.

Expected are weights between columns of one row as first rows have them, larger ones between a value
and the one before, and weights that change little from a bin of an ordered column to the next, and
least from a number of rows to the next, but for the last row, which ends a history. A pair that
departs from independence by more than its noise, such as the rows to come with what ends a history,
is expected to have weights of a part of that size, since columns before tell much of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.steps.pair_weights import fit_weights
from dpsynth.models.histories.steps.pairs import Pair, StepPlaces
from dpsynth.models.histories.steps.table import StepTable
from dpsynth.models.marginals import (
    NEVER,
    MergedBins,
    Products,
    Target,
    WeightPrior,
    penalties,
    shares_after,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS = 40_000  # in a round
STEPS = 2_000
ROUNDS = 4  # of the fit: rows are drawn anew before each
RATE = 0.01
PRIOR = WeightPrior(size=0.05, seen=0.5, near=0.2, own=0.2)
BEYOND = 0.25  # in the place of `seen`, where first rows say about what a pair's weights are
TREND = WeightPrior(size=0.05, seen=0.5, near=1.5, own=0.02)
"""Along numbers of rows: few patients have many, and rows change little from one to the next."""
SAME, CROSS = 8.0, 0.5  # of one from a value before to itself, and to another value, beside it


@dataclass(frozen=True)
class Expected:
    """What is expected of the weights of a step table: public facts, and what was released before.

    Attributes:
        given: how many of the first columns are conditions.
        cells: of each column, how many of its codes are ordered.
        numbers: columns of rows, of the index, and last of how many rows remain.
        sizes: of the weights of some pairs, in units of the others'.
        weights: about what they are, ``[codes drawn, D]``: of columns of one row, which first rows
            say.
    """

    given: int
    cells: Sequence[int]
    numbers: Sequence[int]
    sizes: Mapping[Pair, float]
    weights: Floats

    @classmethod
    def of(cls, table: StepTable, places: StepPlaces, weights: Floats) -> Self:
        """Read it off a step table: most follows from the row before, column by column."""
        sizes = {
            (before, later): SAME if place == other else CROSS
            for place, before in enumerate(places.before)
            for other, later in enumerate(places.values)
        }
        if places.gap is not None:
            sizes |= {(before, places.gap): SAME for before in places.times[1:]}
        cells = [feature.cells for feature in table.features]
        return cls(table.drawn, cells, places.numbers, sizes, weights)


def fitted_network(
    products: Products,
    target: Target,
    bins: Sequence[MergedBins],
    expected: Expected,
    drawn: Callable[[Network], Ints],
    rng: np.random.Generator,
) -> Network:
    """Fit a log-linear network to released pairs.

    Args:
        products: a mixture of the steps, from which the first rows are drawn.
        target: shares of columns and pairs, with the noise that they have.
        bins: of each column.
        expected: of the weights.
        drawn: gives steps of patients that a network draws, binned, ``[steps, columns]``; each
            counts as much as in what was released.
        rng: of the rows.
    """
    given = expected.given
    network = Network(Shape(products.sizes, 0, given), generator=torch.Generator().manual_seed(0))
    start = int(products.offsets[given])
    network.start_at(np.split(target.one, products.offsets[1:-1]))
    network.skip.weight.data.copy_(torch.from_numpy(expected.weights))
    one = torch.tensor(target.one[start:], dtype=torch.float32)
    apart = torch.tensor(_apart(target, products.offsets, given), dtype=torch.float32)

    def rows(turn: int) -> Ints:
        found = drawn(network) if turn else np.empty((0, 0), dtype=np.int64)
        return found if len(found) else products.draw(ROWS, rng)

    def wanted(rows: Tensor) -> tuple[Tensor, Tensor]:
        places = (rows + torch.from_numpy(products.offsets[:-1])).flatten()
        before = torch.bincount(places, minlength=network.codes) / len(rows)
        return torch.outer(one, before) + apart, one

    fit_weights(
        network,
        root_of(PRIOR, bins, expected.cells, expected.numbers),
        network.skip.mask * _penalty(target, products.offsets, expected),
        rows,
        wanted,
        rng,
        steps=STEPS,
        rounds=ROUNDS,
        rate=RATE,
    )
    return network


def root_of(
    prior: WeightPrior,
    bins: Sequence[MergedBins],
    cells: Sequence[int],
    numbers: Sequence[int] = (),
) -> Tensor:
    """Return a root of the prior correlation of weights along all columns' bins, ``[D, D]``.

    Args:
        prior: of the weights along other columns than numbers.
        bins: of each column.
        cells: of each column, how many of its codes are ordered.
        numbers: as of `Expected`; none where there are no such columns.
    """
    roots = [
        prior.root(column, ordered)
        if place not in numbers
        else _root_along(column, ordered, ends=place == numbers[-1])
        for place, (column, ordered) in enumerate(zip(bins, cells, strict=True))
    ]
    parts = [torch.tensor(root, dtype=torch.float32) for root in roots]
    joined: Tensor = torch.block_diag(*parts)  # type: ignore[no-untyped-call]
    return joined


def _root_along(column: MergedBins, ordered: int, *, ends: bool) -> Floats:
    """Do so along numbers of rows; with ``ends``, the last row is like no other one."""
    root = TREND.root(column, ordered)
    correlation = root @ root.T
    if ends:
        last = column.bin_of[0]
        correlation[last] = correlation[:, last] = np.eye(column.count)[last]
    return np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)


def _penalty(target: Target, offsets: Ints, expected: Expected) -> Tensor:
    """Return what the square of each weight costs, ``[codes drawn, D]``."""
    found = np.full(target.pair_sd.shape, NEVER)
    for later in range(expected.given, len(target.sizes)):
        for before in range(later):
            block = np.s_[
                offsets[before] : offsets[before + 1], offsets[later] : offsets[later + 1]
            ]
            factor = expected.sizes.get((before, later), 1.0)
            own = slice(*(offsets[later : later + 2] - offsets[expected.given]))
            known = expected.weights[own, block[0]].any()
            prior = replace(PRIOR, seen=BEYOND) if known else PRIOR
            size = prior.size_of(target, offsets, before, later, factor)
            found[block] = penalties(target.pair_sd[block], size)
    return torch.tensor(found[:, offsets[expected.given] :].T.copy(), dtype=torch.float32)


def _apart(target: Target, offsets: Ints, given: int) -> Floats:
    """Return by how much pairs depart from independence, ``[codes drawn, D]``."""
    size = int(offsets[-1])
    none, found = np.zeros(size), np.zeros((size, size - offsets[given]))
    for later in range(given, len(target.sizes)):
        own = slice(offsets[later] - offsets[given], offsets[later + 1] - offsets[given])
        before = none[: offsets[later]]
        found[: offsets[later], own] = shares_after(target, before, offsets, later)
    return found.T.copy()
