"""Rounds of Adam steps, until a mixture of products is as close to the counts as noise allows.

The relaxed projection of Aydore et al. 2021, arXiv 2103.06641, section 3, and RAP++, here with
mixture components in the place of relaxed rows: post-processing throughout.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.models import Progress, silent
from dpsynth.models.marginals.product_fit.distance import Distance, Information
from dpsynth.models.marginals.product_mixture import Products, Target
from dpsynth.models.marginals.projection import SEEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from dpsynth.models.marginals.released import Released

FITTED = 0.8  # of the standardised loss: rounds end below it
MAX_ROUNDS = 4
BY_CHANCE = math.erfc(SEEN / math.sqrt(2))  # of cells that noise alone moves by more than `SEEN`
CLOSER = 3.0  # how much smaller the error of a missed cell is taken to be, in each round


def fit_products(
    target: Target,
    *,
    components: int,
    steps: int,
    rng: np.random.Generator,
    rate: float = 0.1,
    spread: float = 0.3,
    tie: float | Sequence[float] = 0.0,
    progress: Progress = silent,
    released: Released | None = None,
) -> Products:
    """Fit a mixture with equal weights to a target by Adam, in rounds with a cosine schedule each.

    The loss is the mean squared distance to the released counts, each in units of its own noise: 1
    for the truth, less for a fit that has begun to follow the noise. Rounds go on until it is below
    `FITTED`; a table of many columns takes more of them. It is a function of released counts, so
    the number of rounds costs nothing.

    A mean hides single cells, and a few of them are missed by many times their noise. So after a
    round, a released cell that is missed by more than `SEEN` standard errors aims at what was
    released, moved by one error towards the mixture, and its error is taken to be `CLOSER` times
    smaller from then on. Rounds end when no more cells are missed than noise alone explains.

    Args:
        target: noisy shares with their standard errors.
        components: how many, K.
        steps: of Adam, in a round.
        rng: of the starting point.
        rate: first learning rate, of logits.
        spread: standard deviation of the starting logits around the one-way distribution.
        tie: weight of the mutual information between component and column, in nats, mean over the
            columns: it keeps apart what the counts do not ask to be related. One for all columns,
            or one for each.
        progress: called with the share of steps done, at most `MAX_ROUNDS` rounds of them.
        released: what was counted of pairs, if the target is to be held to it.
    """
    import torch

    width = len(target.one)
    start = np.log(target.one + 1e-6) + spread * rng.standard_normal((components, width))
    logits = torch.tensor(start, dtype=torch.float32)
    distance, columns = Distance(target), ColumnShares(target.sizes, components)
    weights = np.full(components, 1.0 / components)
    ties = np.repeat(np.broadcast_to(tie, len(target.sizes)), target.sizes) / len(target.sizes)
    information = Information(torch.tensor(ties, dtype=torch.float32)) if ties.any() else None
    apart = 0.0
    for part in range(MAX_ROUNDS):
        optimizer = torch.optim.Adam([logits], lr=rate)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * bend(step / steps)
            tables = columns.normalised(logits)
            apart, gradient = distance(tables)
            if information is not None:
                information.add_to(gradient, tables)
            logits.grad = columns.through(tables, gradient)
            optimizer.step()
            progress("mixture", (part * steps + step + 1) / (MAX_ROUNDS * steps))
        held = released is not None and part > 0  # the distance is to other errors by then
        fitted = target.products is None and (held or apart <= FITTED)
        if released is not None:
            law = Products(target.sizes, weights, columns.normalised(logits).numpy())
            target, off = _held(target, released, law)
            fitted &= off <= BY_CHANCE
        if fitted:
            break
        if released is not None:
            distance = Distance(target)
    progress("mixture", 1.0)
    return Products(target.sizes, weights, columns.normalised(logits).numpy())


def bend(part: float) -> float:
    """Return the share of its first rate that Adam has after a part of its steps: a cosine."""
    return 0.05 + 0.475 * (1 + math.cos(math.pi * part))


def _held(target: Target, released: Released, law: Products) -> tuple[Target, float]:
    """Hold a target to the released cells that a mixture misses; say what share of them it does.

    Cells are compared pair by pair: a wide table has few of its pairs measured.
    """
    aims, errors, ends = target.pairs.copy(), target.pair_sd.copy(), released.offsets
    cells = missed = 0
    for ((i, j), table, sigma), apart in zip(
        released.pairs.each(), released.apart(law.pair), strict=True
    ):
        block, off = np.s_[ends[i] : ends[i + 1], ends[j] : ends[j + 1]], np.abs(apart) > SEEN
        aims[block][off] = (table + np.sign(apart) * sigma)[off]
        errors[block][off] = np.minimum(errors[block], sigma)[off] / CLOSER
        cells, missed = cells + off.size, missed + int(off.sum())
    return replace(target, pairs=aims, pair_sd=errors), missed / max(cells, 1)


class ColumnShares:
    """Columns end to end: each one's logits become shares, and slopes of shares those of logits."""

    def __init__(self, sizes: tuple[int, ...], components: int) -> None:
        """Take the number of bins of each column."""
        import torch

        place = np.repeat(np.arange(len(sizes)), sizes)
        self._place = torch.tensor(place).expand(components, -1)
        self._top, self._sums = torch.empty((2, components, len(sizes)))

    def normalised(self, logits: Tensor) -> Tensor:
        """Return the softmax of each column's logits, ``[K, D]``."""
        top = self._top.fill_(-np.inf).scatter_reduce_(1, self._place, logits, "amax")
        shares: Tensor = (logits - top.gather(1, self._place)).exp_()
        return shares.div_(self._of_columns(shares))

    def through(self, shares: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient by logits of what has this gradient by shares, both ``[K, D]``."""
        flow = shares * gradient
        return flow.sub_(shares * self._of_columns(flow))

    def _of_columns(self, values: Tensor) -> Tensor:
        """Return the sum of each value's column beside it, ``[K, D]``."""
        sums: Tensor = self._sums.zero_().scatter_add_(1, self._place, values)
        return sums.gather(1, self._place)
