"""How far component tables are from a target, with the gradient written out.

Tables T are ``[K, D]``: K components, the bins of all columns end to end, equal weights. The
distance is

    sum_ab W_ab (T'T / K - P)_ab^2 + sum_a v_a (mean_k T_ka - p_a)^2 (+ products of contrasts),

each weight one over the squared standard error and the number of released cells. With
G = 2 W (T'T / K - P), its gradient is T (G + G') / K for the first sum and 2 v (mean - p) / K for
the second. A fit takes thousands of steps on small tables: this is half the time of automatic
differentiation (``python bench/product_fit.py``), and a test holds it to that gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsynth.models.marginals.product_mixture import ProductTarget, Target

if TYPE_CHECKING:
    from torch import Tensor

_LEAST = 1e-9  # a share below it counts as this one in logarithms


class Distance:
    """The mean squared distance of tables to released counts, each in units of its own noise."""

    def __init__(self, target: Target) -> None:
        """Take the released counts as tensors."""
        import torch

        measured = np.isfinite(target.pair_sd)
        cells = float(measured.sum() + len(target.one))
        weight = np.where(measured, target.pair_sd, np.inf) ** -2.0 / cells
        self._weight = torch.tensor(weight).float()
        self._pairs = torch.tensor(target.pairs).float()
        self._one_weight = torch.tensor(target.one_sd**-2.0 / cells).float()
        self._one = torch.tensor(target.one).float()
        self._products = None
        if target.products is not None:
            self._products = _ProductDistance(target.products, target.sizes, cells)

    def __call__(self, tables: Tensor) -> tuple[float, Tensor]:
        """Return the distance of tables ``[K, D]``, and its gradient, of the same shape."""
        components = len(tables)
        apart = (tables.T @ tables).div_(components).sub_(self._pairs)
        slope = self._weight * apart
        value = (slope * apart).sum()
        gradient = tables @ (slope + slope.T).mul_(2 / components)
        apart = tables.mean(dim=0).sub_(self._one)
        slope = self._one_weight * apart
        value += (slope * apart).sum()
        gradient += slope.mul_(2 / components)
        if self._products is not None:
            value += self._products.add_to(gradient, tables)
        return float(value), gradient


class _ProductDistance:
    """The part of the distance that products of contrasts have."""

    def __init__(self, products: ProductTarget, sizes: tuple[int, ...], cells: float) -> None:
        import torch

        columns = len(sizes)
        scores = np.zeros((len(products.scores), columns))
        place = np.repeat(np.arange(columns), sizes)
        scores[np.arange(len(scores)), place] = products.scores
        means, known = np.zeros((2, columns, columns))
        means[np.triu_indices(columns, 1)] = products.means
        known[np.triu_indices(columns, 1)] = products.sd**-2.0 / cells
        self._scores, self._means, self._weight = (
            torch.tensor(array).float() for array in (scores, means, known)
        )

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
