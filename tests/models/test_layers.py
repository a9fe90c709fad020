"""Layers with book-keeping: masks, embeddings, and uses of a layer that are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import Activations, Linear, Loss, MaskedLinear
from dpsynth.models.dpsgd.layers import Embedding

from ..support.toy_network import Net, data, private


def clipped(net: nn.Module, loss: Loss, x: Tensor) -> Tensor:
    return private(net).clipped_sum(loss, x, torch.ones(x.shape[:2]))


def test_a_layer_used_twice_is_refused() -> None:
    net = Net()

    def twice(x: Tensor, activations: Activations) -> Tensor:
        return net(x, activations) + net.inner(x, activations).sum(-1)

    with pytest.raises(InputError, match=r"Linear\(4, 5\) is used twice"):
        clipped(net, twice, data(3, 1))


def test_a_tensor_changed_in_place_is_refused() -> None:
    """After relu_ the recorded output would be another tensor, and its gradient another one."""
    net = Net()

    def in_place(x: Tensor, activations: Activations) -> Tensor:
        hidden = torch.tanh(net.inner(x, activations))
        return (torch.relu_(net.outer(hidden, activations)) + net.skip(x, activations)).sum(-1)

    with pytest.raises(InputError, match=r"Linear\(5, 4\) was changed in place"):
        clipped(net, in_place, data(3, 1))


def test_a_layer_used_on_other_rows_is_refused() -> None:
    net = Net()

    def halves(x: Tensor, activations: Activations) -> Tensor:
        hidden = torch.tanh(net.inner(x, activations))
        return (net.outer(hidden[::2], activations).sum() + net.skip(x, activations)).sum(-1)

    with pytest.raises(InputError, match="was used on 2 rows of a batch of 4"):
        clipped(net, halves, data(4, 1))


def test_masked_layers_chain_to_an_autoregressive_net() -> None:
    """Column g of the output must not change when columns g and later of the input do."""
    columns, hidden = np.repeat([0, 1, 2, 3], 2), np.array([3, 1, 2, 0, 2, 3])
    generator = torch.Generator().manual_seed(0)
    first = MaskedLinear(columns, hidden, generator=generator)
    second = MaskedLinear(hidden, columns + 1, generator=generator)
    x = torch.randn(1, 8, generator=generator)
    base = second(torch.tanh(first(x)))
    for column in range(4):
        changed = x.clone()
        changed[:, columns == column] += 1.0
        same = (second(torch.tanh(first(changed))) == base)[0]
        assert same.tolist() == [bool(group <= column) for group in columns]


def test_a_layer_of_width_zero_does_no_harm() -> None:
    """A latent vector of width 0 leaves the bias of the decoder."""
    generator = torch.Generator().manual_seed(0)
    net = nn.ModuleList([Linear(4, 0, generator=generator), Linear(0, 2, generator=generator)])

    def loss(x: Tensor, activations: Activations) -> Tensor:
        return net[1](net[0](x, activations), activations).square().sum(-1)

    factors = clipped(net, loss, data(6, 2))
    assert factors.shape == (2,)
    assert 0 < float(factors.norm()) <= 6.001


def test_embedding_rows_of_several_codes() -> None:
    """A code that a row holds twice adds up within the row: by hand."""
    table = Embedding(3, 2, generator=torch.Generator().manual_seed(0))
    b = torch.tensor([[[1.0, 0.0, 2.0, 1.0]]])  # one row, codes 1 and 1, gradients (1,0), (2,1)
    assert table.gram(torch.tensor([[[1, 1]]]), b).item() == 3**2 + 1**2
    assert table.gram(torch.tensor([[[1, 2]]]), b).item() == 1 + 2**2 + 1
