"""What the networks over binned columns share: one-hot rows, their loss, and draws from logits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations, moved
from dpsynth.models.generators.latent_aim import Aim
from dpsynth.models.marginals import draw_evenly, places_at

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class BinnedNetwork(nn.Module, ABC):
    """A network over rows of binned columns.

    Attributes:
        bins: of each column.
        offsets: where each column starts in a one-hot row, and the width of such a row.
    """

    def __init__(self, bins: Sequence[int]) -> None:
        """Take the number of bins of each column."""
        super().__init__()
        self.bins = list(bins)
        self.offsets = [0, *accumulate(self.bins)]

    @property
    def codes(self) -> int:
        """Width of a one-hot row."""
        return self.offsets[-1]

    @abstractmethod
    def start_at(self, shares: Sequence[Floats]) -> None:
        """Set the biases to the columns' own distributions, one array of shares a column."""

    def draw_from(self, source: Callable[[], np.random.Generator]) -> None:  # noqa: B027
        """Take the source of what is drawn in training, if anything is: most networks draw nothing.

        Called once for each fit and process, so that no one can replay what was drawn.
        """

    @abstractmethod
    def loss(self, rows: Tensor, activations: Activations | None) -> Tensor:
        """Return the loss of each row, ``[units, k]``, in nats.

        Args:
            rows: binned rows ``[units, k, columns]``, int64.
            activations: records the layers for per-unit gradients; None for plain evaluation.
        """

    @abstractmethod
    def draw(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        leaders: Sequence[Sequence[int]],
        first: Floats | None = None,
        even: bool = True,
    ) -> Ints:
        """Draw binned rows ``[rows, columns]``.

        Args:
            rows: how many.
            rng: of the draw.
            leaders: for each column, the earlier ones along which draws are spread evenly.
            first: factors that weigh the bins of the first column; None for no weights.
            even: spread the draws more evenly than chance; see `products.Products.draw`.
        """

    def aimed(self, factors: Mapping[int, Floats], rng: np.random.Generator) -> Aim | None:
        """Return where to look for rows that meet a condition, if the network has such a place."""
        return None

    @abstractmethod
    def propose(
        self,
        rows: int,
        rng: np.random.Generator,
        factors: Mapping[int, Floats],
        aim: Aim | None = None,
    ) -> tuple[Ints, Floats]:
        """Draw rows that meet a condition, and how much likelier each is than it was drawn.

        Columns are drawn in turn, each with its factors, and a row's weight is the product of what
        they leave of each column's law: likelihood weighting (Fung and Chang 1990, "Weighing and
        integrating evidence for stochastic simulation in Bayesian networks").

        Args:
            rows: how many.
            rng: of the draw.
            factors: of the bins of some columns, from 0: how likely each meets the condition.
            aim: what `aimed` said of these factors.

        Returns:
            Binned rows ``[rows, columns]``, and the logarithm of each one's weight, ``[rows]``.
        """

    def one_hot(self, rows: Tensor) -> Tensor:
        """Turn binned rows ``[n, columns]`` into ``[n, codes]`` float32."""
        hot = torch.zeros(len(rows), self.codes, device=rows.device)
        places = rows + moved(torch.tensor(self.offsets[:-1]), rows.device)
        hot.scatter_(1, places, 1.0)
        return hot

    def nats(self, logits: Tensor, hot: Tensor, first: int = 0) -> Tensor:
        """Return minus the log-probability of one-hot rows under logits ``[n, codes]``, ``[n]``.

        Both hold the columns from ``first`` on.
        """
        cost = -(logits * hot).sum(dim=1)
        for block in torch.split(logits, self.bins[first:], 1):
            cost = cost + block.logsumexp(dim=1)
        return cost


def logs_of(shares: Sequence[Floats]) -> Tensor:
    """Return the logarithms of all columns' shares, end to end, float32."""
    return torch.from_numpy(np.log(np.concatenate(list(shares)) + 1e-6).astype(np.float32))


def draw_weighed(
    logits: Tensor, factors: Floats | None, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Draw a bin of each row with factors, and return what these leave of its law, in logs."""
    bins = draw_column(logits, factors, np.empty((len(logits), 0), np.int64), rng, even=False)
    return bins, np.zeros(len(logits)) if factors is None else log_left(logits, factors)


def log_left(logits: Tensor, factors: Floats) -> Floats:
    """Return what factors leave of the law of a column in each row, in logs, ``[rows]``."""
    with np.errstate(divide="ignore"):
        left = torch.log_softmax(logits.double(), 1) + torch.from_numpy(np.log(factors))
    found: Floats = left.logsumexp(dim=1).numpy()
    return found


def draw_column(
    logits: Tensor,
    factors: Floats | None,
    leading: Ints,
    rng: np.random.Generator,
    *,
    even: bool,
) -> Ints:
    """Draw a bin of each row from its logits.

    Args:
        logits: of the column, ``[rows, bins]``.
        factors: weigh its bins; None for no weights.
        leading: columns along which draws are spread evenly, strongest first, ``[rows, columns]``.
        rng: of the draw.
        even: spread the draws more evenly than chance.
    """
    if factors is not None:
        with np.errstate(divide="ignore"):  # a factor of 0 is never drawn
            logits = logits + torch.from_numpy(np.log(factors)).float()
    laws = torch.softmax(logits, 1).numpy()
    return draw_evenly(laws, leading, rng) if even else places_at(laws, rng.random(len(laws)))
