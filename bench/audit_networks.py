"""Games on the networks of linked tables: a private step over whole histories, and a whole fit.

The neighbour is a patient with as many rows as count in four tables, all alike, so that the
gradients of her steps point one way. Histories are coded and laid out as units by the code of the
fit, and the step is that of the real engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from audit_fit import CLIPPED_SUM
from audit_histories import Patients
from torch import Tensor

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.eval.attack_stats.distinguishing_game import Game
from dpsynth.eval.attack_stats.tradeoff import GaussianCurve, StepsCurve
from dpsynth.models import Feature, histories_class
from dpsynth.models.auditing import Transcript
from dpsynth.models.auditing.transcript import ObservedSgd
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories import HistoryDomain, HistoryTable, Series, one_row_each
from dpsynth.models.histories.networks import autoregressive, step_networks
from dpsynth.models.histories.networks.patient_units import KEPT, PatientUnits
from dpsynth.models.histories.networks.training import Training
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import fit as step_fit
from dpsynth.models.histories.steps.events import StepSettings
from dpsynth.models.marginals import MergedBins
from dpsynth.privacy.entropy import Entropy, SeededEntropy
from dpsynth.privacy.events import PoissonSgd
from dpsynth.privacy.gaussian import gaussian_mu
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan
from dpsynth.privacy.plan_variants import ObservedPlan

Floats = npt.NDArray[np.float64]
Batch = tuple[tuple[Tensor, Tensor], Tensor]

STEP = PrivacyBudget(epsilon=3.0, delta=1e-5)
FIT = PrivacyBudget(epsilon=4.0, delta=1e-5)
OTHERS = 4
TABLES = ("visits", "stays", "tests", "drugs")
MOST = KEPT + 1  # rows of the patient: as many steps as count
CLIPPING = 0.01  # far below the norm of anybody's gradient: she moves the sum by all of it
TINY = HistorySettings(3, 3, 1, 1.0, StepSettings(3, 3, 1, 1.0, 4))
TRAINING = Training(share=0.5, sampling_rate=0.25, steps=6, learning_rate=0.01, anchor=1.0)


def patients() -> Patients:
    """Return a few patients, and the same with one more, who has as many steps as count."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in TABLES:
        who = np.repeat(np.arange(OTHERS + 1), [*rng.integers(2, 5, OTHERS), MOST])
        values = rng.integers(0, 2, (len(who), 2)).astype(np.uint16)
        values[who == OTHERS] = (2, 1)
        tables.append((SeriesRows(who, np.zeros(len(who), np.int64), values),))
    codes = np.zeros((OTHERS + 1, 1), dtype=np.uint16)
    codes[-1] = 2
    ends, nothing = np.zeros(OTHERS + 1, np.int64), np.empty((OTHERS + 1, 0), np.int64)
    within = Histories(codes, ends, nothing, tuple(tables))
    return within.take(np.arange(OTHERS)), within


def domain() -> HistoryDomain:
    """Return four tables of rows of one kind."""
    columns = (Feature("ward", 3, 0), Feature("drug", 2, 0))
    tables = tuple(
        HistoryTable(name, (Series(name, columns, MOST),), False, 1, (False, False))
        for name in TABLES
    )
    return HistoryDomain((Feature("age", 3, 0),), (), tables, 0, 0, OTHERS + 1)


@contextmanager
def tiny() -> Iterator[None]:
    """Fit in some milliseconds."""
    torch.set_num_threads(1)
    few: list[tuple[Any, str, Any]] = [
        (HistorySettings, "of", lambda *_: TINY),
        (Training, "of", lambda *_: TRAINING),
        (autoregressive, "REHEARSAL", 50),
        (autoregressive, "ANCHOR", 8),
        (autoregressive, "ROWS", 50),
        (autoregressive, "GUESSES", 50),
        (step_networks, "ROWS", 50),
        (autoregressive, "distilled", _untaught),
        (step_fit, "merge", _a_bin_each),
    ]
    patches = [mock.patch.object(*one) for one in few]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def _untaught(products: Any, rng: np.random.Generator, *, masked: int, given: int) -> Any:
    shape = Shape(products.sizes, masked, given)
    return Network(shape, generator=torch.Generator().manual_seed(0))


def _a_bin_each(leaves: Any, **_: Any) -> MergedBins:
    """Keep all codes apart: among so few patients noise would merge them into one bin."""
    codes = len(leaves.leaf_of)
    return MergedBins(np.arange(codes), np.full(codes, 1 / codes))


@cache
def learned() -> Any:
    """Return a fit of the patients without the one who is attacked, before its private steps."""
    generator, noise = histories_class("autoregressive")(domain()), SeededEntropy(1)
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
    return (rows.flatten(0, 1)[:, None], weights.flatten(0, 1)[:, None]), mask.flatten()[:, None]


def table_by_table(batch: Batch) -> Batch:
    """Make each table of a patient a unit of its own: a broken twin."""
    (rows, weights), mask = batch
    parts = [weights * one for one in torch.eye(weights.shape[2])]
    return (torch.cat([rows] * len(parts)), torch.cat(parts)), torch.cat([mask] * len(parts))


def step_game(
    name: str, source: Entropy, layout: Callable[[Batch], Batch] = whole, *, halved: bool = False
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
    fitted = learned()
    models = [(place, of_table[0]) for place, of_table in enumerate(fitted.models)]
    networks = step_networks.StepNetworks([model.network for _, model in models])
    batches = [
        layout(PatientUnits.of(each, fitted.domain, models, SeededEntropy(0)).whole())
        for each in patients()
    ]
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
        for _ in range(runs):
            seen = trainer.noisy_sum(networks.loss, *batches[member]).double()
            bare = within if member else without
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


def fit_game(name: str, model: str, source: Entropy, *, unclipped: bool = False) -> Game:
    """Make the game of a whole fit; an observer adds up the likelihood ratio.

    Args:
        name: of the game.
        model: the generator's name.
        source: of noise.
        unclipped: the broken twin: a patient counts five times what the noise was made for.
    """
    without, within = patients()
    patient = within.take(np.array([OTHERS]))
    kind = histories_class(model)
    generator = kind(domain())
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
                kind(domain()).fit(within if member else without, terms, source)
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
MODELS = ("autoregressive",)  # `tvae` takes its steps with the same engine


def sound(source: Entropy) -> list[Game]:
    """List the games on the networks as they are trained."""
    return [
        step_game(NAME, source),
        *(fit_game(f"{WHOLE}: {model}", model, source) for model in MODELS),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    return [
        step_game(f"{NAME}: half the noise", source, halved=True),
        step_game(f"{NAME}: clipped step by step", source, step_by_step),
        step_game(f"{NAME}: clipped in each table", source, table_by_table),
        *(
            fit_game(
                f"{WHOLE}, {model}: five times the clipping norm", model, source, unclipped=True
            )
            for model in MODELS
        ),
    ]
