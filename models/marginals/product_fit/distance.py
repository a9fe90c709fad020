"""How far component tables are from a target, with the gradient written out.

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

import warnings
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.models.marginals.product_mixture import ProductTarget, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

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
