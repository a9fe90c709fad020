"""The network of a wide table's steps, fitted to the released pairs themselves: post-processing.

Its logits are sums of weights (`marginals.released_weights`); conditions are those of rows of the
mixture, whose drawn columns the network draws anew as it learns. A mixture that has the same pairs
draws a row from the one component that fits it best, which says little of a row that no component
has; a sum of what each column says generalises.

Expected are larger weights between a value and the one before, and weights that change little from
a bin of an ordered column to the next. A pair that departs from independence by more than its
noise, such as the rows to come with what ends a history, is expected to have weights of a part of
that size, since columns before tell much of the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network, Shape
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

ROWS = 40_000  # of the mixture
BATCH = 1_000
STEPS = 1_500
ROUNDS = 3  # of the fit: rows are drawn anew before each
RATE = 0.01
PRIOR = WeightPrior(size=0.1, seen=0.2, near=0.2, own=0.2)
SAME, CROSS = 4.0, 0.5  # of one from a value before to itself, and to another value, beside it


@dataclass(frozen=True)
class Expected:
    """What is expected of the weights of a step table: public facts.

    Attributes:
        given: how many of the first columns are conditions.
        cells: of each column, how many of its codes are ordered.
        sizes: of the weights of some pairs, in units of the others'.
    """

    given: int
    cells: Sequence[int]
    sizes: Mapping[Pair, float]

    @classmethod
    def of(cls, table: StepTable, places: StepPlaces) -> Self:
        """Read it off a step table: most follows from the row before, column by column."""
        sizes = {
            (before, later): SAME if place == other else CROSS
            for place, before in enumerate(places.before)
            for other, later in enumerate(places.values)
        }
        if places.gap is not None:
            sizes |= {(before, places.gap): SAME for before in places.times[1:]}
        return cls(table.drawn, [feature.cells for feature in table.features], sizes)


def fitted_network(
    products: Products,
    target: Target,
    bins: Sequence[MergedBins],
    expected: Expected,
    rng: np.random.Generator,
) -> Network:
    """Fit a log-linear network to released pairs.

    Args:
        products: a mixture, from which conditions are drawn.
        target: shares of columns and pairs, with the noise that they have.
        bins: of each column.
        expected: of the weights.
        rng: of the rows.
    """
    given = expected.given
    network = Network(Shape(products.sizes, 0, given), generator=torch.Generator().manual_seed(0))
    skip, first = network.skip, network.before
    alike = _alike(bins, expected.cells)
    later, mask = alike[first:, first:], skip.mask
    one = torch.tensor(target.one[first:], dtype=torch.float32)
    penalty = mask * _penalty(target, products.offsets, expected)
    inner = torch.zeros_like(mask, requires_grad=True)
    bias = torch.log(one + 1e-6).requires_grad_(True)
    optimizer = torch.optim.Adam([inner, bias], lr=RATE)
    sizes = list(products.sizes[given:])
    rows = products.draw(ROWS, rng)
    for step in range(STEPS):
        if step % -(-STEPS // ROUNDS) == 0:
            if step:
                _set(network, mask * (later @ inner @ alike.T), bias)
                rows[:, given:] = network.draw_after(rows[:, :given], rng)
            shares = mask * _shares(target, rows, products.offsets, given)
            codes = torch.from_numpy(rows + products.offsets[:-1])
        bend = 0.02 + 0.49 * (1 + np.cos(np.pi * step / STEPS))
        optimizer.param_groups[0]["lr"] = RATE * bend
        turn = torch.from_numpy(rng.integers(ROWS, size=BATCH))
        hot = torch.zeros(BATCH, network.codes).scatter_(1, codes[turn], 1.0)
        weights = mask * (later @ inner @ alike.T)
        logits = torch.split(hot @ weights.T + bias, sizes, 1)
        cost = torch.stack([block.logsumexp(dim=1).mean() for block in logits]).sum()
        cost = cost - (shares * weights).sum() - (one * bias).sum()
        cost = cost + 0.5 * (penalty * inner**2).sum()
        optimizer.zero_grad(set_to_none=True)
        cost.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    _set(network, mask * (later @ inner @ alike.T), bias)
    return network


@torch.no_grad()
def _set(network: Network, weights: Tensor, bias: Tensor) -> None:
    network.skip.weight.copy_(weights)
    network.skip.bias.copy_(bias)


def _alike(bins: Sequence[MergedBins], cells: Sequence[int]) -> Tensor:
    """Return a root of the prior correlation of weights along all columns' bins, ``[D, D]``."""
    roots = [
        torch.tensor(PRIOR.root(column, ordered), dtype=torch.float32)
        for column, ordered in zip(bins, cells, strict=True)
    ]
    joined: Tensor = torch.block_diag(*roots)  # type: ignore[no-untyped-call]
    return joined


def _penalty(target: Target, offsets: Ints, expected: Expected) -> Tensor:
    """Return what the square of each weight costs, ``[codes drawn, D]``."""
    found = np.full(target.pair_sd.shape, NEVER)
    for later in range(expected.given, len(target.sizes)):
        for before in range(later):
            block = np.s_[
                offsets[before] : offsets[before + 1], offsets[later] : offsets[later + 1]
            ]
            factor = expected.sizes.get((before, later), 1.0)
            size = PRIOR.size_of(target, offsets, before, later, factor)
            found[block] = penalties(target.pair_sd[block], size)
    return torch.tensor(found[:, offsets[expected.given] :].T.copy(), dtype=torch.float32)


def _shares(target: Target, rows: Ints, offsets: Ints, given: int) -> Tensor:
    """Return the released shares of pairs, ``[codes drawn, D]``; rows before are as in ``rows``."""
    size = int(offsets[-1])
    before = np.bincount((rows + offsets[:-1]).ravel(), minlength=size) / len(rows)
    found = np.zeros((size, size - offsets[given]))
    for later in range(given, len(target.sizes)):
        own = slice(offsets[later] - offsets[given], offsets[later + 1] - offsets[given])
        found[: offsets[later], own] = shares_after(
            target, before[: offsets[later]], offsets, later
        )
    return torch.tensor(found.T.copy(), dtype=torch.float32)
