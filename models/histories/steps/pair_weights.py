"""Weights between bins of columns, learned from joint shares of pairs: what fits have in common.

The logits of a log-linear network are sums of weights (`marginals.released_weights`). Its
likelihood depends on the columns that it draws by their shares, alone and with each column before,
so these are all that a fit takes; and on rows of columns before, which the network itself draws as
it learns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from dpsynth.models.generators.autoregressive_network import Network

Ints = npt.NDArray[np.int64]
Wanted = Callable[[Tensor], tuple[Tensor, Tensor]]

BATCH = 1_000


def fit_weights(
    network: Network,
    root: Tensor,
    penalty: Tensor,
    drawn: Callable[[int], Ints],
    wanted: Wanted,
    rng: np.random.Generator,
    *,
    steps: int,
    rounds: int,
    rate: float,
) -> None:
    """Move the weights of a network's linear map until it has the wanted shares, as far as it pays.

    Args:
        network: changed in place.
        root: of the prior correlation of weights along all columns' bins, ``[D, D]``.
        penalty: of the square of each move, before bins are made alike, ``[codes drawn, D]``.
        drawn: gives binned rows of a round, ``[rows, columns]``, which the network has drawn.
        wanted: gives, for such rows, the shares of the columns drawn with each bin,
            ``[codes drawn, D]``, and alone, ``[codes drawn]``.
        rng: of the batches.
        steps: of the search.
        rounds: of it, each with rows of its own.
        rate: of its first step.
    """
    skip, given = network.skip, network.shape.given
    later, mask = root[network.before :, network.before :], skip.mask
    start, sizes = skip.effective_weight().clone(), list(network.shape.bins[given:])
    inner = torch.zeros_like(mask, requires_grad=True)
    bias = skip.bias.detach().clone().requires_grad_(True)
    optimizer = torch.optim.Adam([inner, bias], lr=rate)

    def weights() -> Tensor:
        return start + mask * (later @ inner @ root.T)

    for step in range(steps):
        if step % -(-steps // rounds) == 0:
            if step:
                _set(network, weights(), bias)
            rows = torch.from_numpy(drawn(step * rounds // steps))
            shares, one = wanted(rows)
            shares = mask * shares
        bend = 0.02 + 0.49 * (1 + np.cos(np.pi * step / steps))
        optimizer.param_groups[0]["lr"] = rate * bend
        turn = torch.from_numpy(rng.integers(len(rows), size=BATCH))
        matrix = weights()
        logits = torch.split(network.one_hot(rows[turn]) @ matrix.T + bias, sizes, 1)
        cost = torch.stack([block.logsumexp(dim=1).mean() for block in logits]).sum()
        cost = cost - (shares * matrix).sum() - (one * bias).sum()
        cost = cost + 0.5 * (penalty * inner**2).sum()
        optimizer.zero_grad(set_to_none=True)
        cost.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    _set(network, weights(), bias)


@torch.no_grad()
def _set(network: Network, weights: Tensor, bias: Tensor) -> None:
    network.skip.weight.copy_(weights)
    network.skip.bias.copy_(bias)
