"""P16: the latent noise of a private step, drawn from a stream that 32 bits give away.

A unit's gradient depends on the latent noise of its rows. While nobody knows that noise, taking the
unit away moves the sum by at most C: the others' noise has the same law as before. But if the noise
comes from one seeded stream, in the order of the batch, whoever can replay the stream sees the
noise of all later rows shift, and the sum move by more. torch seeds a generator with 32 bits, which
can be tried out one by one: against initial weights from the same stream, which released weights
still resemble, or against the steps themselves, for a wrong stream moves a large batch by much more
than the noise does. So no stream of torch may feed a private step; the source of all noise may.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import dpsynth
from dpsynth.models.dpsgd import Activations, DpSgd, Linear
from dpsynth.models.generators.tvae import Network
from dpsynth.privacy import OsEntropy
from dpsynth.schema import Schema

from ..support.private_steps import private
from ..support.quick_fit import quick_fit

Visits = Callable[[int], pd.DataFrame]
C, UNITS, WIDTH, SEED = 0.5, 40, 5, 123_456_789_123


class SharedStream(torch.nn.Module):
    """Broken twin: weights and latent noise come from one generator."""

    def __init__(self, *, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        self.encode = Linear(WIDTH, 4, generator=generator)
        self.decode = Linear(2, WIDTH, generator=generator)

    def loss(self, x: Tensor, activations: Activations | None) -> Tensor:
        mean, spread = self.encode(x, activations).chunk(2, dim=-1)
        noise = torch.randn(mean.shape, generator=self.generator)
        return (self.decode(mean + spread.exp() * noise, activations) - x).square().sum(-1)


def trainer(network: torch.nn.Module) -> DpSgd:
    return private(network, clipping_norm=C, population=UNITS, learning_rate=0.05, optimizer="adam")


def test_a_replayed_stream_breaks_the_bound() -> None:
    """What is at stake: with the stream known, one unit moves the sum by more than C."""
    truncated = torch.Generator().manual_seed(SEED & 0xFFFFFFFF)
    replayed = SharedStream(generator=truncated)
    network = SharedStream(generator=torch.Generator().manual_seed(SEED))
    assert torch.equal(replayed.encode.weight, network.encode.weight), "32 bits of the seed count"
    engine, state = trainer(network), network.generator.get_state()
    draws = [torch.randn(9, generator=one.generator) for one in (replayed, network)]
    assert torch.equal(*draws), "and so does all latent noise"
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(UNITS, 1, WIDTH))).float()

    def total(keep: Tensor) -> Tensor:
        network.generator.set_state(state)
        return engine.clipped_sum(network.loss, x[keep], torch.ones(int(keep.sum()), 1))

    everybody = torch.ones(UNITS, dtype=torch.bool)
    shifts = []
    for unit in range(UNITS):
        keep = everybody.clone()
        keep[unit] = False
        shifts.append(float((total(everybody) - total(keep)).norm()))
    assert max(shifts) > 1.5 * C


DRAWS = ("randn", "rand", "normal", "randn_like", "rand_like", "randint", "bernoulli")
METHODS = ("normal_", "uniform_", "bernoulli_")


def draws_by_torch(
    loss: Callable[[Network, Tensor, Activations | None], Tensor] | None,
    schema: Schema,
    frame: pd.DataFrame,
    patch: pytest.MonkeyPatch,
) -> bool:
    """Fit `tvae`, perhaps with another loss; does any private step draw from a stream of torch?"""
    drawn: list[str] = []
    steps: list[int] = []
    clipped_sum = DpSgd.clipped_sum

    def noting(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
        def drawing(*arguments: Any, **options: Any) -> Any:
            drawn.append(name)
            return draw(*arguments, **options)

        return drawing

    def summing(self: DpSgd, *arguments: Any) -> Tensor:
        steps.append(self.steps_taken)
        with patch.context() as watched:
            for owner, names in ((torch, DRAWS), (Tensor, METHODS)):
                for name in names:
                    watched.setattr(owner, name, noting(name, getattr(owner, name)))
            return clipped_sum(self, *arguments)

    with patch.context() as patched:
        patched.setattr(DpSgd, "clipped_sum", summing)
        if loss is not None:
            patched.setattr(Network, "loss", loss)
        quick_fit(frame, schema, epsilon=2.0, delta=1e-5, model="tvae")
    assert steps == [1, 2, 3, 4, 5]
    return bool(drawn)


real_loss = Network.loss


def from_the_weights_stream(
    network: Network, rows: Tensor, activations: Activations | None
) -> Tensor:
    """Broken twin: the network keeps the generator of its weights for later."""
    return real_loss(network, rows, activations) + 0 * torch.randn(1, generator=torch.Generator())


def from_a_fresh_stream(network: Network, rows: Tensor, activations: Activations | None) -> Tensor:
    """Broken twin: a seed of 62 fresh bits, of which torch takes 32."""
    fresh = torch.Generator().manual_seed(secrets.randbits(62))
    return real_loss(network, rows, activations) + 0 * torch.empty(1).normal_(generator=fresh)


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("twin", [from_the_weights_stream, from_a_fresh_stream])
def test_latent_noise_from_a_stream_of_torch_is_caught(
    twin: Any, clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert draws_by_torch(twin, clinic, visits(60), monkeypatch)


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_a_private_step_draws_on_no_stream_of_torch(
    clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not draws_by_torch(None, clinic, visits(60), monkeypatch)


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_latent_noise_comes_from_the_source_of_all_noise(
    clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not from a stream of its own, whose seed may be written in the program."""
    generators: list[np.random.Generator] = []
    used: list[np.random.Generator] = []

    class Noting(OsEntropy):
        def generator(self) -> np.random.Generator:
            generators.append(super().generator())
            return generators[-1]

    def noting(network: Network, rows: Tensor, activations: Activations | None) -> Tensor:
        used.append(network.noise)
        return real_loss(network, rows, activations)

    monkeypatch.setattr(Network, "loss", noting)
    settings: dict[str, Any] = {"dataset": "clinic", "model": "tvae", "without_ledger": True}
    dpsynth.fit(visits(60), clinic, epsilon=2.0, delta=1e-5, entropy=Noting(), **settings)
    assert used and all(any(noise is source for source in generators) for noise in used)
