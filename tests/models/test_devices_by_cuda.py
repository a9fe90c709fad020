"""What must hold on a CUDA device as on the host: norms, sums, whole steps and fits.

They are left out, saying so, where there is no such device. `bench/devices.py` measures more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.encoding import Cohort
from dpsynth.models import Codes, Domain, Feature, generator_class
from dpsynth.models.dpsgd import DpSgd, UnitGradients, packs
from dpsynth.models.dpsgd.optimizer import MARGIN
from dpsynth.models.dpsgd.unit_gradients import ROUNDING
from dpsynth.models.generators import autoregressive_network as autoregressive
from dpsynth.models.generators import tvae
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.privacy import PoissonSgd, PrivacyBudget, PrivacyPlan, SeededEntropy

from ..guarantees.test_p22_norms_of_every_size import HOSTILE, Net, unit
from ..guarantees.test_p22_rounding_is_paid_for import SIZES, C, cancelling, layer_of
from ..support.private_steps import private

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

CUDA = torch.device("cuda")
BINS = (16, 3, 8, 2, 16)


def networks(name: str) -> BinnedNetwork:
    seed = torch.Generator().manual_seed(0)
    if name == "tvae":
        network: BinnedNetwork = tvae.Network(tvae.Shape(BINS, 64, 8), generator=seed)
        network.draw_from(lambda: np.random.default_rng(3))
        return network
    return autoregressive.Network(autoregressive.Shape(BINS, 64), generator=seed)


def some_rows(units: int, k: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, BINS, (units, k, len(BINS))))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", ["autoregressive", "tvae"])
def test_norms_on_the_device_are_those_of_what_is_added(name: str, k: int) -> None:
    """Against each unit's gradient, formed and squared in double precision."""
    network = networks(name).to(CUDA)
    trainer = private(network)
    for one in some_rows(40, k).to(CUDA):
        [pack] = packs(one[None], torch.ones(1, k), 10**6)
        gradients = UnitGradients.of(network.loss, pack)
        squares, spreads = (part.double() for part in gradients.squares())
        formed = torch.zeros_like(trainer.flat.values, dtype=torch.float64)
        gradients.add_to(trainer.flat.views(formed))
        assert formed.square().sum() > 0
        assert (squares - formed.square().sum()).abs() <= ROUNDING * spreads


@pytest.mark.parametrize("rows", [2, 8])
@pytest.mark.parametrize("left", SIZES)
def test_rows_that_cancel_do_not_hide_a_unit_on_the_device(rows: int, left: float) -> None:
    inputs, pull = cancelling(rows, left)
    layer = layer_of(inputs.shape[-1], inputs.shape[-1]).to(CUDA)

    def loss(batch: Any, activations: Any = None) -> Tensor:
        a, b = batch
        return (layer(a, activations) * b).sum(-1)

    exact = torch.einsum("uko,uki->uoi", pull.double(), inputs.double())
    truth = (exact.square().sum((1, 2)) + pull.double().sum(1).square().sum(1)).sqrt()
    batch = (inputs.to(CUDA), pull.to(CUDA))
    [pack] = packs(batch, torch.ones(inputs.shape[:2]), 10**6)
    factors = UnitGradients.of(loss, pack).factors(C).cpu().double()
    assert float((truth * factors).max()) / C <= 1 + 1e-3


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("clipping_norm", [1e-6, 1.0])
@pytest.mark.parametrize(("a", "b"), HOSTILE)
def test_no_gradient_is_too_small_or_too_large_on_the_device(
    a: float, b: float, clipping_norm: float, rows: int, masked: bool
) -> None:
    net = Net(masked).to(CUDA)
    (inputs, pull), mask = unit(a, b, rows)
    trainer = private(net, clipping_norm=clipping_norm)
    total = trainer.clipped_sum(net, (inputs.to(CUDA), pull.to(CUDA)), mask)
    assert bool(torch.isfinite(total).all())
    assert total.norm() <= clipping_norm * (1 + MARGIN)


def test_a_large_sum_moves_by_c_on_the_device() -> None:
    net = Net().to(CUDA)
    trainer = private(net, population=100)
    units = 400_000
    inputs = torch.full((units, 1, 6), 0.7, device=CUDA)
    pull = torch.full((units, 1, 6), 0.9, device=CUDA)
    mask = torch.ones(units, 1)
    whole = trainer.clipped_sum(net, (inputs, pull), mask)
    less = trainer.clipped_sum(net, (inputs[1:], pull[1:]), mask[1:])
    assert (whole - less).norm() <= 1 + MARGIN / 2


@pytest.mark.parametrize("name", ["autoregressive", "tvae"])
@pytest.mark.parametrize("k", [1, 3])
def test_steps_on_the_device_are_those_on_the_host(name: str, k: int) -> None:
    """The same draws, the same noise: parameters agree to what single precision leaves."""
    found = []
    for where in (torch.device("cpu"), CUDA):
        network = networks(name).to(where)
        trainer = DpSgd(
            network,
            event=PoissonSgd("steps", 0.5, 10, 1.0),
            clipping_norm=1.0,
            population=80,
            learning_rate=0.05,
            entropy=SeededEntropy(4),
            schedule="cosine",
            optimizer="sgd",
            anchor_weight=0.5,
        )
        rows = some_rows(40, k)
        anchor = some_rows(64, 1).to(where)
        for _ in range(10):
            drawn = trainer.sample_batch(len(rows))
            batch = rows[drawn].to(where)
            trainer.step(network.loss, batch, torch.ones(len(drawn), k) / k, anchor=anchor)
        found.append(trainer.flat.values.cpu())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def codes(rows: int) -> Codes:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, rows)
    return np.stack([first, (first + rng.integers(0, 2, rows)) % 4], axis=1).astype(np.uint16)


@pytest.mark.parametrize("name", ["autoregressive", "tvae"])
def test_a_fit_on_the_device_learns_what_one_on_the_host_learns(name: str) -> None:
    """Both networks are drawn from on the host, where a fit leaves them."""
    rows = codes(6000)
    domain = Domain((Feature("a", 4, 0), Feature("b", 4, 0)), 6000, 1)
    cohort = Cohort(rows[:, None], np.ones((len(rows), 1), bool))
    truth = np.bincount(rows[:, 0].astype(int) * 4 + rows[:, 1], minlength=16) / len(rows)
    for device in ("cpu", "cuda"):
        generator = generator_class(name)(domain)
        generator.train_on(device)
        budget = PrivacyBudget(10.0, 1e-6)
        plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
        generator.fit(cohort, plan, SeededEntropy(2))
        drawn = generator.sample(20_000, np.random.default_rng(0))
        share = np.bincount(drawn[:, 0].astype(int) * 4 + drawn[:, 1], minlength=16) / len(drawn)
        assert 0.5 * np.abs(share - truth).sum() < 0.06
        assert next(generator.network_.parameters()).device.type == "cpu"
