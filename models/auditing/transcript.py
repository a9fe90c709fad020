"""An observer of a fit: all that the plan releases, compared with canaries, for audits.

The attacker of the accountant: he sees every noisy count and the noisy sum of every private step,
knows all other units and which of them a step drew, knows the canaries, and does not know which of
them are in. Each release is then a sum of what the canaries in the data add, plus noise of known
size: y = C x + n, with x the canaries' coins. What all releases say about x adds up,

    b = sum C^T y / s^2,    G = sum C^T C / s^2,

and the best linear guess of x, for coins of mean 1/2 and variance 1/4, is
1/2 + (G + 4 I)^-1 (b - G 1/2): canaries that share a cell are told apart by the others. In a
private step a canary takes part with the sampling rate q, which scales its row of C.

If a limit is not kept, canaries add more than they may, s C x: then s is seen in their sum, and the
guess is that of s C. Counts and steps have a scale each.

For rows that belong to no real person: the background of an audit, synthetic or of an audit's own
fit. An observer is never part of a fit that is released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Cohort, Histories
from dpsynth.models.dpsgd import DpSgd, Loss, UnitGradients, packs, rows_at_once, take
from dpsynth.models.marginals import Binning
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    WeightedRows,
    exact_contrast_products,
    products_of_units,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Watch = Callable[[Cohort], tuple[Any, Tensor]]
Counts = JointHistograms | ChosenHistograms

EVERY = 10  # steps of which the canaries' inner products are computed; they change slowly
PRIOR = 4.0  # one over the variance of a fair coin
PLAIN = 4.0  # deviations of the noise and the coins, beyond which a scale is not chance


@dataclass(frozen=True, eq=False)
class CoinEvidence:
    """What releases of one kind say about the coins.

    Attributes:
        linear: b, ``[m]``; added to in place.
        gram: G, ``[m, m]``; added to in place.
    """

    linear: Floats
    gram: Floats

    @classmethod
    def of(cls, canaries: int) -> CoinEvidence:
        """Start without any."""
        return cls(np.zeros(canaries), np.zeros((canaries, canaries)))

    @property
    def scale(self) -> float:
        """Return by how much canaries add more than they may; 1 where that is not plain to see.

        The least squares of b on G 1/2 with the noise's covariance G: half of them are in.
        """
        half, whole = self.linear.sum() / 2, self.gram.sum() / 4
        if whole <= 0:
            return 1.0
        coins = np.sqrt((self.gram.sum(axis=1) ** 2).sum()) / (4 * whole)
        scale = half / whole
        return float(scale) if scale > 1 + PLAIN * (whole**-0.5 + coins) else 1.0


class ObservedSgd(DpSgd):
    """The trainer of a plan whose steps an observer sees."""

    observer: Transcript
    watch: Watch
    _theirs: Tensor

    def sample_batch(self, units: int) -> Ints:
        """Draw the units of a step, and note which of them are the background's."""
        chosen = super().sample_batch(units)
        self._theirs = torch.from_numpy(chosen < len(self.observer.others.mask))
        return chosen

    def noisy_sum(self, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
        """Return the noisy sum, and show the observer what the background does not explain."""
        released = super().noisy_sum(loss, batch, mask)
        known = take(batch, self._theirs)
        residual = released - self.clipped_sum(loss, known, mask[self._theirs])
        self._tell(loss, residual)
        return released

    def _tell(self, loss: Loss, residual: Tensor) -> None:
        observer, rate = self.observer, self.event.sampling_rate
        batch, weights = self.watch(observer.directions)
        scale = (self.event.noise_multiplier * self.clipping_norm) ** 2
        heard = self.steps_taken % EVERY == 1
        maximum = rows_at_once(self.flat.layers.values()) if not heard else len(weights)
        for pack in packs(batch, weights, maximum):
            gradients = UnitGradients.of(loss, pack)
            factors = gradients.factors(self.clipping_norm)
            owners = pack.per_row(torch.arange(len(pack.order)))[:, 0]
            along = _along(self, gradients, residual, owners) * factors
            canaries = pack.order.numpy()
            observer.steps.linear[canaries] += rate * along.double().numpy() / scale
            if heard:
                inner = _inner(gradients, owners) * factors[:, None] * factors[None, :]
                steps = min(EVERY, self.event.steps - self.steps_taken + 1)
                weight = steps * rate**2 / scale
                observer.steps.gram[np.ix_(canaries, canaries)] += weight * inner.double().numpy()


class Transcript:
    """What a fit's releases say about each canary's coin.

    The fit reads the background's units first, and after them the canaries that are in.
    """

    trains: ClassVar[type[ObservedSgd]] = ObservedSgd

    def __init__(
        self, canaries: Cohort, others: Cohort, histories: tuple[Histories, ...] = ()
    ) -> None:
        """Know all canaries, in or not, and the background, as the fit's events see them.

        Args:
            canaries: ``[m, rows, columns]``; all rows of a canary are equal, or one row each.
            others: the background's units.
            histories: of both, where a fit reads histories; the cohorts are then of their table of
                patients.
        """
        self.canaries, self.others, self.histories = canaries, others, histories
        self.counts, self.steps = (
            CoinEvidence.of(len(canaries.mask)),
            CoinEvidence.of(len(canaries.mask)),
        )

    @property
    def sides(self) -> tuple[Cohort, Cohort]:
        """Canaries and everybody else, as coded rows."""
        return self.canaries, self.others

    @property
    def directions(self) -> Cohort:
        """The canaries with one row each: a unit of equal rows pulls as one of them does."""
        return Cohort(self.canaries.codes[:, :1], self.canaries.mask[:, :1])

    def counted(
        self,
        noisy: Sequence[npt.NDArray[np.int64]],
        sigmas: Sequence[float],
        event: Counts,
        encode: Callable[[Cohort], Cohort],
    ) -> None:
        """Hear noisy histograms; ``encode`` gives each row's cell in each of them as a column."""
        self.weighed(
            noisy, sigmas, *(_rows(encode(c), event) for c in (self.canaries, self.others))
        )

    def weighed(
        self,
        noisy: Sequence[npt.NDArray[np.int64]],
        sigmas: Sequence[float],
        canaries: WeightedRows,
        others: WeightedRows,
    ) -> None:
        """Hear noisy histograms of weighted rows, knowing those of both sides."""
        from scipy.sparse import csr_matrix

        linear, gram = self.counts.linear, self.counts.gram
        for place, (table, sigma) in enumerate(zip(noisy, sigmas, strict=True)):
            at = (canaries.units, canaries.cells[place])
            moved = csr_matrix((canaries.weights.astype(float), at), (len(linear), table.size))
            known = np.bincount(others.cells[place], others.weights, minlength=table.size)
            linear += moved @ ((table.ravel() - known) / sigma**2)
            gram += (moved @ moved.T).toarray() / sigma**2

    def paired(
        self,
        noisy: Sequence[npt.NDArray[np.int64]],
        places: Sequence[tuple[int, int]],
        sigmas: Sequence[float],
        event: ChosenHistograms,
        binning: Binning,
    ) -> None:
        """Hear noisy counts of pairs of binned columns."""
        sizes = binning.sizes
        for start in range(0, len(places), 64):  # a column for each pair would not fit in memory
            some = slice(start, start + 64)

            def encode(cohort: Cohort, some: slice = some) -> Cohort:
                bins = binning.coarsen(cohort).astype(np.uint32)
                cells = [bins[..., i] * np.uint32(sizes[j]) + bins[..., j] for i, j in places[some]]
                return Cohort(np.stack(cells, axis=-1), cohort.mask)

            self.counted(noisy[some], sigmas[some], event, encode)

    def multiplied(
        self,
        noisy: npt.NDArray[np.int64],
        contrasts: Sequence[Ints],
        event: ChosenHistograms,
        sides: tuple[Cohort, Cohort],
        asked: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Hear noisy sums of products of contrasts, knowing the rows of both sides.

        Departures of pairs are not heard: they are no sum over units.
        """
        canaries, others = sides
        moved = products_of_units(canaries, contrasts, event, asked)
        known = exact_contrast_products(others, contrasts, event, asked)
        variance = event.sigma_for(1.0) ** 2
        self.counts.linear[:] += moved @ (noisy - known) / variance
        self.counts.gram[:] += moved @ moved.T / variance

    def trainer(self, watch: Watch) -> type[DpSgd]:
        """Return a trainer whose steps this observer sees."""
        return type("Heard", (self.trains,), {"observer": self, "watch": staticmethod(watch)})

    def scores(self) -> Floats:
        """Return the best linear guess of each canary's coin, ``[m]``."""
        system, centred = PRIOR * np.eye(len(self.canaries.mask)), np.zeros(())
        for heard in (self.counts, self.steps):
            scale = heard.scale
            system = system + scale**2 * heard.gram
            centred = centred + scale * heard.linear - scale**2 * heard.gram.sum(axis=1) / 2
        return np.asarray(0.5 + np.linalg.solve(system, centred))


def _rows(cohort: Cohort, event: Counts) -> WeightedRows:
    """Return each real row with its cell in each histogram, and with what it counts there."""
    counts = np.maximum(cohort.mask.sum(axis=1, dtype=np.int64), 1)
    share = np.ones_like(counts) if event.unit_mass is None else event.unit_mass // counts
    units, codes = np.nonzero(cohort.mask)[0], cohort.codes[cohort.mask]
    return WeightedRows(tuple(codes.T.astype(np.int64)), units, share[units])


def _along(trainer: DpSgd, gradients: UnitGradients, direction: Tensor, owners: Tensor) -> Tensor:
    """Return the inner product of each unit's gradient with a direction, ``[units]``.

    ``owners`` is the unit of each row.

    A layer is linear in its parameters, so that with the direction in their place its outputs,
    times the gradients at its outputs, are that product.
    """
    values = trainer.flat.values.clone()
    trainer.flat.values.copy_(direction)
    try:
        total = torch.zeros(gradients.pack.rows)
        for layer, inputs, grads in zip(
            gradients.layers, gradients.inputs, gradients.grads, strict=True
        ):
            total += (layer(inputs).flatten(1) * grads).sum(dim=1)
    finally:
        trainer.flat.values.copy_(values)
    return torch.zeros(len(gradients.pack.order)).index_add_(0, owners, total)


def _inner(gradients: UnitGradients, owners: Tensor) -> Tensor:
    """Return the inner products of the units' gradients, ``[units, units]``: summed over rows."""
    parts = zip(gradients.layers, gradients.inputs, gradients.grads, strict=True)
    rows = torch.stack([layer.gram(a[None], b[None])[0] for layer, a, b in parts]).sum(dim=0)
    units = len(gradients.pack.order)
    wide = torch.zeros(units, len(owners)).index_add_(0, owners, rows)
    return torch.zeros(units, units).index_add_(1, owners, wide)
