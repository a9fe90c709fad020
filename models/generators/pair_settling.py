"""Settling: what a network says of pairs of columns is moved until it meets what was counted.

A network that learns from rows of a mixture misses some of the released cells by many times their
noise: a mixture of products has no room for them, and the network learns from its rows. So each
column in turn, on rows whose columns before have settled, gets weights for the bins of the columns
before it, until no measured cell is missed by more than noise explains.

**Aims.** Let r be the released share of a cell, s its standard error, and m the share that the
network gives it, with the columns before at their released shares. A cell is

- *empty* if r is within `NONE` s of zero and m more than `SEEN` s above max(r, 0), decided before
  anything has moved; so are all cells of a run of neighbouring bins of an ordered column of whose
  sums both are true. It aims at no more than `LITTLE` s.
- *off* if |m - r| > `SEEN` s otherwise; it aims at r, moved by one s towards m.

All others have no aim: their differences may be noise. The distribution nearest to the network's in
relative entropy that meets such relaxed aims has logits that are moved by a weight for each cell
that has one (Dudik, Phillips and Schapire 2007, "Maximum entropy density estimation with
generalized regularization and an application to species distribution modeling", section 3). The
weights are found by iterative scaling: each moves by a part of log(aim / m), the smaller the more
such cells a row is in (Darroch and Ratcliff 1972, "Generalized iterative scaling for log-linear
models").

**What is kept.** After each step all cells are looked at again. A step that brings the cells that
have an aim no nearer to it is taken back and halved, so a column that no step makes better stays as
it was.

**Privacy.** Released counts, public facts, and rows that the network drew: post-processing (Dwork
and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.models.generators.autoregressive_network import ROUNDS, Network, Paths, bias_shift
from dpsynth.models.generators.binned_network import draw_column
from dpsynth.models.marginals import Fitness, indicators
from dpsynth.models.marginals.projection import SEEN

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dpsynth.models.marginals import Released

Floats = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]

ROWS = 30_000  # that the network draws
NONE, LITTLE = 1.5, 0.1  # standard errors: see above
LOOKS = 25
STEP = 0.9  # of iterative scaling, over half the number of a row's cells that have an aim
SOFT = 0.02  # standard errors that are added to both sides of a ratio
FURTHEST = 1.0  # of a weight, at a look
LOOKED = 2  # rounds of biases at a look, which go on from those of the look before
NEAR = 0.5  # standard errors, of all cells together, by which aims may be missed


def settle_pairs(
    network: Network,
    released: Released,
    ordered: Sequence[Truth],
    leaders: Sequence[Sequence[int]],
    rng: np.random.Generator,
    counted: Released | None = None,
) -> Fitness:
    """Move the weights and biases of a network towards released pairs, column by column.

    Args:
        network: that draws all its columns; changed in place.
        released: what it is moved towards.
        ordered: which bins of each column have an order, the first ones.
        leaders: as of `Network.draw`.
        rng: of the rows.
        counted: what was counted, by which the network is judged; the same where None.

    Returns:
        How the network then meets what was counted.
    """
    paths, apart = Paths(network, ROWS), []
    columns = len(network.shape.bins)
    bins = np.empty((ROWS, columns), dtype=np.int64)
    for j in range(columns):
        begin, end = network.offsets[j], network.offsets[j + 1]
        logits = paths.logits(j)
        shift = bias_shift(logits, released.shares(j))
        weights = np.zeros((begin, end - begin))
        if j:
            before = indicators(bins[:, :j] + np.array(network.offsets[:j]), begin, np.float64)
            column = _Column(released, before, logits, ordered, j)
            weights, shift, means = column.settled(shift)
            shares, sd = (released if counted is None else counted).before(j)
            apart.append(((means - shares) / sd)[np.isfinite(sd)])
            logits = logits + torch.from_numpy((before @ weights).astype(np.float32))
        with torch.no_grad():
            network.skip.weight[begin:end, :begin] += torch.from_numpy(weights.T).float()
            network.skip.bias[begin:end] += shift
        bins[:, j] = draw_column(logits + shift, None, bins[:, list(leaders[j])], rng, even=True)
        paths.take(j, torch.from_numpy(np.ascontiguousarray(bins[:, j])))
    return Fitness.of(apart)


class _Column:
    """One column of the network, on rows of the columns before."""

    def __init__(
        self,
        released: Released,
        before: csr_array,
        logits: torch.Tensor,
        ordered: Sequence[Truth],
        place: int,
    ) -> None:
        self.before, self.logits = before, logits
        self.shares, self.sd = released.before(place)
        self.one, self.ordered = released.shares(place), ordered[place]
        drawn = np.asarray(before.sum(axis=0)).ravel() / before.shape[0]
        margins = released.one[: before.shape[1]]
        self.scale = np.clip(margins / np.maximum(drawn, 1e-12), 0.5, 2.0) / before.shape[0]
        self.before_t = before.T.tocsr()

    def settled(self, shift: torch.Tensor) -> tuple[Floats, torch.Tensor, Floats]:
        """Return the weights of the bins before, and the biases that go with them.

        The last array holds the shares that the cells then have.
        """
        weights, step = np.zeros_like(self.shares), 1.0
        means, shift = self._means(weights, shift)
        empty = self._empty(means)
        off = ~empty & (np.abs(self._apart(means)) > SEEN)
        for _ in range(LOOKS):
            missed = self._missed(means, empty, off)
            if missed <= NEAR:
                break
            moved = self._moved(weights, means, empty, off, step)
            new_means, new_shift = self._means(moved, shift, rounds=LOOKED)
            if self._missed(new_means, empty, off) >= missed:
                step /= 2
                continue
            weights, means, shift = moved, new_means, new_shift
            off |= ~empty & (np.abs(self._apart(means)) > SEEN)
        means, shift = self._means(weights, shift)
        return weights, shift, means

    def _moved(
        self, weights: Floats, means: Floats, empty: Truth, off: Truth, step: float
    ) -> Floats:
        """Return the weights after a part of a step of iterative scaling."""
        aimed = empty | off
        per_row = float((self.before @ aimed.sum(axis=1)).mean()) / weights.shape[1]
        aims = np.minimum(means, np.where(empty, LITTLE * self.sd, self.shares + self.sd))
        aims = np.where(off, np.maximum(aims, self.shares - self.sd), aims)
        soft = SOFT * self.sd[aimed]
        ratio = np.log((np.maximum(aims[aimed], 0.0) + soft) / (means[aimed] + soft))
        found = weights.copy()
        size = step * STEP / max(1.0, per_row / 2)
        found[aimed] += size * np.clip(ratio, -FURTHEST, FURTHEST)
        return found

    def _means(
        self, weights: Floats, shift: torch.Tensor, *, rounds: int = ROUNDS
    ) -> tuple[Floats, torch.Tensor]:
        moved = self.logits + torch.from_numpy((self.before @ weights).astype(np.float32))
        shift = shift + bias_shift(moved + shift, self.one, rounds=rounds)
        laws = torch.softmax(moved + shift, 1)
        means = (self.before_t @ laws.numpy().astype(np.float64)) * self.scale[:, None]
        return means, shift

    def _apart(self, means: Floats) -> Floats:
        return np.asarray((means - self.shares) / self.sd)

    def _missed(self, means: Floats, empty: Truth, off: Truth) -> float:
        """Add up by how many standard errors cells miss their aims."""
        apart = np.abs(self._apart(means))[off] - 1.0
        above = (means / self.sd)[empty] - 2 * LITTLE
        return float(np.maximum(apart, 0.0).sum() + np.maximum(above, 0.0).sum())

    def _empty(self, means: Floats) -> Truth:
        """Say which cells were counted empty and are not; see the module."""
        known = np.isfinite(self.sd)
        found = known & (self.shares < NONE * self.sd)
        found &= means > np.maximum(self.shares, 0.0) + SEEN * self.sd
        last = int(self.ordered.sum())
        for first in range(last):
            sums = np.cumsum(self.shares[:, first:last], axis=1)
            of_model = np.cumsum(means[:, first:last], axis=1)
            sd = self.sd[:, :1] * np.sqrt(np.arange(1, last - first + 1))
            with np.errstate(invalid="ignore"):
                runs = known[:, :1] & (sums < NONE * sd)
                runs &= of_model > np.maximum(sums, 0.0) + SEEN * sd
            for width in range(1, last - first):
                found[:, first : first + width + 1] |= runs[:, width : width + 1]
        return found
