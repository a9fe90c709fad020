"""`autoregressive` of linked tables: networks of `cohort`'s tables, which learn from histories.

All that `cohort` releases is released here too, with most of the budget. A network of the person
table, which draws what became of a patient, and the networks of steps then learn from patients
themselves, by noisy gradients with the patient as the unit (`patient_units` says what she adds).
All are taken at the networks as they are by then, in coordinates of a prior (`score`), and the
weights move as far as their mean says (`scoring`). Counts and gradients are events of one plan,
calibrated together.

The weights of these networks depend on patients by the shares of pairs of columns alone, as the
counts do. But a patient moves a count of every pair by as much as she may, and of the gradient only
what the networks did not expect of her. So the gradient tells as much as counts of several times
the budget. It also tells what no count of pairs does: what two columns say together of the number
of rows of a patient (`persons.crosses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Histories
from dpsynth.models import Checkpoints, Progress
from dpsynth.models.dpsgd import clipping_norm_from, next_batch, trainer_of, training_state
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.drawn_steps import PATIENTS
from dpsynth.models.histories.generator import CohortGenerator
from dpsynth.models.histories.networks.choice import NETWORK, shares_of_linked
from dpsynth.models.histories.networks.crossing import learn_crosses
from dpsynth.models.histories.networks.kept_steps import steps_left
from dpsynth.models.histories.networks.patient_units import PERSON, PatientUnits
from dpsynth.models.histories.networks.score import Score
from dpsynth.models.histories.networks.scored_steps import ScoredSteps
from dpsynth.models.histories.networks.scoring import OF_PERSONS, NoisyScore, learn
from dpsynth.models.histories.networks.step_networks import StepNetworks
from dpsynth.models.histories.networks.training import trained_tables
from dpsynth.models.histories.persons.network import PersonNetwork
from dpsynth.models.histories.persons.table import one_row_each
from dpsynth.models.histories.row_grains import Found
from dpsynth.models.histories.row_weights import FirstRows
from dpsynth.models.histories.steps.distilled import distilled, settle
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.pairs import StepPlaces
from dpsynth.privacy import (
    Entropy,
    ObservedPlan,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
)

REHEARSAL = 4_000  # drawn patients on which the clipping norm is read off
QUANTILE = 0.8  # of their norms
NORM = "clipping_norm"

Ints = npt.NDArray[np.int64]
Models = Sequence[tuple[int, StepModel]]


class AutoregressiveHistories(CohortGenerator):
    """Person table and step tables, whose networks learn together from noisy gradients."""

    name = NETWORK

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
        """Take every step of the plan; their number is fixed beforehand."""
        rng = entropy.generator()
        models = self._with_taught(rng)
        persons = self.taught or self._taught(rng, progress)
        persons = persons.with_crosses(self.person, self.binning.columns)
        start = self._released(grains) | persons.arrays()
        self.network = persons
        scores = self._scores(persons, models)
        networks = StepNetworks(scores)
        drawn = self.sample(min(REHEARSAL, self.domain.population), rng)
        rehearsal = self._rows_and_steps(drawn, persons, models, entropy).with_one_step()
        norm = clipping_norm(networks, *rehearsal, checkpoints)
        trainer = trainer_of(
            networks,
            plan,
            clipping_norm=norm,
            population=self.domain.population,
            learning_rate=1.0,  # coordinates move by the sum of the mean gradients
            schedule="constant",
            optimizer="sgd",
            entropy=entropy,
            watch=lambda _: self._canaries(plan, persons, models),
        )
        units = self._rows_and_steps(histories, persons, models, entropy)
        for _ in steps_left(trainer, checkpoints, start, {NORM: norm}, progress):
            batch, mask = next_batch(trainer, units)
            trainer.step(networks.loss, batch, mask)
        steps = trainer.event
        expected = steps.sampling_rate * self.domain.population
        self._learn(persons, models, scores, steps.noise_multiplier * norm / expected, steps, rng)

    def _scores(self, persons: PersonNetwork, models: Models) -> list[Score]:
        """Return coordinates of the weights of the person table's network, and of the steps'."""
        columns = [self.binning.columns[place] for place in persons.order]
        cells = [self.person.features[place].cells for place in persons.order]
        found = [Score.of(persons.network, columns, cells, persons.crosses)]
        for _, model in models:
            cells = [feature.cells for feature in model.table.features]
            numbers = StepPlaces.of(model.table).numbers
            network = _network_of(model.network)
            found.append(Score.of(network, model.bins, cells, numbers=numbers))
        return found

    def _learn(
        self,
        persons: PersonNetwork,
        models: Models,
        scores: Sequence[Score],
        noise: float,
        event: PoissonSgd,
        rng: np.random.Generator,
    ) -> None:
        """Move the weights as the noisy gradients say, on patients that are drawn anew."""
        patients, order = min(PATIENTS, self.domain.population), list(persons.order)
        firsts = FirstRows(persons, self.binning.columns)
        before = [firsts.weights(model, self.person.hidden[place][0]) for place, model in models]
        noisy = NoisyScore.of(scores[0], noise, event.steps, PERSON)

        def rows() -> Ints:
            return persons.draw(patients, rng)[:, order]

        learn(persons.network, scores[0], noisy, rows, rng, OF_PERSONS)
        settle(persons.network, persons.products, rng)
        if persons.crosses is not None:
            learn_crosses(persons.network, persons.crosses, scores[0], noisy, rows())
        codes, starts = self._beginnings(patients, rng)
        for (place, model), score, known in zip(models, scores[1:], before, strict=True):
            moved = firsts.weights(model, self.person.hidden[place][0]) - known
            _network_of(model.network).skip.weight.data.add_(torch.from_numpy(moved))
            steps = ScoredSteps(model, starts[place][0], codes, rng)
            if steps.mass:
                noisy = NoisyScore.of(score, noise, event.steps, steps.mass)
                learn(_network_of(model.network), score, noisy, steps.rows, rng)

    def _with_taught(self, rng: np.random.Generator) -> Models:
        """Give each trained table a network, taught its mixture where it has none."""
        for place, model in self._trained():
            network = model.network or distilled(model.products, rng, given=model.table.drawn)
            self.models[place] = [replace(model, network=network)]
        return self._trained()

    def _trained(self) -> Models:
        """Return the steps of each trained table, with its place."""
        found = []
        for place in trained_tables(self.domain):
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


def clipping_norm(networks: Any, batch: Any, mask: Tensor, checkpoints: Checkpoints) -> float:
    """Read the clipping norm off drawn rows, once for all processes of a fit: post-processing."""
    state = training_state(checkpoints)
    if state is not None:
        return float(state.config[NORM])
    return clipping_norm_from(networks, networks.loss, batch, mask, QUANTILE, otherwise=1.0)


def _network_of(network: Network | None) -> Network:
    """Return a network where there is one."""
    assert network is not None
    return network
