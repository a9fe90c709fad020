"""Interactions: what two columns of a patient's row say together of her number of rows.

A log-linear network adds up what every column says. Some say more together: a readmission within
days tells of more visits, and so do earlier admissions, but whoever has both has not twice as many.
So, after Tukey, each column has one axis, along which its bins stand by what they say of the number
of rows, and products of two axes move the logits beside the sums. The axes come from the network's
own weights, which are released: post-processing. They are taken once, before anything is learned of
the products, and stay.

Source: Tukey 1949, "One degree of freedom for non-additivity", Biometrics 5(3), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.generators.autoregressive_network import Network

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

COLUMNS = 16  # that have an axis, at most: those whose weights move the number of rows most
FURTHEST = 3.0  # standard deviations from the mean on an axis: few patients have such a bin
RARE = 1e-6  # share of a bin, below which nothing is said of it
NOTHING = 1e-4  # a column whose weights move the logits by no more than this has no axis


class Crosses(nn.Module):
    """Products of axes of columns, and what they add to the logits of the columns after these.

    Attributes:
        axes: places of each bin, ``[axes, bins of the columns before]``; zero outside the column
            of an axis. A column's mean is 0 and its variance 1, where bins do not go too far.
        weight: ``[bins of the columns after, products]``.
    """

    axes: Tensor
    weight: nn.Parameter

    def __init__(self, axes: Tensor, after: int) -> None:
        """Start with weights of zero.

        Args:
            axes: see the class.
            after: bins of the columns whose logits move.
        """
        super().__init__()
        self.register_buffer("axes", axes)
        self._first, self._second = torch.triu_indices(len(axes), len(axes), offset=1)
        self.weight = nn.Parameter(torch.zeros(after, len(self._first)))

    @classmethod
    def of(cls, network: Network, before: int, shares: list[Floats]) -> Self:
        """Read the axes off a network's weights.

        An axis is the first principal component of a column's weights on all logits that move,
        each bin as heavy as it is frequent.

        Args:
            network: log-linear, over binned rows.
            before: how many columns stand before those whose logits move.
            shares: of the bins of every column.
        """
        start = network.offsets[before]
        after = [slice(at - start, end - start) for at, end in pairwise(network.offsets[before:])]
        later = np.concatenate(shares[before:])
        weights = network.skip.effective_weight().detach().double().numpy()[-len(later) :]
        found, moved = np.zeros((before, start)), np.zeros(before)
        for column in range(before):
            own = slice(network.offsets[column], network.offsets[column + 1])
            share = shares[column] / shares[column].sum()
            heavy = np.sqrt(share)
            block = weights[:, own] - (weights[:, own] @ share)[:, None]
            for part in after:  # logits of a column may all move by the same
                block[part] -= (later[part] @ block[part]) / max(later[part].sum(), RARE)
            _, moves, parts = np.linalg.svd(np.sqrt(later)[:, None] * block * heavy)
            axis = np.where(share > RARE, parts[0] / np.maximum(heavy, np.sqrt(RARE)), 0.0)
            axis -= share @ axis
            spread = np.sqrt(share @ axis**2)
            if spread > 0 and moves[0] > NOTHING:
                found[column, own] = np.clip(axis / spread, -FURTHEST, FURTHEST)
                moved[column] = moves[0]
        kept = np.sort(np.argsort(-moved, kind="stable")[: min(COLUMNS, np.count_nonzero(moved))])
        return cls(torch.from_numpy(found[kept]).float(), network.codes - start)

    @property
    def products(self) -> int:
        """How many there are: one for each pair of axes."""
        return len(self._first)

    def before(self, network: Network) -> int:
        """Return how many columns of a network stand before those whose logits move."""
        return network.offsets.index(self.axes.shape[1])

    def of_rows(self, hot: Tensor) -> Tensor:
        """Return the products of one-hot rows ``[rows, codes]``, ``[rows, products]``."""
        places = hot[:, : self.axes.shape[1]] @ self.axes.T
        return places[:, self._first] * places[:, self._second]

    def pull(self, hot: Tensor, drawn: int) -> Tensor:
        """Return what products add to the logits of a network, ``[rows, drawn]``.

        Args:
            hot: one-hot rows, ``[rows, codes]``; columns that are to be drawn may be anything.
            drawn: width of the logits, the last of which move.
        """
        return self.beside(self.of_rows(hot) @ self.weight.detach().T, drawn)

    def beside(self, moved: Tensor, drawn: int) -> Tensor:
        """Put logits that move ``[rows, bins]`` beside those that do not, ``[rows, drawn]``."""
        return nn.functional.pad(moved, (drawn - moved.shape[1], 0))

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Self | None:
        """Rebuild them from a run's arrays; None where there are none.

        Args:
            arrays: of the run.
            name: before the names of theirs.
        """
        if f"{name}.axes" not in arrays:
            return None
        weight = torch.from_numpy(arrays[f"{name}.weight"].copy())
        found = cls(torch.from_numpy(arrays[f"{name}.axes"].copy()), len(weight))
        found.weight.data.copy_(weight)
        return found
