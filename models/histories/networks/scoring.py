"""A network's weights after a noisy score: one step of Fisher scoring with a prior, free of charge.

The score at the network as it stands is what patients' rows have together beyond what it expects
of them. The weights move until rows that the network itself draws have that much more. A prior
holds them: noise says nothing of a pair of columns whose score is no larger than noise is, and a
pair whose score is larger is expected to move by a part of that size. How often a bin occurs is
in the score of its bias, and again in that of the weights with every column before it; least
squares makes one of all (Fisher scoring: Osborne 1992, "Fisher's method of scoring"; noisy
sufficient statistics: Bernstein and others 2017, arXiv 1706.04646, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.networks.score import Score
from dpsynth.models.histories.steps.pair_weights import fit_weights
from dpsynth.models.marginals import NEVER, without_margins

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIZE, OF_PERSONS = 0.06, 0.03
"""Standard deviation of a move, at least: of steps, and of the table of patients, of which so many
more counts were taken that little is left to learn."""
SEEN = 0.6  # of the size that a pair's own score says, if that is more
STEPS, ROUNDS, RATE = 1_000, 3, 0.005
BLOCK = 4_096  # rows that are one-hot at a time


@dataclass(frozen=True)
class NoisyScore:
    """The mean score of rows, in coordinates of the prior.

    Attributes:
        weights: ``[codes drawn, D]``.
        bias: ``[codes drawn]``.
        together: of products of two columns, as they are, ``[codes, products]``.
        noise: standard deviation of each number's noise.
    """

    weights: Floats
    bias: Floats
    together: Floats
    noise: float

    @classmethod
    def of(cls, score: Score, noise: float, steps: int, mass: float) -> NoisyScore:
        """Read it off after the private steps.

        Args:
            score: whose coordinates moved against the mean gradient of each step.
            noise: standard deviation of the noise in each of these.
            steps: how many were taken.
            mass: what the rows of a patient weigh together, on average.
        """
        scale = 1.0 / (steps * mass)
        weight, bias = score.moves.effective_weight().detach(), score.moves.bias.detach()
        together = score.together.weight.detach() if score.crosses else torch.zeros(0, 0)
        means = [scale * moves.double().numpy() for moves in (weight, bias, together)]
        return cls(means[0], means[1], means[2], noise / (np.sqrt(steps) * mass))


def learn(
    network: Network,
    score: Score,
    noisy: NoisyScore,
    drawn: Callable[[], Ints],
    rng: np.random.Generator,
    size: float = SIZE,
) -> None:
    """Move a network's weights as its noisy score says.

    Args:
        network: as it was scored; changed in place, and has no hidden layer.
        score: its coordinates.
        noisy: the score.
        drawn: gives rows that the network, as it is by then, draws: as many of each kind as weigh
            in the score, ``[rows, columns]``.
        rng: of the search.
        size: standard deviation of a move, at least.
    """
    cells, one = _in_cells(score, noisy)
    apart, more = torch.from_numpy(cells).float(), torch.from_numpy(one).float()
    sizes = list(network.shape.bins[network.shape.given :])

    def wanted(rows: Tensor) -> tuple[Tensor, Tensor]:
        joint, alone = torch.zeros_like(apart), torch.zeros_like(more)
        before = torch.zeros(network.codes)
        for part in torch.split(rows, BLOCK):
            hot = network.one_hot(part)
            with torch.no_grad():
                blocks = torch.split(score.network.logits(hot), sizes, 1)
            expected = torch.cat([block.softmax(dim=1) for block in blocks], dim=1)
            joint += expected.T @ hot / len(rows)
            alone += expected.sum(dim=0) / len(rows)
            before += hot.sum(dim=0) / len(rows)
        return joint + torch.outer(more, before) + apart, alone + more

    fit_weights(
        network,
        score.root,
        torch.from_numpy(_penalty(score, noisy, size)).float(),
        lambda _: drawn(),
        wanted,
        rng,
        steps=STEPS,
        rounds=ROUNDS,
        rate=RATE,
    )


def _in_cells(score: Score, noisy: NoisyScore) -> tuple[Floats, Floats]:
    """Turn a score into shares of cells without their sums, and shares of the bins drawn."""
    network = score.network
    offsets, given, before = np.array(network.offsets), network.shape.given, network.before
    back = np.linalg.inv(score.root.double().numpy())
    own_back = back[before:, before:]
    cells, bias = own_back.T @ noisy.weights @ back, own_back.T @ noisy.bias
    found, one = np.zeros_like(cells), np.zeros_like(bias)
    for later in range(given, len(network.bins)):
        own = slice(offsets[later] - before, offsets[later + 1] - before)
        width, counts = offsets[later], np.array(network.bins[:later])
        each = np.add.reduceat(cells[own, :width], offsets[:later], axis=1) if later else None
        sums = bias[own] if each is None else bias[own] + (each / counts).sum(axis=1)
        known = sums / (1.0 + (1.0 / counts).sum())
        one[own] = known - known.mean()
        if later:
            found[own, :width] = without_margins(cells[own, :width].T, offsets[: later + 1]).T
    return found, one


def _penalty(score: Score, noisy: NoisyScore, least: float) -> Floats:
    """Return what the square of each coordinate's move costs, ``[codes drawn, D]``.

    The likelihood of a coordinate is as curved as its share of the weights' spread.
    """
    network, spread = score.network, score.spread.double().numpy()
    offsets, before = network.offsets, network.before
    found = np.full(noisy.weights.shape, NEVER)
    for later in range(network.shape.given, len(network.bins)):
        rows = slice(offsets[later], offsets[later + 1])
        own = slice(rows.start - before, rows.stop - before)
        for other in range(later):
            columns = slice(offsets[other], offsets[other + 1])
            curved = np.outer(spread[rows], spread[columns])
            beyond = float((noisy.weights[own, columns] ** 2).mean()) - noisy.noise**2
            seen = curved.size * np.sqrt(max(beyond, 0.0) / float((curved**2).mean()))
            size = max(least, SEEN * seen)
            found[own, columns] = np.minimum(
                curved.size * (noisy.noise / size) ** 2 / curved, NEVER
            )
    return found
