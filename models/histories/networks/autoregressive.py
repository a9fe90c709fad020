"""`autoregressive` of linked tables: networks of `cohort`'s tables, trained on with histories.

All that `cohort` releases is released here too, with a part of the budget. A network of the person
table, which draws what became of a patient, and the networks of steps are then trained by
DP-SGD with the patient as the unit (`patient_units` says what she adds), anchored to rows that
follow from what was released: they learn what pairs of columns do not show. Counts and steps of
training are events of one plan, calibrated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Histories
from dpsynth.models import Checkpoints, Progress
from dpsynth.models.dpsgd import clipping_norm_from, trainer_of, training_state
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.generator import CohortGenerator
from dpsynth.models.histories.networks.choice import NETWORK, shares_of_linked
from dpsynth.models.histories.networks.kept_steps import steps_left
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.models.histories.networks.step_networks import (
    ROWS,
    StepNetworks,
    public_rows,
    step_rows,
)
from dpsynth.models.histories.networks.training import Training, trained_tables
from dpsynth.models.histories.persons.network import PersonNetwork
from dpsynth.models.histories.persons.table import one_row_each
from dpsynth.models.histories.row_grains import Found
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps.distilled import distilled, settle
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
NORM = "clipping_norm"
GUESSES = 20_000  # patients drawn to see how many have a step
LEAST = 0.01  # of the patients: noise must not make the divisor vanish

Models = Sequence[tuple[int, StepModel]]


class AutoregressiveHistories(CohortGenerator):
    """Person table and step tables, whose networks are trained together by DP-SGD."""

    name = NETWORK
    resumable: ClassVar[bool] = True
    narrow: ClassVar[bool] = False  # whether steps of few columns have a network, too

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run, with its share of the budget."""
        return shares_of_linked(self.name, self.domain, budget)

    def _train(
        self,
        histories: Histories,
        grains: Found,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
        checkpoints: Checkpoints,
    ) -> None:
        """Run every step of the plan; their number and schedule are fixed beforehand."""
        rng = entropy.generator()
        settings = Training.of(self.domain, plan.budget)
        models = self._with_networks(plan.budget, rng)
        persons = self.taught or PersonNetwork.taught(self.person, self.products, rng, progress)
        start = self._released(grains) | persons.arrays()
        networks = StepNetworks([persons.network, *(network_of(one.network) for _, one in models)])
        (rows, weights), has = self._public(persons, models, rng)
        rehearsal = (rows[:REHEARSAL], has[:REHEARSAL]), torch.ones(REHEARSAL, 1)
        norm = clipping_norm(networks, *rehearsal, checkpoints)
        trainer = trainer_of(
            networks,
            plan,
            clipping_norm=norm,
            population=self.domain.population,
            learning_rate=settings.learning_rate,
            anchor_weight=settings.anchor,
            entropy=entropy,
            watch=lambda _: self._canaries(plan, persons, models),
        )
        units = self._rows_and_steps(histories, persons, models, entropy)
        for step in steps_left(trainer, checkpoints, start, {NORM: norm}, progress):
            batch, mask = units.batch(trainer.sample_batch(len(units)))
            turn = torch.arange(step * ANCHOR, (step + 1) * ANCHOR) % ROWS
            trainer.step(networks.loss, batch, mask, anchor=(rows[turn], weights[turn]))
        settle(persons.network, persons.products, rng)
        self.network = persons

    def _public(self, persons: PersonNetwork, models: Models, rng: np.random.Generator) -> Any:
        """Draw rows of all tables that cost nothing, as `public_rows` lays them out."""
        drawn = [self.products.draw(ROWS, rng)[:, persons.order]]
        drawn += [step_rows(one.products, network_of(one.network), rng) for _, one in models]
        return public_rows(drawn, [1.0, *self._shares_with_a_step(rng)], rng)

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
        for place in trained_tables(self.domain, narrow=self.narrow):
            (model,) = self.models[place]
            found.append((place, model))
        return found

    def _rows_and_steps(
        self, histories: Histories, persons: PersonNetwork, models: Models, entropy: Entropy
    ) -> PatientUnits:
        """Return patients with their rows of the person table and their steps."""
        steps = PatientUnits.of(histories, self.domain, models, entropy)
        rows = self._person_bins(self.person.codes(histories))
        return steps.with_rows(rows[:, persons.order])

    def _canaries(
        self, plan: Any, persons: PersonNetwork, models: Models
    ) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Return the canaries of an audit as a batch; their steps are alike, whichever are kept."""
        canaries = plan.observer.histories[0]
        return self._rows_and_steps(canaries, persons, models, SeededEntropy(0)).whole()

    def _person_bins(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint16]:
        cohort = one_row_each(codes.astype(np.uint16))
        return np.asarray(self.binning.coarsen(cohort)[:, 0])

    def _shares_with_a_step(self, rng: np.random.Generator) -> list[float]:
        """Say how many patients have a step in each trained table, as released: of patients drawn.

        That is no private number here: it follows from noisy counts.
        """
        codes = self._patients(GUESSES, rng)
        found = []
        for place in trained_tables(self.domain, narrow=self.narrow):
            (series,), (hidden,) = self.domain.tables[place].series, self.person.hidden[place]
            found.append(float((series.counts.draw(codes[:, hidden.count], rng) > 1).mean()))
        return [max(LEAST, one) for one in found]


def clipping_norm(networks: Any, batch: Any, mask: Tensor, checkpoints: Checkpoints) -> float:
    """Read the clipping norm off drawn rows, once for all processes of a fit: post-processing."""
    state = training_state(checkpoints)
    if state is not None:
        return float(state.config[NORM])
    return clipping_norm_from(networks, networks.loss, batch, mask, QUANTILE, otherwise=1.0)


def network_of(network: Network | None) -> Network:
    """Return a network where there is one."""
    assert network is not None
    return network
