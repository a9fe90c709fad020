"""Games on the networks of linked tables: a private step over whole histories, and a whole fit.

The neighbour is a patient with as many rows as count in four tables, all alike, so that the
gradients of her steps point one way. Histories are coded and laid out as units by the code of the
fit, and the step is that of the real engine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from audit_fit import CLIPPED_SUM
from distinguishing_game import Game
from network_patients import OTHERS, domain, patients, tiny
from torch import Tensor
from tradeoff_curves import GaussianCurve, StepsCurve

from dpsynth.models.auditing import Transcript
from dpsynth.models.auditing.transcript import ObservedSgd
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.histories import one_row_each
from dpsynth.models.histories.networks import AutoregressiveHistories, step_networks
from dpsynth.privacy.accounting import gaussian_mu
from dpsynth.privacy.entropy import Entropy, SeededEntropy
from dpsynth.privacy.events import PoissonSgd
from dpsynth.privacy.plan import ObservedPlan, PrivacyBudget, PrivacyPlan

Floats = npt.NDArray[np.float64]
Batch = tuple[tuple[Tensor, Tensor], Tensor]

STEP = PrivacyBudget(epsilon=3.0, delta=1e-5)
FIT = PrivacyBudget(epsilon=4.0, delta=1e-5)
CLIPPING = 0.01  # far below the norm of anybody's gradient: she moves the sum by all of it


@cache
def learned() -> Any:
    """Return a fit of the patients without the one who is attacked, before its private steps."""
    generator, noise = AutoregressiveHistories(domain()), SeededEntropy(1)
    with tiny(), mock.patch.object(DpSgd, "step", lambda self, *_, **__: _still(self)):
        plan = PrivacyPlan.calibrate(FIT, generator.shares(FIT))
        return generator.fit(patients()[0], plan, noise)


def _still(trainer: DpSgd) -> None:
    trainer._drawn = None


def whole(batch: Batch) -> Batch:
    """Leave a batch as it is."""
    return batch


def step_by_step(batch: Batch) -> Batch:
    """Make each place of a patient a unit of its own: a broken twin."""
    (rows, weights), mask = batch
    rows, weights = (part.flatten(0, 1)[:, None] for part in (rows, weights))
    return (rows, weights), mask.flatten()[:, None]


def table_by_table(batch: Batch) -> Batch:
    """Make each table of a patient a unit of its own: a broken twin."""
    (rows, weights), mask = batch
    own = torch.eye(weights.shape[2])
    rows, mask = (torch.cat([part] * len(own)) for part in (rows, mask))
    return (rows, torch.cat([weights * one for one in own])), mask


def training_of() -> tuple[step_networks.StepNetworks, tuple[Batch, Batch]]:
    """Return the networks of a fit, and its patients without and with the attacked one."""
    fitted, source = learned(), SeededEntropy(0)
    models = [(place, of_table[0]) for place, of_table in enumerate(fitted.models)]
    persons = fitted.network
    units = [fitted._rows_and_steps(each, persons, models, source).whole() for each in patients()]
    return step_networks.StepNetworks(fitted._scores(persons, models)), (units[0], units[1])


def step_game(
    name: str,
    source: Entropy,
    layout: Callable[[Batch], Batch] = whole,
    *,
    halved: bool = False,
) -> Game:
    """Make the game of one private step in which everybody takes part.

    Args:
        name: of the game.
        source: of noise.
        layout: of the units of a batch; a broken twin has another.
        halved: the broken twin: half the noise.
    """
    mu = gaussian_mu(STEP.epsilon, STEP.delta)
    paid = PoissonSgd("step", 1.0, 1, 1 / mu)
    networks, units = training_of()
    batches = [layout(each) for each in units]
    trainer = DpSgd(
        networks,
        event=paid,
        clipping_norm=CLIPPING,
        population=OTHERS,
        learning_rate=0.01,
        entropy=source,
        schedule="constant",
        optimizer="sgd",
    )
    without, within = (trainer.clipped_sum(networks.loss, *batch) for batch in batches)
    part = 0.5 if halved else 1.0

    def scores(member: bool, runs: int) -> Floats:
        found = []
        bare = within if member else without
        with mock.patch.object(trainer, "clipped_sum", lambda *_: bare.clone()):
            for _ in range(runs):
                seen = trainer.noisy_sum(networks.loss, *batches[member]).double()
                seen = bare + part * (seen - bare)
                found.append(float((seen - (without + within) / 2) @ (within - without)))
        return np.array(found) / (CLIPPING / mu) ** 2

    return Game(name, scores, GaussianCurve(mu), STEP.epsilon, STEP.delta, cut=0.0, tight=True)


def _five_times(self: DpSgd, loss: Any, batch: Any, mask: Tensor) -> Tensor:
    return 5 * CLIPPED_SUM(self, loss, batch, mask)


class Heard(ObservedSgd):
    """Steps of which an attacker computes the likelihood ratio of the patient's presence."""

    def _tell(self, loss: Any, residual: Tensor) -> None:
        own = self.clipped_sum(loss, *self.watch(self.observer.directions))
        scale = (self.event.noise_multiplier * self.clipping_norm) ** 2
        ratio = float(residual.double() @ own - own @ own / 2) / scale
        rate = self.event.sampling_rate
        self.observer.steps.linear[0] += np.logaddexp(np.log1p(-rate), np.log(rate) + ratio)


class Attacker(Transcript):
    """Hears counts, and the likelihood ratio of steps."""

    trains = Heard


def fit_game(name: str, source: Entropy, *, unclipped: bool = False) -> Game:
    """Make the game of a whole fit; an observer adds up the likelihood ratio.

    Args:
        name: of the game.
        source: of noise.
        unclipped: the broken twin: a patient counts five times what the noise was made for.
    """
    without, within = patients()
    patient = within.take(np.array([OTHERS]))
    generator = AutoregressiveHistories(domain())
    with tiny():
        plan = PrivacyPlan.calibrate(FIT, generator.shares(FIT))
    known = [one_row_each(generator.person.codes(one)) for one in (patient, without)]
    broken = mock.patch.object(DpSgd, "clipped_sum", _five_times) if unclipped else nullcontext()

    def scores(member: bool, runs: int) -> Floats:
        found = []
        with tiny(), broken:
            for _ in range(runs):
                heard = Attacker(known[0], known[1], (patient, without))
                terms = ObservedPlan(plan, heard)
                AutoregressiveHistories(domain()).fit(within if member else without, terms, source)
                counts = heard.counts.linear[0] - heard.counts.gram[0, 0] / 2
                found.append(counts + heard.steps.linear[0])
        return np.array(found)

    steps = cast(PoissonSgd, plan.event("DP-SGD steps"))
    counts = [event.mu() for event in plan.events if event is not steps]
    mu = float(np.hypot.reduce(counts))
    curve = StepsCurve(steps.noise_multiplier, steps.sampling_rate, steps.steps, mu)
    return Game(name, scores, curve, plan.epsilon, FIT.delta, cut=0.0, tight=False)


NAME = "a private step over whole histories"
WHOLE = "a whole fit of histories"
MODEL = AutoregressiveHistories.name


def sound(source: Entropy) -> list[Game]:
    """List the games on the networks as they are trained."""
    return [
        step_game(f"{NAME}: {MODEL}", source),
        fit_game(f"{WHOLE}: {MODEL}", source),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    own = f"{NAME}, {MODEL}"
    return [
        step_game(f"{own}: half the noise", source, halved=True),
        step_game(f"{own}: clipped step by step", source, step_by_step),
        step_game(f"{own}: clipped in each table", source, table_by_table),
        fit_game(f"{WHOLE}, {MODEL}: five times the clipping norm", source, unclipped=True),
    ]
