"""The score of a log-linear network: what rows say of its weights, in coordinates of their prior.

The score is the gradient of the log-likelihood with respect to the weights: the sum over rows of
what occurred together, less what the network expects. With one root R of the prior correlation of
weights along the bins of all columns, weights are R_drawn T R^T, and the coordinates T are expected
to be alike and independent. Their gradient is R_drawn^T (p - y) (R^T x)^T for a one-hot row x, of
which y are the columns drawn. That is a linear map of the row's gradient, known to everybody, so
clipping it bounds a patient as ever. Noise of one size in these coordinates is small where many
rows go together, as in neighbouring bins of a column, and large where few do. Products of two
columns (`persons.crosses`) have coordinates of their own: their weights.

The loss is that of the network as it stands, however far the coordinates have moved. So plain steps
of gradient descent at rate 1 add up the noisy mean gradients at one point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations
from dpsynth.models.dpsgd.layers import Linear, MaskedLinear
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.persons.crosses import Crosses
from dpsynth.models.histories.steps.log_linear import PRIOR, root_of
from dpsynth.models.marginals import MergedBins

Floats = npt.NDArray[np.float64]

ALIKE = replace(PRIOR, near=0.4)
"""What counts leave to learn is smoother along a column than what they show already."""


class Score(nn.Module):
    """Coordinates of a network's weights, whose gradient is its score.

    Attributes:
        bins: of each column.
        moves: the coordinates; all else is fixed.
        together: weights of products of two columns, if there are any.
        root: R with orthogonal columns, ``[D, D]``.
        spread: squared norms of its columns: how much of the weights' spread each holds, ``[D]``.
    """

    def __init__(self, network: Network, root: Tensor, crosses: Crosses | None = None) -> None:
        """Score a network as it stands now.

        Args:
            network: its values are copied.
            root: of the prior correlation, ``[D, D]``; a block for each column.
            crosses: of columns of it, whose weights are still zero; None for none.
        """
        super().__init__()
        self.bins, given = network.bins, network.shape.given
        self._fixed = (_copy(network), crosses)  # not modules of this one: nothing trains them
        blocks = [root[at : at + size, at : at + size] for at, size in _places(network)]
        parts = [torch.linalg.eigh(block @ block.T) for block in blocks]
        self.spread = torch.cat([spread for spread, _ in parts])
        roots = [axes * spread.sqrt() for spread, axes in parts]
        self.root: Tensor = torch.block_diag(*roots)  # type: ignore[no-untyped-call]
        columns = np.repeat(np.arange(len(network.bins)), network.bins)
        seed = torch.Generator().manual_seed(0)
        self.moves = MaskedLinear(columns, columns[columns >= given], generator=seed)
        layers: list[Linear] = [self.moves]
        if crosses is not None:
            self.together = Linear(crosses.products, len(crosses.weight), generator=seed)
            layers.append(self.together)
        for layer in layers:
            layer.weight.zero_()
            layer.bias.zero_()

    @classmethod
    def of(
        cls,
        network: Network,
        bins: Sequence[MergedBins],
        cells: Sequence[int],
        crosses: Crosses | None = None,
        numbers: Sequence[int] = (),
    ) -> Self:
        """Take the prior of the weights from the columns.

        Args:
            network: the network.
            bins: of each column.
            cells: of each column, how many of its codes are ordered.
            crosses: of columns of it, if there are any.
            numbers: as of `root_of`.
        """
        return cls(network, root_of(ALIKE, bins, cells, numbers), crosses)

    @property
    def network(self) -> Network:
        """The network at which the score is taken."""
        return self._fixed[0]

    @property
    def crosses(self) -> Crosses | None:
        """Products of columns of the network, if it has any."""
        return self._fixed[1]

    @property
    def drawn(self) -> Tensor:
        """The part of the root for the columns that are drawn."""
        return self.root[self.network.before :, self.network.before :]

    def loss(self, rows: Tensor, activations: Activations | None) -> Tensor:
        """Return the network's loss of each row, ``[units, k]``, in nats.

        Args:
            rows: binned rows ``[units, k, columns]``.
            activations: records the layer.
        """
        network = self.network
        units, k, columns = rows.shape
        hot = network.one_hot(rows.reshape(units * k, columns))
        with torch.no_grad():
            logits = network.logits(hot)
        moves = self.moves(hot @ self.root, activations)
        logits = logits + (moves - moves.detach()) @ self.drawn.T
        if self.crosses is not None:
            moves = self.together(self.crosses.of_rows(hot), activations)
            logits = logits + self.crosses.beside(moves - moves.detach(), logits.shape[1])
        nats: Tensor = network.nats(logits, hot[:, network.before :], network.shape.given)
        return nats.reshape(units, k)


def _places(network: Network) -> Iterator[tuple[int, int]]:
    """Give where each column's bins begin, and how many there are."""
    return zip(network.offsets, network.bins, strict=False)


def _copy(network: Network) -> Network:
    found = Network(network.shape, generator=torch.Generator().manual_seed(0))
    found.load_state_dict(network.state_dict())
    return found
