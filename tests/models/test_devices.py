"""Where a network trains: nothing in a private step waits for a device, or mixes two of them.

No device is needed: tensors on PyTorch's device ``meta`` have shapes and no numbers. Whatever reads
a number back to the host, or adds a tensor of the host to one of the device, is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import (
    DpSgd,
    clipping_norm,
    device,
    device_of,
    optimizer,
    packs,
    parameter_buffer,
    rows_at_once,
    unit_gradients,
)
from dpsynth.models.dpsgd.parameter_buffer import FlatParameters
from dpsynth.models.generators import autoregressive_network as autoregressive
from dpsynth.models.generators import binned_network, tvae
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.privacy import PoissonSgd, SeededEntropy

BINS = (3, 4, 2)
UNITS, ROWS = 6, 2
BESIDE = torch.device("meta")


def networks() -> dict[str, Callable[[], BinnedNetwork]]:
    seed = torch.Generator()
    return {
        "autoregressive": lambda: autoregressive.Network(
            autoregressive.Shape(BINS, 5), generator=seed
        ),
        "tvae": lambda: tvae.Network(tvae.Shape(BINS, 7, 2), generator=seed),
    }


def moved(tensor: Tensor, where: torch.device) -> Tensor:
    """Stand in for the copy through pinned memory, which only a device has."""
    return tensor.to(where)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (optimizer, unit_gradients, binned_network, tvae):
        monkeypatch.setattr(module, "moved", moved)
    # once, where a trainer is built, it looks at addresses and masks
    monkeypatch.setattr(parameter_buffer, "_check_parameters", lambda *_: None)
    monkeypatch.setattr(FlatParameters, "_free", lambda self: torch.arange(3, device=BESIDE))


def step(network: BinnedNetwork, loss: Any = None) -> Tensor:
    """Take a private step on the device; return the parameters."""
    network.to(BESIDE)
    trainer = DpSgd(
        network,
        event=PoissonSgd("t", 0.5, 7, 1.0),
        clipping_norm=1.0,
        population=9,
        learning_rate=0.1,
        entropy=SeededEntropy(1),
        schedule="cosine",
        optimizer="adam",
        anchor_weight=1.0,
    )
    trainer._drawn = UNITS
    mask = torch.ones(UNITS, ROWS)
    mask[1:, 1] = 0.0
    batch = torch.empty((UNITS, ROWS, len(BINS)), dtype=torch.int64, device=BESIDE)
    trainer.step(loss or network.loss, batch, mask, anchor=batch[:, :1])
    return trainer.flat.values


@pytest.mark.parametrize("name", networks())
def test_a_private_step_never_waits_for_the_device(name: str, beside: None) -> None:
    assert step(networks()[name]()).device == BESIDE


def reads_back(losses: Tensor) -> Tensor:
    return losses / float(losses.detach().mean())


def stays_on_the_host(losses: Tensor) -> Tensor:
    return losses + torch.ones(losses.shape)


@pytest.mark.parametrize("breaks", [reads_back, stays_on_the_host])
def test_a_step_that_waits_is_caught(breaks: Callable[[Tensor], Tensor], beside: None) -> None:
    network = networks()["tvae"]()
    with pytest.raises(RuntimeError, match="meta"):
        step(network, lambda rows, activations: breaks(network.loss(rows, activations)))


def test_rows_are_packed_where_the_mask_is() -> None:
    """On the host: no number of the batch decides how it is packed, so none has to be read."""
    mask = torch.tensor([[1.0, 0.5], [1.0, 0.0], [0.0, 0.0]])
    batch = torch.arange(6, dtype=torch.int64).reshape(3, 2, 1)
    [pack] = packs(batch, mask, 100)
    assert pack.batch.flatten().tolist() == [2, 0, 1]
    assert pack.groups == ((1, 1), (1, 2))


def test_rows_are_added_block_by_block_however_many_go_through_at_once() -> None:
    """A device takes many rows in one pass; the bound on rounding is for blocks of so many."""
    [pack] = packs(torch.zeros(50, 3, 1), torch.ones(50, 3), 10**6)
    assert [range(150)[block] for block in pack.blocks(64)] == [
        range(64),
        range(64, 128),
        range(128, 150),
    ]
    assert [range(150)[block] for block in pack.blocks(148)] == [range(150)]  # one unit beyond


@pytest.mark.parametrize("where", [torch.device("cpu"), BESIDE])
def test_passes_are_large_on_a_device_alone(where: torch.device) -> None:
    layers = [
        module for module in networks()["tvae"]().to(where).modules() if hasattr(module, "width")
    ]
    rows = rows_at_once(layers)
    assert rows == (clipping_norm.BLOCK if where.type == "cpu" else clipping_norm.MOST_THERE)


def test_parameters_are_looked_at_now_and_then() -> None:
    here, there = torch.ones(1), torch.ones(1, device="meta")
    assert all(device.looks_back(here, step, 50) for step in range(1, 51))
    looks = [step for step in range(1, 51) if device.looks_back(there, step, 50)]
    assert looks == [20, 40, 50]


def test_devices_are_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [device_of(name).type for name in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(InputError, match="there is no CUDA device"):
        device_of("cuda")
    with pytest.raises(InputError, match="must be one of auto, cpu, cuda"):
        device_of("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto").type == "cuda"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device_of("cuda", 1).type == "cuda"
    assert device_of("auto", 2).type == "cpu"
    with pytest.raises(InputError, match="started 2 processes.* of its own; there is 1. Start"):
        device_of("cuda", 2)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    with pytest.raises(InputError, match="TF32"):
        device_of("auto")
