"""A step table's mixture taught to a network, where a generator asks for one: no cost.

Rows of a few columns are drawn by their mixture. A generator that trains a network on them starts
with one that has learned rows drawn from that mixture: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.models import Progress, silent
from dpsynth.models.dpsgd import PlainSgd, in_turn, load_arrays
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.marginals import LEADERS, Products

ROWS = 200_000  # of the mixture
BATCH = 1_000
STEPS = 1_500
SETTLING = 50_000  # rows on which the biases settle
RATE = 0.01


def restored_network(
    sizes: tuple[int, ...], drawn: int, arrays: Mapping[str, npt.NDArray[Any]], prefix: str
) -> Network | None:
    """Rebuild a network from its weights; None where there are none.

    Networks of earlier versions had logits of the columns before ``drawn`` too; what they draw is
    the same.
    """
    if not any(name.startswith(f"{prefix}.") for name in arrays):
        return None
    width = arrays.get(f"{prefix}.masked_in.bias")
    masked = 0 if width is None else len(width)
    given = 0 if len(arrays[f"{prefix}.skip.bias"]) == sum(sizes) else drawn
    network = Network(Shape(sizes, masked, given), generator=torch.Generator().manual_seed(0))
    load_arrays(network, prefix, arrays)
    return network


def distilled(
    products: Products,
    rng: np.random.Generator,
    *,
    given: int,
    steps: int | None = None,
    rate: float = RATE,
    progress: Progress = silent,
) -> Network:
    """Train a network on rows of a mixture.

    Args:
        products: the mixture.
        rng: of the rows and the network's first weights.
        given: first columns, which are conditions: their law is not learned.
        steps: how many; by default `STEPS`.
        rate: of the first one.
        progress: called after each.
    """
    steps = steps or STEPS
    seed = int(rng.integers(2**31))
    shape = Shape(products.sizes, 0, given)
    network = Network(shape, generator=torch.Generator().manual_seed(seed))
    network.start_at(products.shares)
    rows = torch.from_numpy(products.draw(ROWS, rng))
    trainer = PlainSgd(
        network, learning_rate=rate, steps=steps, schedule="cosine", optimizer="adam"
    )
    ones = torch.ones(BATCH, 1)
    for step in range(steps):
        trainer.step(network.loss, in_turn(rows, step, BATCH), ones)
        progress("warming up", (step + 1) / steps)
    settle(network, products, rng)
    return network


def settle(network: Network, products: Products, rng: np.random.Generator) -> None:
    """Give each column that is drawn the share of rows that the mixture has: post-processing."""
    given = network.shape.given
    rows = products.draw(SETTLING, rng)[:, :given]
    network.settle(rows, products.shares[given:], rng, leaders=products.leaders(LEADERS))
