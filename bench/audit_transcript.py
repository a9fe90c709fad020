"""Everything noisy that a fit lets out, as an attacker would see it who sits behind the mechanisms.

The real mechanisms run; the transcript stands between them and the generator, reads what they
release, and adds up the likelihood ratio of the unit's presence. The attacker knows both data sets
and all that was released before, so each event's counts with and without the unit are known, and in
each private step the unit's clipped gradient.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from audit_counts import Silence
from torch import Tensor

from dpsynth.encoding.cohort import Cohort
from dpsynth.models.base import Domain
from dpsynth.models.dpsgd import trainer
from dpsynth.models.dpsgd.optimizer import DpSgd
from dpsynth.models.dpsgd.units import Units
from dpsynth.models.marginals import measurement as measuring
from dpsynth.models.marginals.adaptive_cells import levelled
from dpsynth.models.marginals.binning import Binning
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms, JointHistograms
from dpsynth.privacy.mechanisms import chosen_histograms, joint_histograms

Counts = list[npt.NDArray[np.int64]]
Shares = npt.NDArray[np.float64]


class Transcript:
    """The log likelihood ratio of "the unit is in", over all events of one fit.

    Attributes:
        without: the cohort without the unit; the hidden column included.
        within: the same cohort and the unit, last.
        score: the ratio so far.
    """

    def __init__(self, domain: Domain, without: Cohort, within: Cohort) -> None:
        """Know both data sets, before anything is released."""
        self.domain, self.without, self.within = domain, without, within
        self.score = 0.0
        self.released = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[Transcript]:
        """Stand behind the mechanisms of every fit that runs meanwhile, in this process."""
        heard = type("Heard", (_Heard,), {"transcript": self})
        with (
            mock.patch.object(measuring, "joint_histograms", self.joint),
            mock.patch.object(measuring, "chosen_histograms", self.chosen),
            mock.patch.object(measuring, "Binning", self.binned),
            mock.patch.object(trainer, "DpSgd", heard),
        ):
            yield self

    def joint(
        self, cohort: Cohort, sizes: Sequence[int], event: JointHistograms, entropy: Entropy
    ) -> Counts:
        """Release the columns, and read them."""
        seen = joint_histograms(cohort, sizes, event, entropy)
        known = [
            joint_histograms(levelled(each, self.domain), sizes, event, Silence(0))
            for each in (self.without, self.within)
        ]
        self._read(seen, known, [event.sigma] * len(seen))
        return seen

    def binned(
        self, domain: Domain, columns: tuple[MergedBins, ...], grains: Shares | None = None
    ) -> Binning:
        """Make the binning of a fit, and remember it."""
        self.binning = Binning(domain, columns, grains=grains)
        return self.binning

    def chosen(
        self,
        cohort: Cohort,
        sizes: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        sigmas: Sequence[float],
        event: ChosenHistograms,
        entropy: Entropy,
    ) -> Counts:
        """Release chosen pairs, and read them."""
        seen = chosen_histograms(cohort, sizes, pairs, sigmas, event, entropy)
        coarse = [Cohort(self.binning.coarsen(c), c.mask) for c in (self.without, self.within)]
        known = [
            chosen_histograms(each, sizes, pairs, sigmas, event, Silence(0)) for each in coarse
        ]
        self._read(seen, known, sigmas)
        return seen

    def _read(self, seen: Counts, known: Sequence[Counts], sigmas: Sequence[float]) -> None:
        self.released += len(seen)
        for noisy, without, within, sigma in zip(seen, *known, sigmas, strict=True):
            shift = (within - without).ravel() / sigma**2
            self.score += float((noisy - (without + within) / 2).ravel() @ shift)


class _Heard(DpSgd):
    """The real trainer, with an attacker behind it who knows which other units are in a batch.

    Whether those are drawn does not depend on the unit, so the claim holds against this attacker
    too. Where the network draws latent noise, the attacker knows that of each row. For this the
    noise of a step is drawn anew from one seed whenever it is needed. The unit comes last in a
    batch, so that the others have the same noise with and without it.
    """

    transcript: Transcript
    _others: slice
    _seed = 0

    def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
        """Draw the units of a step, and note whether the unit in question, the last, is drawn."""
        chosen = super().sample_batch(units)
        last = len(self.transcript.within.mask) - 1
        self._others = slice(0, int((chosen != last).sum()))
        return chosen

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take the step, and read the noisy sum off the update."""
        self._seed = int(self.entropy.generator().integers(2**62))
        units = Units.of(self.transcript.within, self.transcript.binning)
        rows = units.batch(np.array([len(units) - 1]))
        others = batch[self._others], mask[self._others]
        known = self.clipped_sum(loss, *others)
        both = (torch.cat(parts) for parts in zip(others, rows, strict=True))
        shift = self.clipped_sum(loss, *both) - known
        public = torch.zeros_like(shift)
        if anchor is not None:
            public = self._mean_gradient(loss, anchor) * self.anchor_weight
        optimizer, seen = self.optimizer, _Seen()
        self.optimizer = seen  # type: ignore[assignment]
        super().step(loss, batch, mask, anchor=anchor)
        self.optimizer = optimizer
        optimizer.step(seen.update.clone())
        update = (1 + self.anchor_weight) * seen.update - public
        noisy = update * self.expected_units - known
        along = float((noisy - shift / 2).double() @ shift.double())
        along /= (self.event.noise_multiplier * self.clipping_norm) ** 2
        grown = math.expm1(min(along, 500.0))
        self.transcript.score += math.log1p(self.event.sampling_rate * grown)

    def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        """Sum as the trainer does, with the latent noise of the step."""
        self._repeat_noise(loss, 0)
        return super().clipped_sum(loss, batch, mask)

    def _mean_gradient(self, loss: Any, batch: Any) -> Tensor:
        self._repeat_noise(loss, 1)
        return super()._mean_gradient(loss, batch)

    def _repeat_noise(self, loss: Any, part: int) -> None:
        """Start the latent noise of a part of the step afresh, if the network draws any."""
        if hasattr(loss.__self__, "noise"):
            loss.__self__.noise = np.random.default_rng((self._seed, part))


class _Seen:
    """In the place of the optimizer: keeps the update."""

    update: Tensor

    def step(self, gradient: Tensor) -> None:
        """Keep it."""
        self.update = gradient.clone()
