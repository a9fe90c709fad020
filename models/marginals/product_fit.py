"""Rounds of Adam steps, until a mixture of products is as close to the counts as noise allows.

The relaxed projection of Aydore et al. 2021, arXiv 2103.06641, section 3, and RAP++, here with
mixture components in the place of relaxed rows: post-processing throughout.

How far component tables are from a target, with the gradient written out.

Tables T are ``[K, D]``: K components, the bins of all columns end to end, equal weights. The
distance is

    sum_ab W_ab (T'T / K - P)_ab^2 + sum_a v_a (mean_k T_ka - p_a)^2 (+ products of contrasts),

each weight one over the squared standard error and the number of released cells. With
G = 2 W (T'T / K - P), its gradient is T (G + G') / K for the first sum and 2 v (mean - p) / K for
the second. A fit takes thousands of steps on small tables: this is half the time of automatic
differentiation (``python bench/product_fit.py``), and a test holds it to that gradient.

A wide table has few of its pairs measured, and W is 0 nearly everywhere. T'T is then computed at
the measured cells alone: at 2 000 columns of 4 codes they are one cell in 800.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.models import Progress, silent
from dpsynth.models.marginals.product_mixture import Products, ProductTarget, Target
from dpsynth.models.marginals.projection import SEEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


_LEAST = 1e-9  # a share below it counts as this one in logarithms
SPARSE = 1 / 8  # of all cells: if fewer are measured, they are computed one by one


class Distance:
    """The mean squared distance of tables to released counts, each in units of its own noise."""

    def __init__(self, target: Target) -> None:
        """Take the released counts as tensors."""
        import torch

        measured = np.isfinite(target.pair_sd)
        cells = float(measured.sum() + len(target.one))
        self._apart = (_of_measured if measured.mean() < SPARSE else _of_all)(target, cells)
        self._one_weight = torch.tensor(target.one_sd**-2.0 / cells).float()
        self._one = torch.tensor(target.one).float()
        self._products = None
        if target.products is not None:
            self._products = _ProductDistance(target.products, cells)

    def __call__(self, tables: Tensor) -> tuple[float, Tensor]:
        """Return the distance of tables ``[K, D]``, and its gradient, of the same shape."""
        components = len(tables)
        value, gradient = self._apart(tables)
        apart = tables.mean(dim=0).sub_(self._one)
        slope = self._one_weight * apart
        value += (slope * apart).sum()
        gradient += slope.mul_(2 / components)
        if self._products is not None:
            value += self._products.add_to(gradient, tables)
        return float(value), gradient


def _of_all(target: Target, cells: float) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return what computes the part of pairs from all cells of their square."""
    import torch

    weight = torch.from_numpy(target.pair_sd**-2.0 / cells).float()
    pairs = torch.from_numpy(target.pairs).float()

    def apart_of(tables: Tensor) -> tuple[Tensor, Tensor]:
        components = len(tables)
        apart = (tables.T @ tables).div_(components).sub_(pairs)
        slope = weight * apart
        value = (slope * apart).sum()
        return value, tables @ (slope + slope.T).mul_(2 / components)

    return apart_of


def _of_measured(target: Target, cells: float) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return what computes the same from the measured cells alone."""
    import torch

    width = len(target.one)
    rows, columns = np.nonzero(np.isfinite(target.pair_sd))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=width))])
    weight = torch.from_numpy(target.pair_sd[rows, columns] ** -2.0 / cells).float()
    pairs = torch.from_numpy(target.pairs[rows, columns]).float()
    across = np.argsort(columns, kind="stable")  # the order of the transposed matrix
    ends_across = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=width))])
    order = torch.from_numpy(across)
    places = [torch.from_numpy(some) for some in (ends, columns)]
    places_across = [torch.from_numpy(some) for some in (ends_across, rows[across])]

    def matrix(where: list[Tensor], values: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse", UserWarning)  # of torch: "beta state"
            return torch.sparse_csr_tensor(where[0], where[1], values, (width, width))

    def apart_of(tables: Tensor) -> tuple[Tensor, Tensor]:
        components, along = len(tables), tables.T.contiguous()
        sampled = torch.sparse.sampled_addmm(
            matrix(places, pairs), along, tables, beta=-1.0, alpha=1 / components
        )
        apart = sampled.values()
        slope = weight * apart
        value = (slope * apart).sum()
        gradient = matrix(places, slope) @ along
        gradient += matrix(places_across, slope[order]) @ along
        return value, gradient.T.mul_(2 / components)

    return apart_of


class _ProductDistance:
    """The part of the distance that products of contrasts have."""

    def __init__(self, products: ProductTarget, cells: float) -> None:
        import torch

        arrays = (products.scores, products.means, products.weights / cells)
        self._scores, self._means, self._weight = (torch.tensor(one).float() for one in arrays)

    def add_to(self, gradient: Tensor, tables: Tensor) -> Tensor:
        """Return the distance of the tables' products; add its gradient in place."""
        components = len(tables)
        found = tables @ self._scores
        apart = (found.T @ found).div_(components).sub_(self._means)
        slope = self._weight * apart
        gradient.addmm_(found @ (slope + slope.T), self._scores.T, alpha=2 / components)
        return (slope * apart).sum()


class Information:
    """The mutual information between component and column, in nats, summed over columns."""

    def __init__(self, weights: Tensor) -> None:
        """Take the weight that each bin's column has in a fit, ``[D]``, or one for all."""
        self.weights = weights

    def add_to(self, gradient: Tensor, tables: Tensor) -> None:
        """Add the weighted gradient in place."""
        mean = tables.mean(dim=0, keepdim=True)
        slope = (tables + _LEAST).log_().sub_((mean + _LEAST).log_())
        slope += tables / (tables + _LEAST) - mean / (mean + _LEAST)
        gradient.addcmul_(slope, self.weights, value=1 / len(tables))
