"""`autoregressive` of linked tables: the networks of `cohort`'s steps, trained on with histories.

All that `cohort` releases is released here too, with a part of the budget. The networks of steps
are then trained by DP-SGD with the patient as the unit (`patient_units` says what she adds),
anchored to rows that they drew before: they learn what pairs of columns do not
show. Counts and steps of training are events of one plan, calibrated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpsynth.encoding import Histories
from dpsynth.models import Progress
from dpsynth.models.dpsgd import clipping_norm_from, trainer_of
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.generator import CohortGenerator
from dpsynth.models.histories.networks.choice import NETWORK, shares_of_linked
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.models.histories.networks.step_networks import ROWS, StepNetworks, public_rows
from dpsynth.models.histories.networks.training import Training, trained_tables
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps.distilled import distilled
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.privacy import (
    Entropy,
    ObservedPlan,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
)

REHEARSAL = 4_000  # drawn rows on which the clipping norm is read off
ANCHOR = 4_000  # drawn rows beside each private step
QUANTILE = 0.95
GUESSES = 20_000  # patients drawn to see how many have a step
LEAST = 0.01  # of the patients: noise must not make the divisor vanish

Models = Sequence[tuple[int, StepModel]]


class AutoregressiveHistories(CohortGenerator):
    """Person table and step tables, whose networks are trained by DP-SGD."""

    name = NETWORK

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run, with its share of the budget."""
        return shares_of_linked(self.name, self.domain, budget)

    def _train(
        self,
        histories: Histories,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
    ) -> None:
        """Run every step of the plan; their number and schedule are fixed beforehand."""
        rng = entropy.generator()
        settings = Training.of(self.domain, plan.budget)
        models = self._with_networks(plan.budget, rng)
        shares = self._shares_with_a_step(rng)
        most = max(shares)
        fitted = [network_of(model.network) for _, model in models]
        networks = StepNetworks(fitted)
        mixtures = [model.products for _, model in models]
        (rows, weights), has = public_rows(mixtures, fitted, [one / most for one in shares], rng)
        trainer = trainer_of(
            networks,
            plan,
            clipping_norm=clipping_norm_from(
                networks,
                networks.loss,
                (rows[:REHEARSAL], has[:REHEARSAL]),
                torch.ones(REHEARSAL, 1),
                QUANTILE,
                otherwise=1.0,
            ),
            population=max(1, round(most * self.domain.population)),
            learning_rate=settings.learning_rate,
            anchor_weight=settings.anchor,
            entropy=entropy,
            watch=lambda _: self._canaries(plan, models),
        )
        units = PatientUnits.of(histories, self.domain, models, entropy)
        for step in range(trainer.event.steps):
            batch, mask = units.batch(trainer.sample_batch(len(units)))
            turn = torch.arange(step * ANCHOR, (step + 1) * ANCHOR) % ROWS
            trainer.step(networks.loss, batch, mask, anchor=(rows[turn], weights[turn]))
            progress("training", (step + 1) / trainer.event.steps)

    def _with_networks(self, budget: PrivacyBudget, rng: np.random.Generator) -> Models:
        """Give each trained table a network, taught its mixture, and return them."""
        masked = HistorySettings.of(self.domain, budget).steps.masked
        for place, model in self._trained():
            given = model.table.drawn
            network = model.network or distilled(model.products, rng, masked=masked, given=given)
            self.models[place] = [replace(model, network=network)]
        return self._trained()

    def _trained(self) -> Models:
        """Return the steps of each trained table, with its place."""
        found = []
        for place in trained_tables(self.domain):
            (model,) = self.models[place]
            found.append((place, model))
        return found

    def _canaries(self, plan: Any, models: Any) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Return the canaries of an audit as a batch; their steps are alike, whichever are kept."""
        canaries = plan.observer.histories[0]
        return PatientUnits.of(canaries, self.domain, models, SeededEntropy(0)).whole()

    def _shares_with_a_step(self, rng: np.random.Generator) -> list[float]:
        """Say how many patients have a step in each trained table, as released: of patients drawn.

        The sums of private gradients are divided by their number. That is no private number here:
        it follows from noisy counts.
        """
        codes = self._patients(GUESSES, rng)
        found = []
        for place in trained_tables(self.domain):
            (series,), (hidden,) = self.domain.tables[place].series, self.person.hidden[place]
            found.append(float((series.counts.draw(codes[:, hidden.count], rng) > 1).mean()))
        return [max(LEAST, one) for one in found]


def network_of(network: Network | None) -> Network:
    """Return a network where there is one."""
    assert network is not None
    return network
