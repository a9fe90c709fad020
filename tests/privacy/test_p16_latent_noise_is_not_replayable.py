"""P16: the latent noise of a private step, drawn from the stream that drew the released weights.

A unit's gradient depends on the latent noise of its rows. While nobody knows that noise, taking the
unit away moves the sum by at most C: the others' noise has the same law as before. But if the noise
comes from one seeded stream, in the order of the batch, whoever can replay the stream sees the
noise of all later rows shift, and the sum move by more. torch seeds a generator with 32 bits, and
the first draws of the stream are the initial weights, which released weights still resemble. So no
stream that drew weights may feed a private step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from dpsynth import pipeline
from dpsynth.entropy import SeededEntropy
from dpsynth.events import PoissonSgd
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.layers import Linear, Tape
from dpsynth.models.network import Network
from dpsynth.schema import Schema

Visits = Callable[[int], pd.DataFrame]
C, UNITS, WIDTH, SEED = 0.5, 40, 5, 123_456_789_123


class SharedStream(torch.nn.Module):
    """Broken twin: weights and latent noise come from one generator."""

    def __init__(self, *, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        self.encode = Linear(WIDTH, 4, generator=generator)
        self.decode = Linear(2, WIDTH, generator=generator)

    def loss(self, x: Tensor, tape: Tape | None) -> Tensor:
        mean, spread = self.encode(x, tape).chunk(2, dim=-1)
        noise = torch.randn(mean.shape, generator=self.generator)
        return (self.decode(mean + spread.exp() * noise, tape) - x).square().sum(-1)


def trainer(network: torch.nn.Module) -> DpSgd:
    return DpSgd(
        network,
        event=PoissonSgd("steps", 0.5, 10, 1.0),
        clipping_norm=C,
        population=UNITS,
        learning_rate=0.05,
        entropy=SeededEntropy(0),
        schedule="constant",
        optimizer="adam",
    )


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


def draws_on_the_stream_of_weights(
    loss_of: Callable[[Network], Any] | None,
    schema: Schema,
    frame: pd.DataFrame,
    patch: pytest.MonkeyPatch,
) -> bool:
    """Fit `tvae`; does any private step take from a generator that drew initial weights?"""
    generators: list[torch.Generator] = []
    moved: list[bool] = []
    make, clipped_sum = Network.__init__, DpSgd.clipped_sum

    def making(self: Network, *arguments: Any, generator: torch.Generator, **rest: Any) -> None:
        make(self, *arguments, generator=generator, **rest)
        generators.append(generator)
        if loss_of is not None:
            self.loss = loss_of(self)  # type: ignore[method-assign]

    def summing(self: DpSgd, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        before = [generator.get_state() for generator in generators]
        before.append(torch.get_rng_state())
        found = clipped_sum(self, loss, batch, mask)
        after = [generator.get_state() for generator in generators] + [torch.get_rng_state()]
        moved.append(any(not torch.equal(a, b) for a, b in zip(before, after, strict=True)))
        return found

    with patch.context() as patched:
        patched.setattr(Network, "__init__", making)
        patched.setattr(DpSgd, "clipped_sum", summing)
        pipeline.fit(
            frame,
            schema,
            epsilon=2.0,
            delta=1e-5,
            dataset="clinic",
            model="tvae",
            without_ledger=True,
        )
    assert len(moved) == 5 and len(generators) == 1
    return any(moved)


def sharing(network: Network) -> Any:
    """Broken twin: each call of the loss draws from the network's first generator, or torch's."""
    loss = type(network).loss

    def drawing(rows: Tensor, tape: Tape | None) -> Tensor:
        torch.randn(1)
        return loss(network, rows, tape)

    return drawing


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_a_private_step_does_not_draw_on_the_stream_of_weights(
    clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert draws_on_the_stream_of_weights(sharing, clinic, visits(60), monkeypatch)
    assert not draws_on_the_stream_of_weights(None, clinic, visits(60), monkeypatch)
