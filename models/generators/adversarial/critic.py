"""The critic of `ctgan`: it scores whether a row, under a condition, is real or generated.

A row of d binned columns enters one-hot, ``[rows, codes]``, and beside it the condition: the same
row with all columns but one set to zero (Xu et al. 2019, "Modeling tabular data using conditional
GAN", arXiv 1907.00503, section 4.3). The loss of a row is the logistic one (Goodfellow et al. 2014,
arXiv 1406.2661, equation 1). It reads that row, its label and the network: no batch statistics, no
packs of several rows, no gradient penalty, each of which would tie the rows of different people
together, or take a second derivative on them.

Before it meets a private row the critic is trained to tell rows of the mixture from crossed ones,
whose columns come from two of them. Its hidden layers then respond to how columns go together;
from random weights, noisy steps are too few to find that out. The score starts at zero again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpsynth.models.dpsgd import Activations, Linear

REAL, FAKE = 1.0, -1.0
Batch = tuple[Tensor, Tensor, Tensor]
"""Binned rows ``[units, k, columns]`` int64; the column of each row's condition ``[units, k]``
int64; labels ``[units, k]``, `REAL` or `FAKE`."""


class Critic(nn.Module):
    """Two hidden layers and a score; positive is real."""

    def __init__(self, bins: Sequence[int], hidden: int, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; ``hidden`` is the width of the hidden layers."""
        super().__init__()
        self.codes, self.width, self.hidden = sum(bins), len(bins), hidden
        self.seen = Linear(self.codes, hidden, generator=generator)
        self.asked = Linear(self.codes, hidden, generator=generator)
        self.within = Linear(hidden, hidden, generator=generator)
        self.scored = Linear(hidden, 1, generator=generator)
        with torch.no_grad():  # one entry of each column is 1: hidden units of deviation about 1
            spreads = {self.seen: len(bins), self.asked: 10 * len(bins), self.within: hidden}
            for layer, ones in spreads.items():
                layer.weight.normal_(0.0, ones**-0.5, generator=generator)
        self.start_at_zero()
        offsets = np.concatenate([[0], np.cumsum(bins)])[:-1]
        self.offsets = torch.from_numpy(offsets.astype(np.int64))
        self.column_of = torch.from_numpy(np.repeat(np.arange(len(bins)), bins))

    def start_at_zero(self) -> None:
        """Let the score be zero for every row, whatever the hidden layers say."""
        with torch.no_grad():
            self.scored.weight.zero_()
            self.scored.bias.zero_()

    def one_hot(self, rows: Tensor) -> Tensor:
        """Turn binned rows ``[n, columns]`` into ``[n, codes]`` float32."""
        hot = torch.zeros(len(rows), self.codes)
        return hot.scatter_(1, rows + self.offsets, 1.0)

    def score(self, hot: Tensor, columns: Tensor, activations: Activations | None = None) -> Tensor:
        """Return the log-odds that rows are real, ``[n]``.

        Args:
            hot: rows one-hot, ``[n, codes]``.
            columns: the column of each row's condition, ``[n]``.
            activations: records the layers for per-unit gradients.
        """
        condition = hot * (self.column_of == columns[:, None])
        hidden = torch.tanh(self.seen(hot, activations) + self.asked(condition, activations))
        hidden = torch.tanh(self.within(hidden, activations))
        score: Tensor = self.scored(hidden, activations)
        return score[:, 0]

    def loss(self, batch: Batch, activations: Activations | None) -> Tensor:
        """Return the logistic loss of each row, ``[units, k]``."""
        rows, columns, labels = batch
        units, k, width = rows.shape
        hot = self.one_hot(rows.reshape(units * k, width))
        scores = self.score(hot, columns.reshape(units * k), activations)
        return functional.softplus(-labels * scores.reshape(units, k))

    def batch(self, rows: Tensor, label: float, rng: np.random.Generator) -> Batch:
        """Give rows ``[units, k, columns]`` a label, and each a condition column of its own.

        The column is uniform and drawn for the row alone: nothing in it depends on how common a
        code is.
        """
        columns = torch.from_numpy(rng.integers(0, self.width, tuple(rows.shape[:2])))
        return rows, columns, torch.full(rows.shape[:2], label)


def crossed(rows: Tensor, others: Tensor, rng: np.random.Generator) -> Tensor:
    """Take each column from the one or the other row, ``[n, columns]``.

    From the other with a chance that is itself uniform, drawn for each row.
    """
    chance = rng.random((len(rows), 1))
    mixed: Tensor = torch.where(torch.from_numpy(rng.random(rows.shape) < chance), others, rows)
    return mixed


def joined(first: Batch, second: Batch) -> Batch:
    """Put two batches of equal shape end to end."""
    rows, columns, labels = (torch.cat(parts) for parts in zip(first, second, strict=True))
    return rows, columns, labels
