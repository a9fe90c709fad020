"""`tvae` of linked tables: a latent vector that belongs to a patient, shared by all her steps.

The person table is that of `cohort`. Given a patient's row, `latent_network` draws her latent
vector and then her steps. What a patient adds to a private step is said in `patient_units`; her
row, her mean step and her latent noise are hers alone, and she is clipped once with all of it.
Encoder and decoders are warmed up on histories that `cohort` draws: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Histories
from dpsynth.models import Checkpoints, Progress
from dpsynth.models.dpsgd import PlainSgd, next_batch, trainer_of, training_state
from dpsynth.models.generators.network_weights import arrays_of, load_arrays
from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.histories.networks.autoregressive import (
    NORM,
    AutoregressiveHistories,
    Models,
    clipping_norm,
    network_of,
)
from dpsynth.models.histories.networks.kept_steps import steps_left
from dpsynth.models.histories.networks.latent_network import Decoders, LatentBatch, LatentNetworks
from dpsynth.models.histories.networks.latent_units import (
    LatentUnits,
    hot_rows,
    without_padding,
)
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.models.histories.networks.training import Training
from dpsynth.models.histories.row_grains import Found
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.privacy import Entropy, ObservedPlan, PrivacyPlan, SeededEntropy

DRAWN = 20_000  # patients drawn for the warm-up, the clipping norm and the anchor
WARM_STEPS, WARM_BATCH, WARM_RATE = 300, 500, 0.003
ANCHOR = 500  # drawn patients beside each private step
REHEARSAL = 2_000  # drawn patients on which the clipping norm is read off
QUANTILE = 0.95  # of their norms
SHARE = "share_with_a_step"
LEAST = 0.01  # of the patients: noise must not make the divisor vanish

Ints = npt.NDArray[np.int64]


class TvaeHistories(AutoregressiveHistories):
    """Person table, and step tables drawn with a patient's latent vector."""

    name = "tvae"
    narrow = True
    hidden = True
    decoders: Decoders | None = None

    def _train(
        self,
        histories: Histories,
        grains: Found,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
        checkpoints: Checkpoints,
    ) -> None:
        """Warm up on drawn histories; then run every step of the plan."""
        self.decoders = None
        rng = entropy.generator()
        settings = Training.of(self.domain, plan.budget)
        state = training_state(checkpoints)
        models = self._with_taught(plan.budget, rng)
        start = self._released(grains)
        seed = torch.Generator().manual_seed(int(rng.integers(2**31)))
        tables = [network_of(model.network) for _, model in models]
        networks = LatentNetworks(tables, sum(self.binning.sizes), generator=seed)
        drawn = self._units(super().sample(DRAWN, rng), models, SeededEntropy(0), rng)
        known = rng.permutation(drawn.with_a_step())
        if not len(known):
            known = np.arange(len(drawn))
        if state is None:
            self._warm_up(networks, drawn, known, progress)
        norm = clipping_norm(networks, *drawn.batch(known[:REHEARSAL]), QUANTILE, checkpoints)
        share = len(drawn.with_a_step()) / DRAWN if state is None else state.config[SHARE]
        share = max(LEAST, share)
        trainer = trainer_of(
            networks,
            plan,
            clipping_norm=norm,
            population=max(1, round(share * self.domain.population)),
            learning_rate=settings.learning_rate,
            anchor_weight=settings.anchor,
            entropy=entropy,
            watch=lambda _: self._heard(plan, models),
        )
        units = self._units(histories, models, entropy, entropy.generator())
        config = {NORM: norm, SHARE: share}
        for step in steps_left(trainer, checkpoints, start, config, progress):
            batch, mask = next_batch(trainer, units)
            anchor = drawn.batch(_in_turn(known, step, ANCHOR))
            trainer.step(networks.loss, batch, mask, anchor=without_padding(*anchor))
        self.decoders = networks.decoders

    def _warm_up(
        self, networks: LatentNetworks, drawn: LatentUnits, known: Ints, progress: Progress
    ) -> None:
        trainer = PlainSgd(
            networks,
            learning_rate=WARM_RATE,
            steps=WARM_STEPS,
            schedule="cosine",
            optimizer="adam",
        )
        for step in range(WARM_STEPS):
            trainer.step(networks.loss, *drawn.batch(_in_turn(known, step, WARM_BATCH)))
            progress("warming up", (step + 1) / WARM_STEPS)

    def _units(
        self, histories: Histories, models: Models, entropy: Entropy, noise: np.random.Generator
    ) -> LatentUnits:
        steps = PatientUnits.of(histories, self.domain, models, entropy)
        person = self._person_bins(self.person.codes(histories))
        widths = [[column.count for column in model.bins] for _, model in models]
        return LatentUnits(steps, person, self.binning.sizes, widths, noise)

    def _heard(self, plan: Any, models: Models) -> tuple[LatentBatch, Tensor]:
        """Return the canaries of an audit as a batch."""
        canaries, noise = plan.observer.histories[0], np.random.default_rng(0)
        return self._units(canaries, models, SeededEntropy(0), noise).whole()

    def _drawing(self, codes: Ints, rng: np.random.Generator) -> list[list[StepModel]]:
        """Draw each patient's latent vector, given her row; it moves the logits of her steps."""
        if self.decoders is None:  # while it is warmed up
            return self.models
        models = list(self.models)
        with torch.no_grad():
            mean, spread = self.decoders.law(hot_rows(self._person_bins(codes), self.binning.sizes))
            noise = torch.from_numpy(rng.standard_normal(tuple(mean.shape), dtype=np.float32))
            latent = mean + torch.exp(0.5 * spread) * noise
            for layer, (place, model) in zip(self.decoders.out, self._trained(), strict=True):
                models[place] = [replace(model, pull=layer(latent))]
        return models

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give all that was learned, by name; of the latent vector, what draws histories."""
        assert self.decoders is not None
        return super().arrays() | arrays_of(self.decoders, "latent")

    @classmethod
    def restore(
        cls,
        domain: HistoryDomain,
        config: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Rebuild a fitted generator."""
        fitted = super().restore(domain, config, arrays)
        networks = [network_of(model.network) for _, model in fitted._trained()]
        drawn = [network.codes - network.before for network in networks]
        seed = torch.Generator().manual_seed(0)
        fitted.decoders = Decoders(sum(fitted.binning.sizes), drawn, generator=seed)
        load_arrays(fitted.decoders, "latent", arrays)
        return fitted


def _in_turn(known: Ints, step: int, size: int) -> Ints:
    """Take the next patients in turn."""
    return known[np.arange(step * size, (step + 1) * size) % len(known)]
