"""Weights of products of two columns, after a noisy score: free of charge.

As for sums of columns (`scoring`), one step of Fisher scoring with a prior: rows that are drawn get
as much more of each product beside each number of rows as the score says. What sums say of the
numbers stays as it was learned: their weights move along, so that each column has the same joint
law with the numbers as before. Few of many products matter, so each has a prior of its own: as wide
as a part of what its score says beyond noise, where it says more than chance would.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import chi2
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network, bias_shift
from dpsynth.models.histories.networks.score import Score
from dpsynth.models.histories.networks.scoring import NoisyScore
from dpsynth.models.histories.persons.crosses import Crosses

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIZE, SEEN = 0.01, 0.3
"""Standard deviation of a weight, at least; and of the size that its own score says, if that is
more."""
CHANCE = 0.1  # that noise alone would make a score as large, below which it says something
STEPS = 60
ROWS = 20_000  # that are read, at most
LOOSE = 1e-6  # cost of the square of what the sums move along: only that it is determined


def learn_crosses(
    network: Network, crosses: Crosses, score: Score, noisy: NoisyScore, rows: Ints
) -> None:
    """Set the weights of products as the noisy score says, and balance the sums.

    Args:
        network: after its sums were learned; changed in place.
        crosses: whose weights are zero; changed in place.
        score: of both, as they were before.
        noisy: the score.
        rows: that the network draws by now, in random order, ``[rows, columns]``.
    """
    rows = rows[:ROWS]
    numbers, width = len(crosses.weight), crosses.axes.shape[1]
    sizes = network.bins[crosses.before(network) :]
    with torch.no_grad():
        hot = network.one_hot(torch.from_numpy(rows))
        known, products = hot[:, :width], crosses.of_rows(hot)
        start = network.logits(hot)[:, -numbers:]
        now = _shares(start, sizes)
        then = _shares(score.network.logits(hot)[:, -numbers:], sizes)
        alone, sums = now.mean(dim=0), now.T @ known / len(rows)
        more = torch.from_numpy(noisy.together).float()
        wanted = then.T @ products / len(rows) + more
        penalty = torch.from_numpy(_penalty(noisy, float((now * (1 - now)).mean()))).float()
    weights = torch.zeros_like(wanted, requires_grad=True)
    along = torch.zeros_like(sums, requires_grad=True)
    bias = torch.zeros_like(alone, requires_grad=True)
    moved = [weights, along, bias]
    search = torch.optim.LBFGS(moved, max_iter=STEPS, line_search_fn="strong_wolfe")

    def cost() -> Tensor:
        search.zero_grad()
        logits = start + products @ weights.T + known @ along.T + bias
        blocks = torch.split(logits, sizes, 1)
        total = torch.stack([block.logsumexp(dim=1).mean() for block in blocks]).sum()
        total = total - (wanted * weights).sum() - (sums * along).sum() - (alone * bias).sum()
        total = total + 0.5 * ((penalty * weights**2).sum() + LOOSE * (along**2).sum())
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(cost)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        logits = start + products @ weights.T + known @ along.T + bias
        pairs = zip(torch.split(logits, sizes, 1), torch.split(alone, sizes), strict=True)
        bias += torch.cat([bias_shift(block, aim.double().numpy()) for block, aim in pairs])
        crosses.weight.copy_(weights)
        network.skip.weight[-numbers:, :width] += along
        network.skip.bias[-numbers:] += bias


def _shares(logits: Tensor, sizes: list[int]) -> Tensor:
    """Return the probability of each bin, column by column, ``[rows, bins]``."""
    return torch.cat([block.softmax(dim=1) for block in torch.split(logits, sizes, 1)], dim=1)


def _penalty(noisy: NoisyScore, curved: float) -> Floats:
    """Return what the square of a weight costs, ``[products]``.

    Args:
        noisy: the score.
        curved: how curved the likelihood is along a weight.
    """
    squares, bins = (noisy.together / noisy.noise) ** 2, len(noisy.together)
    clear = squares.sum(axis=0) > chi2.isf(CHANCE, bins)
    beyond = np.where(clear, np.maximum(squares.mean(axis=0) - 1.0, 0.0), 0.0)
    seen = noisy.noise * np.sqrt(beyond) / curved
    return np.asarray((noisy.noise / np.maximum(SIZE, SEEN * seen)) ** 2 / curved)
