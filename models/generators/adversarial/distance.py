"""How far generated rows lie from noisy columns and pairs: it holds against a noisy critic.

The distance is that of `products.fit_products`: squared differences of shares, each in units of its
own standard error, averaged over the measured cells. Its gradient is free: the target is released.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dpsynth.models.generators.adversarial.network import Ask, GeneratorNetwork
from dpsynth.models.marginals import Products, Target

TINY = 1e-9


class MarginalDistance:
    """Standardised squared distance of a generator to a target."""

    def __init__(self, target: Target, products: Products) -> None:
        """Take the target and the mixture that the generator adds to."""
        measured = np.isfinite(target.pair_sd)
        cells = measured.sum() + len(target.one)
        precision = np.where(measured, target.pair_sd, np.inf) ** -2.0 / cells
        self.precision, self.pairs = torch.tensor(precision).float(), torch.tensor(target.pairs)
        self.one_precision = torch.tensor(target.one_sd**-2.0 / cells).float()
        self.one, self.pairs = torch.tensor(target.one).float(), self.pairs.float()
        self.products, self.tables = products, torch.from_numpy(products.tables)
        weighted = self.tables * torch.tensor(products.weights).float()[:, None]
        self.start, self.start_one = weighted.T @ self.tables, weighted.sum(0)

    def of(self, laws: Tensor, ask: Ask, residual: GeneratorNetwork) -> Tensor:
        """Estimate the distance from rows' distributions of all columns, ``[n, codes]``.

        Given what it was asked for, a row's columns are independent, so pairs are mean products
        of its laws. The same rows with the laws of the mixture have a joint distribution that is
        known exactly: it is the control variate, without which few rows would bury the target.
        """
        with torch.no_grad():
            before = residual.held(self.tables[ask.component], ask)
            known = self.start - before.T @ before / len(laws)
            known_one = self.start_one - before.mean(0)
        pairs = known + laws.T @ laws / len(laws) - self.pairs
        one_way = known_one + laws.mean(0) - self.one
        return (self.precision * pairs**2).sum() + (self.one_precision * one_way**2).sum()

    def moved(self, laws: Tensor, ask: Ask, residual: GeneratorNetwork) -> Tensor:
        """Estimate by how many nats a row's law, given what it was asked for, left the mixture's.

        The mean divergence (Kullback and Leibler) of ``laws`` from the mixture's; no less than
        that of the rows' own law from it.
        """
        start = residual.held(self.tables[ask.component], ask)
        nats: Tensor = laws * (torch.log(laws + TINY) - torch.log(start + TINY))
        return nats.sum(1).mean()
