"""Games on DP-SGD: one step, several composed steps, units of several rows.

The network is one affine map and the loss is linear in it, so that every unit's gradient is known:
its rows, summed. The unit in question has a gradient far above the clipping norm, along a direction
of its own; some others are always there. The attacker sees every noisy sum, as the accountant
assumes, and scores by the likelihood ratio: log(1 - q + q exp((x - 1/2) / sigma^2)) a step, x the
sum along the unit's clipped gradient over its squared norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from distinguishing_game import Game
from torch import Tensor
from tradeoff_curves import GaussianCurve, StepsCurve, TradeoffCurve

from dpsynth.models.dpsgd.layers import Activations, Linear
from dpsynth.models.dpsgd.optimizer import DpSgd
from dpsynth.privacy.accounting import epsilon
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import PoissonSgd

DELTA = 1e-5
WIDTH, LONG, C = 24, 1e3, 0.5
OTHERS = 3
STEPS = 10  # of the games on composed steps

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sum(torch.nn.Module):
    """An affine map to one number, which is also its loss."""

    def __init__(self) -> None:
        """Make the map; its weights do not matter."""
        super().__init__()
        self.map = Linear(WIDTH, 1, generator=torch.Generator().manual_seed(0))

    def forward(self, rows: Tensor, activations: Activations | None = None) -> Tensor:
        """Return one loss a row."""
        return self.map(rows, activations).squeeze(-1)


class Recorder:
    """In the place of the optimizer: sees every update, and moves nothing."""

    def __init__(self) -> None:
        """Start without having seen anything."""
        self.seen: list[Tensor] = []

    def step(self, gradient: Tensor) -> None:
        """Keep a noisy gradient."""
        self.seen.append(gradient.clone())


class HalfTheNoise(DpSgd):
    """Broken twin."""

    def _noise(self) -> Tensor:
        return super()._noise() / 2


class TooLong(DpSgd):
    """Broken twin."""

    def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        """Return a sum in which a unit is three times as long as the noise was made for."""
        return 3 * super().clipped_sum(loss, batch, mask)


class RowByRow(DpSgd):
    """Broken twin: each row is clipped on its own."""

    def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        """Return the sum of clipped rows."""
        return super().clipped_sum(loss, batch.reshape(-1, 1, WIDTH), mask.reshape(-1, 1))


class AlwaysIn(DpSgd):
    """Broken twin: the sampler takes the last unit every time."""

    def sample_batch(self, units: int) -> Ints:
        """Draw a batch, and add the last unit."""
        chosen = np.union1d(super().sample_batch(units), [units - 1])
        self._drawn = len(chosen)
        return chosen


class RealDivisor(DpSgd):
    """Broken twin: the sum is divided by the number of units that were drawn."""

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take a step over the realised batch."""
        self.expected_units = max(1, len(mask))
        super().step(loss, batch, mask, anchor=anchor)


class SkipsEmpty(DpSgd):
    """Broken twin: a step without units leaves the network as it is."""

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take a step, or none."""
        if len(mask):
            return super().step(loss, batch, mask, anchor=anchor)
        self._drawn = None
        self.optimizer.step(torch.zeros_like(self.flat.values))


@dataclass(frozen=True)
class Training:
    """What is trained, and how.

    Attributes:
        name: of the game.
        rate: sampling rate.
        steps: of one run.
        noise: multiplier.
        rows: rows of each unit.
        others: units that are there in any case.
        engine: the trainer, or a broken twin of it.
    """

    name: str
    rate: float = 1.0
    steps: int = 1
    noise: float = 1.4
    rows: int = 1
    others: int = OTHERS
    engine: type[DpSgd] = DpSgd


def trained(training: Training, source: Entropy, *, member: bool, runs: int) -> Floats:
    """Return the noisy sums over the clipping norm, ``[runs, steps, parameters]``."""
    steps = runs * training.steps
    units = training.others + member
    rows = torch.zeros(units, training.rows, WIDTH)
    for unit in range(units):  # each along an axis of its own; the one in question along the first
        axis = 0 if unit == training.others else 1 + unit
        rows[unit, :, axis] = LONG
    network = Sum()
    engine = training.engine(
        network,
        event=PoissonSgd("steps", training.rate, steps, training.noise),
        clipping_norm=C,
        population=OTHERS + 1,
        learning_rate=0.1,
        entropy=source,
        schedule="constant",
        optimizer="sgd",
    )
    public = engine.expected_units
    observer = Recorder()
    engine.optimizer = observer  # type: ignore[assignment]
    for _ in range(steps):
        batch = rows[engine.sample_batch(units)]
        engine.step(network, batch, torch.ones(batch.shape[:2]))
    seen = torch.stack(observer.seen).numpy().astype(np.float64) * public / C
    return seen.reshape(runs, training.steps, -1)


def along(training: Training, source: Entropy) -> Callable[[bool, int], Floats]:
    """Score by the likelihood ratio along the unit's gradient."""

    def scores(member: bool, runs: int) -> Floats:
        seen = trained(training, source, member=member, runs=runs)[:, :, 0]
        grown = np.exp(np.minimum((seen - 0.5) / training.noise**2, 500.0))
        return np.asarray(np.log(1 - training.rate + training.rate * grown).sum(axis=1))

    return scores


def spread(training: Training, source: Entropy, sign: int) -> Callable[[bool, int], Floats]:
    """Score by how much noise there is, or how little, away from all gradients: it says nothing."""

    def scores(member: bool, runs: int) -> Floats:
        seen = trained(training, source, member=member, runs=runs)[:, :, OTHERS + 1 :]
        return np.asarray(sign * np.square(seen).mean(axis=(1, 2)))

    return scores


ONE = Training("one step")
SAMPLED = Training("one sampled step", rate=0.5, noise=1.0)
MANY = Training("ten steps", rate=0.25, steps=STEPS, noise=1.0)
ROWS = Training("one step, four rows", rows=4)


def game(training: Training, source: Entropy, *, by_spread: int = 0) -> Game:
    """Make the game of a training; the claim is what the package accounts for it.

    Args:
        training: what is trained.
        source: of noise and sampling.
        by_spread: score by the spread of the noise, upwards (1) or downwards (-1); 0: by the
            likelihood ratio.
    """
    event = PoissonSgd("steps", training.rate, training.steps, training.noise)
    claimed = epsilon([event], DELTA)
    plain = training.rate == 1 and training.steps == 1
    steps = StepsCurve(training.noise, training.rate, training.steps)
    curve: TradeoffCurve = GaussianCurve(1 / training.noise) if plain else steps
    if by_spread:
        scores = spread(training, source, by_spread)
        return Game(training.name, scores, curve, claimed, DELTA, tight=False)
    tight = plain or training.steps > 1  # one sampled step would need many runs
    scores = along(training, source)
    return Game(training.name, scores, curve, claimed, DELTA, cut=0.0, tight=tight)


def sound(source: Entropy) -> list[Game]:
    """List the games on the engine as it is."""
    divided = replace(ONE, name="one step, by its spread")
    empty = replace(ONE, name="one sampled step, nobody else", rate=0.5, noise=1.0, others=0)
    return [
        *(game(training, source) for training in (ONE, SAMPLED, MANY, ROWS, empty)),
        game(divided, source, by_spread=-1),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins of the engine."""

    def twin(training: Training, engine: type[DpSgd], name: str, **others: int) -> Training:
        return replace(training, engine=engine, name=f"{training.name}: {name}", **others)

    rarely = replace(SAMPLED, rate=0.1, noise=0.8)
    divided = twin(ONE, RealDivisor, "divided by the real batch")
    skipped = twin(SAMPLED, SkipsEmpty, "no noise where the batch is empty", others=0)
    return [
        game(twin(ONE, HalfTheNoise, "half the noise"), source),
        game(twin(MANY, HalfTheNoise, "half the noise"), source),
        game(twin(ONE, TooLong, "three times the clipping norm"), source),
        game(twin(ROWS, RowByRow, "clipped row by row"), source),
        game(twin(rarely, AlwaysIn, "the unit is always drawn"), source),
        game(twin(MANY, AlwaysIn, "the unit is always drawn"), source),
        game(divided, source, by_spread=-1),
        game(skipped, source, by_spread=1),
    ]
