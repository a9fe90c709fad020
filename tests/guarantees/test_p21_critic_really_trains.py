"""P21: a private GAN that trains nothing, because one gradient overwrites the other.

The critic's step needs the gradient on real rows, clipped and noised, plus the gradient on
generated rows. Where the private engine writes its own gradient over what the generated rows left
behind, or the other way round, the critic learns to call everything real, or everything generated.

With the noise next to nothing and a bound that clips nothing, a private step must be the step of
plain torch on both gradients; and on a toy in which real and generated rows can be told apart, the
critic must tell them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dpsynth.models.dpsgd import DpSgd, trainer_of
from dpsynth.models.dpsgd import trainer as training
from dpsynth.models.generators import Critic
from dpsynth.models.generators.ctgan import FAKE, REAL, Batch
from dpsynth.privacy import PoissonSgd, SeededEntropy

SIZES, UNITS, FAKES = (3, 4, 2), 60, 40
STEPS, RATE, LEARNING = 12, 0.5, 0.05


class Overwriting(DpSgd):
    """The broken twin: the private gradient takes the place of the one on generated rows."""

    def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        self.anchor_weight, kept = 0.0, self.anchor_weight
        super().step(loss, batch, mask)
        self.anchor_weight = kept


class Plan:
    """One event, with the noise given."""

    def __init__(self, noise: float, steps: int) -> None:
        self._event = PoissonSgd("DP-SGD steps", RATE, steps, noise)

    def event(self, name: str) -> PoissonSgd:
        assert name == self._event.name
        return self._event


def critic() -> Critic:
    """Far from its start, so that every layer has a gradient."""
    critic = Critic(SIZES, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        critic.scored.weight.normal_(generator=torch.Generator().manual_seed(1))
    return critic


def trainer(network: Critic, noise: float, steps: int, bound: float, kind: type[DpSgd]) -> Any:
    """The trainer as `ctgan` makes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "DpSgd", kind)
        return trainer_of(
            network,
            Plan(noise, steps),  # type: ignore[arg-type]
            clipping_norm=bound,
            population=UNITS,
            learning_rate=LEARNING,
            anchor_weight=1.0,
            entropy=SeededEntropy(5),
            anchored_always=True,
        )


def rows_of(shares: tuple[float, ...], count: int, seed: int) -> Tensor:
    """Rows whose first column follows ``shares``; the others are uniform."""
    rng = np.random.default_rng(seed)
    first = rng.choice(SIZES[0], count, p=shares)
    others = [rng.integers(0, size, count) for size in SIZES[1:]]
    return torch.from_numpy(np.stack([first, *others], axis=1))[:, None]


REALS, GENERATED = rows_of((0.6, 0.3, 0.1), UNITS, 1), rows_of((0.1, 0.3, 0.6), FAKES, 2)


def batches(network: Critic, chosen: Tensor, step: int) -> tuple[Batch, Batch]:
    rng = np.random.default_rng(step)
    return network.batch(REALS[chosen], REAL, rng), network.batch(GENERATED, FAKE, rng)


def by_engine(kind: type[DpSgd], steps: int, bound: float = 1e6, noise: float = 1e-12) -> Critic:
    network = critic()
    engine = trainer(network, noise, steps, bound, kind)
    for step in range(steps):
        real, fake = batches(network, torch.from_numpy(engine.sample_batch(UNITS)), step)
        engine.step(network.loss, real, torch.ones(real[1].shape), anchor=fake)
    return network


def by_torch(steps: int, parts: Callable[[Tensor, Tensor], Tensor]) -> Critic:
    """The same steps by automatic differentiation and the Adam of torch."""
    network = critic()
    parameters = [p.requires_grad_(True) for p in network.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING, eps=1e-8)
    draws = SeededEntropy(5)
    noise = sum(p.numel() for p in parameters)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = LEARNING * 0.5 * (1 + np.cos(np.pi * step / steps))
        chosen = torch.from_numpy(np.flatnonzero(draws.uniform(UNITS) < RATE))
        draws.normal(noise, np.float32)  # the engine's own, which is next to nothing
        losses = []
        for rows, columns, labels in batches(network, chosen, step):
            scores = network.score(network.one_hot(rows[:, 0]), columns[:, 0])
            losses.append(functional.softplus(-labels[:, 0] * scores))
        optimizer.zero_grad()
        parts(*losses).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network


def both(real: Tensor, fake: Tensor) -> Tensor:
    return (real.sum() / (RATE * UNITS) + fake.mean()) / 2


def distance(one: Critic, other: Critic) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def test_without_noise_and_bound_a_step_is_that_of_plain_torch() -> None:
    plain = by_torch(STEPS, both)
    assert distance(critic(), plain) > 0.1
    assert distance(by_engine(DpSgd, STEPS), plain) < 1e-5


def test_a_step_that_overwrites_is_caught() -> None:
    assert distance(by_engine(Overwriting, STEPS), by_torch(STEPS, both)) > 0.01


def auc(network: Critic) -> float:
    """How well the critic tells new real rows from new generated ones; 0.5 is not at all."""
    scores = []
    for shares, seed in (((0.6, 0.3, 0.1), 11), ((0.1, 0.3, 0.6), 12)):
        rows = rows_of(shares, 2000, seed)[:, 0]
        asked = torch.zeros(len(rows), dtype=torch.int64)
        with torch.no_grad():
            scores.append(network.score(network.one_hot(rows), asked))
    real, fake = scores
    above = (real[:, None] > fake).double().mean() + 0.5 * (real[:, None] == fake).double().mean()
    return float(above)


def calls_real(network: Critic) -> float:
    """Share of new rows, half of them generated, that the critic calls real."""
    rows = torch.cat([REALS, GENERATED])[:, 0]
    with torch.no_grad():
        scores = network.score(network.one_hot(rows), torch.zeros(len(rows), dtype=torch.int64))
    return float((scores > 0).double().mean())


def test_the_critic_comes_to_tell_real_from_generated() -> None:
    """With noise and clipping as a fit has them; the toy allows about 0.83."""
    before = Critic(SIZES, 8, generator=torch.Generator().manual_seed(0))
    trained = by_engine(DpSgd, 150, bound=1.0, noise=0.5)
    assert auc(before) == pytest.approx(0.5)
    assert auc(trained) > 0.75
    assert 0.2 < calls_real(trained) < 0.8


def test_a_critic_that_sees_one_side_only_is_caught() -> None:
    """Without generated rows everything looks real."""
    assert calls_real(by_engine(Overwriting, 150, bound=1.0, noise=0.5)) > 0.95
