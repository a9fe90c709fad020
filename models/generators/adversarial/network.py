"""The generator network of `ctgan`: what it adds to a mixture of products, under a condition.

A condition says that one column, drawn uniformly, has one code (Xu et al. 2019, arXiv 1907.00503,
section 4.3). A row comes about in this order: the column j of its condition; a component k of the
mixture and a code c of column j, together from the mixture; a latent vector z; then all other
columns, independently given these, with the logits

    log P_k(x_i) + f_i(k, j, c, z),

and f a network whose last layer starts at zero. So at the start the rows have the law of the
mixture: c with k from the mixture is k from its law given c, and no law of conditions has to be
chosen. Only this generator is trained by automatic differentiation, and it never meets a private
row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.marginals import LEADERS, Products, draw_evenly, even_points, inverse

Ints = npt.NDArray[np.int64]

SPREAD = 0.3  # standard deviation of each part that enters the hidden layer, at the start


class Ask(NamedTuple):
    """What generated rows are asked for: int64 ``[n]``, and latent vectors ``[n, latent]``."""

    component: Tensor
    column: Tensor
    code: Tensor
    latent: Tensor


class GeneratorNetwork(nn.Module):
    """A network of two hidden layers from component, condition and latent vector to all logits."""

    def __init__(
        self,
        products: Products,
        *,
        hidden: int,
        latent: int,
        fixed: int,
        generator: torch.Generator,
    ) -> None:
        """Draw initial weights from ``generator``; the last layer starts at zero.

        Args:
            products: the mixture; its number of components and its columns give the sizes.
            hidden: width of the hidden layers.
            latent: width of the latent vector, at least 1.
            fixed: so many columns, from the first, keep the logits of the mixture.
            generator: of the initial weights.
        """
        super().__init__()
        codes = products.tables.shape[1]
        self.sizes, self.latent = list(products.sizes), latent
        columns = torch.from_numpy(np.repeat(np.arange(len(self.sizes)), self.sizes))
        self.offsets, self.column_of = torch.from_numpy(products.offsets[:-1]), columns
        self.free = (columns >= fixed).float()

        def drawn(inputs: int, spread: float) -> nn.Parameter:
            return nn.Parameter(spread * torch.randn(inputs, hidden, generator=generator))

        self.of_component = drawn(len(products.weights), SPREAD)
        self.of_condition = drawn(codes, SPREAD)
        self.of_latent = drawn(latent, SPREAD)
        self.within = drawn(hidden, hidden**-0.5)
        self.out = nn.Parameter(torch.zeros(hidden, codes))

    def added(self, ask: Ask) -> Tensor:
        """Return what the network adds to the mixture's logits, ``[n, codes]``."""
        condition = self.of_condition[self.offsets[ask.column] + ask.code]
        hidden = self.of_component[ask.component] + condition + ask.latent @ self.of_latent
        hidden = torch.tanh(hidden)
        hidden = hidden + torch.tanh(hidden @ self.within)
        added: Tensor = hidden @ self.out
        return added * self.free

    def laws(self, ask: Ask, products: Products) -> Tensor:
        """Return each row's distributions of all columns, end to end, ``[n, codes]``.

        The condition holds exactly: its column puts all mass on its code.
        """
        tables = torch.from_numpy(products.tables)[ask.component]
        logits = torch.log(tables + 1e-9) + self.added(ask)
        blocks = [torch.softmax(block, 1) for block in torch.split(logits, self.sizes, 1)]
        return self.held(torch.cat(blocks, 1), ask)

    def held(self, laws: Tensor, ask: Ask) -> Tensor:
        """Put all mass of each row's condition column on its code."""
        others = laws * (self.column_of != ask.column[:, None])
        place = self.offsets[ask.column] + ask.code
        return others + torch.zeros_like(laws).scatter_(1, place[:, None], 1.0)

    def ask(
        self, products: Products, rows: int, rng: np.random.Generator, *, even: bool = False
    ) -> Ask:
        """Draw conditions, components and latent vectors for ``rows`` rows.

        Args:
            products: the mixture that components and codes come from.
            rows: how many.
            rng: of the draw.
            even: spread components, columns and codes more evenly than chance.
        """
        width = len(self.sizes)
        column = rng.permutation(rows) % width if even else rng.integers(0, width, rows)
        points = rng.random(rows)
        if even:
            points = (rng.random() + rng.permutation(rows)) / max(rows, 1)
        ends = np.cumsum(products.weights)[None, :]
        component = inverse(ends, np.zeros(rows, dtype=np.int64), points)
        code = np.empty(rows, dtype=np.int64)
        for j, size in enumerate(self.sizes):
            at = np.flatnonzero(column == j)
            tables, components = products.column(j), component[at]
            if even:
                means = (tables @ np.arange(size, dtype=np.float32))[components]
                points = even_points([means], rng)
            else:
                points = rng.random(len(at))
            code[at] = inverse(np.cumsum(tables, axis=1, dtype=np.float64), components, points)
        latent = rng.standard_normal((rows, self.latent), dtype=np.float32)
        return Ask(*map(torch.from_numpy, (component, column, code, latent)))

    def hard(self, laws: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw a binned row of each row of laws, independently: ``[n, columns]`` int64."""
        points = torch.from_numpy(rng.random((len(laws), len(self.sizes)), dtype=np.float32))
        blocks = torch.split(laws, self.sizes, 1)
        return torch.stack(
            [_inverse(block, points[:, j : j + 1]) for j, block in enumerate(blocks)], 1
        )

    @torch.no_grad()
    def draw(
        self, products: Products, rows: int, rng: np.random.Generator, *, even: bool = True
    ) -> Ints:
        """Draw binned rows ``[rows, columns]``.

        Args:
            products: the mixture; may be tilted in the columns that the network leaves as they are.
            rows: how many.
            rng: of the draw.
            even: spread the draws more evenly than chance; see `products.Products.draw`.
        """
        ask = self.ask(products, rows, rng, even=even)
        laws = self.laws(ask, products)
        if not even:
            return self.hard(laws, rng).numpy()
        bins = np.empty((rows, len(self.sizes)), dtype=np.int64)
        leaders = products.leaders(LEADERS)
        for j, block in enumerate(torch.split(laws, self.sizes, 1)):
            bins[:, j] = draw_evenly(block.numpy(), bins[:, list(leaders[j])], rng)
        return rng.permutation(bins)


def _inverse(laws: Tensor, points: Tensor) -> Tensor:
    """Invert the distribution function of each row, ``[n, bins]``, at its point, ``[n, 1]``.

    Where a row has all its mass on one bin, that bin is found at any point.
    """
    return (laws.cumsum(1) <= points).sum(1).clamp_(max=laws.shape[1] - 1)
