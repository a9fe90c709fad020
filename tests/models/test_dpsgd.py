"""The DP-SGD engine: its steps, anchor and schedule, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import DpsynthError, InputError
from dpsynth.models.dpsgd import Activations, Linear, PlainSgd
from dpsynth.privacy import PoissonSgd, SeededEntropy
from dpsynth.privacy.events import UNDECIDED

from ..support.toy_network import (
    POPULATION,
    RATE,
    Net,
    data,
    private,
    ragged,
    unit_gradients,
)


def test_the_schedule_is_public() -> None:
    """It reads the event's number of steps and nothing else; a huge loss changes no rate."""
    net = Net()
    engine = private(net, schedule="cosine", event=PoissonSgd("steps", RATE, 4, 1.0))
    assert [engine.optimizer.rate(step) for step in range(4)] == pytest.approx(
        [0.1 * (1 + math.cos(math.pi * step / 4)) / 2 for step in range(4)]
    )
    engine.sample_batch(3)
    engine.step(lambda x, activations: 1e6 * net(x, activations), data(3, 1), torch.ones(3, 1))
    assert engine.optimizer.rate(engine.optimizer.taken) == pytest.approx(0.1 * (1 + 0.5**0.5) / 2)


def test_plain_training_equals_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = nn.ModuleList([Linear(4, 3, generator=generator), Linear(3, 1, generator=generator)])
    theirs = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    with torch.no_grad():
        for target, source in zip((theirs[0], theirs[2]), ours, strict=True):
            target.weight.copy_(source.weight)
            target.bias.copy_(source.bias)
    x = data(16, 1)

    def loss(x: Tensor, activations: Activations) -> Tensor:
        return (ours[1](torch.tanh(ours[0](x, activations)), activations) - 1).square().sum(-1)

    plain = PlainSgd(ours, learning_rate=0.02, steps=10, schedule="constant", optimizer="adam")
    adam = torch.optim.Adam(theirs.parameters(), lr=0.02)
    for _ in range(10):
        plain.step(loss, x, torch.ones(16, 1))
        adam.zero_grad()
        (theirs(x) - 1).square().mean().backward()
        adam.step()
    expected = torch.cat([p.data.flatten() for p in theirs.parameters()])
    torch.testing.assert_close(plain.flat.values, expected, rtol=1e-4, atol=1e-6)


def test_without_clipping_and_noise_the_private_step_is_the_plain_one() -> None:
    x, mask = data(12, 3), ragged(12, 3)
    net, reference = Net(), Net()
    engine = private(net, clipping_norm=1e9, optimizer="adam")
    plain = PlainSgd(reference, learning_rate=0.1, steps=50, schedule="constant", optimizer="adam")
    for _ in range(4):
        engine.sample_batch(12)
        engine.step(net, x, mask)
        plain.step(reference, x, mask, divisor=RATE * POPULATION)
    torch.testing.assert_close(engine.flat.values, plain.flat.values, rtol=1e-5, atol=1e-6)


def test_the_anchor_is_weighed_beside_the_private_gradient() -> None:
    net, x, anchor = Net(), data(12, 2), data(7, 1)
    engine = private(net, anchor_weight=0.5, learning_rate=1.0)
    before = engine.flat.values.clone()
    clipped = engine.clipped_sum(net, x, torch.ones(12, 2)).float() / (RATE * POPULATION)
    mean = unit_gradients(net, anchor, torch.ones(7, 1)).mean(0)
    engine.sample_batch(12)
    engine.step(net, x, torch.ones(12, 2), anchor=anchor)
    expected = before - (clipped + 0.5 * mean) / 1.5
    torch.testing.assert_close(engine.flat.values, expected, rtol=1e-5, atol=1e-6)


def test_an_anchor_goes_with_its_weight() -> None:
    for weight, anchor in ((0.5, None), (0.0, data(2, 1))):
        net = Net()
        engine = private(net, anchor_weight=weight)
        engine.sample_batch(3)
        with pytest.raises(InputError, match="anchor batch goes with"):
            engine.step(net, data(3, 1), torch.ones(3, 1), anchor=anchor)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event": PoissonSgd("steps", RATE, 5, UNDECIDED)}, "noise is not decided"),
        ({"clipping_norm": 0.0}, "clipping norm"),
        ({"clipping_norm": math.inf}, "clipping norm"),
        ({"clipping_norm": math.nan}, "clipping norm"),
        ({"population": 0}, "population"),
        ({"learning_rate": -1.0}, "learning rate"),
        ({"learning_rate": math.nan}, "learning rate"),
        ({"schedule": "patience"}, "schedule must be constant or cosine"),
        ({"optimizer": "lbfgs"}, "optimizer must be adam or sgd"),
        ({"anchor_weight": -0.1}, "anchor weight"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        private(Net(), **change)


def test_networks_without_a_layer_or_in_another_precision_are_refused() -> None:
    with pytest.raises(InputError, match="no layer"):
        private(nn.Sequential(nn.ReLU()))
    with pytest.raises(InputError, match="dpsynth trains in float32"):
        private(Net().double())


def test_training_that_diverges_stops() -> None:
    net = Net()
    engine = private(net, learning_rate=3e38, population=1)
    engine.sample_batch(12)
    with pytest.raises(DpsynthError, match="diverged at step 1"):
        engine.step(net, 1e3 * data(12, 1), torch.ones(12, 1))


def test_private_training_learns() -> None:
    """Little noise, a learnable relation: the loss falls, and the weights can be taken along."""
    net = Net()
    x = data(400, 1)
    x[..., 2] = x[..., 0] - x[..., 1]
    event = PoissonSgd("steps", 0.5, 80, 0.5)
    engine = private(
        net,
        event=event,
        population=400,
        entropy=SeededEntropy(3),
        optimizer="adam",
        learning_rate=0.03,
        schedule="cosine",
    )
    before = float(net(x).mean())
    for _ in range(event.steps):
        drawn = engine.sample_batch(len(x))
        engine.step(net, x[drawn], torch.ones(len(drawn), 1))
    assert float(net(x).mean()) < 0.5 * before
    other = Net()
    other.load_state_dict({name: value.clone() for name, value in net.state_dict().items()})
    assert torch.equal(other(x), net(x))
    assert set(net.state_dict()) == {
        f"{n}.{p}" for n in ("inner", "outer", "skip") for p in ("weight", "bias")
    }


def test_noise_differs_from_step_to_step() -> None:
    net = Net()
    engine = private(net, entropy=SeededEntropy(0))
    values = [engine.flat.values.clone()]
    for _ in range(2):
        drawn = engine.sample_batch(0)
        engine.step(net, data(1, 1)[drawn], torch.ones(0, 1))
        values.append(engine.flat.values.clone())
    first, second = values[1] - values[0], values[2] - values[1]
    assert float(first.norm()) > 0 and float(second.norm()) > 0
    assert not torch.allclose(first, second)
