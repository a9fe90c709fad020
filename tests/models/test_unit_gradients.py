"""Clipped sums against a loop over units; packing; the loss that is asked for."""

from __future__ import annotations

import pytest
import torch

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import clipping_norm_from, optimizer, packs

from ..support.toy_network import Net, data, private, ragged, unit_gradients


@pytest.mark.parametrize("k", [1, 3, 5, 7])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("chunk", "block"), [(4, 1024), (10_000, 1024), (10_000, 6)])
def test_clipped_sum_equals_a_loop_over_units(
    k: int, padded: bool, chunk: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimizer, "rows_at_once", lambda layers: chunk)
    monkeypatch.setattr(optimizer, "BLOCK", block)
    net, x = Net(), data(20, k)
    mask = ragged(20, k) if padded else torch.ones(20, k)
    each = unit_gradients(net, x, mask)
    norms = each.norm(dim=1)
    clipping_norm = float(norms[norms > 0].median())
    expected = (each * (clipping_norm / norms).clamp(max=1.0).nan_to_num(1.0)[:, None]).sum(0)
    found = private(net, clipping_norm=clipping_norm).clipped_sum(net, x, mask).float()
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5 * float(expected.norm()))


def test_packs_by_hand() -> None:
    """Units of 2, 0, 1, 2 rows: the unit of one row comes first, then both of two."""
    batch = (torch.arange(8).reshape(4, 2), torch.arange(16).reshape(4, 2, 2))
    mask = torch.tensor([[1.0, 3.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    (pack,) = packs(batch, mask, maximum=100)
    assert pack.batch[0].tolist() == [[5], [0], [1], [6], [7]]
    assert pack.batch[1].shape == (5, 1, 2)
    assert pack.weights.tolist() == [[1.0], [1.0], [3.0], [1.0], [1.0]]
    assert pack.groups == ((1, 1), (2, 2))
    assert pack.order.tolist() == [2, 0, 3]
    assert pack.per_row(torch.tensor([7.0, 8.0, 9.0])).flatten().tolist() == [7, 8, 8, 9, 9]
    assert [part.order.tolist() for part in packs(batch, mask, maximum=3)] == [[2, 0], [3]]


def test_a_batch_without_padding_is_passed_as_it_is() -> None:
    x = data(5, 3)
    found = list(packs(x, torch.ones(5, 3, dtype=torch.bool), maximum=6))
    assert [tuple(pack.batch.shape) for pack in found] == [(2, 3, 4), (2, 3, 4), (1, 3, 4)]
    assert torch.equal(torch.cat([pack.batch for pack in found]), x)
    assert not list(packs(x[:0], torch.ones(0, 3), maximum=6))
    assert not list(packs(x, torch.zeros(5, 3), maximum=6))
    with pytest.raises(InputError, match=r"batch \[5, 3, 4\] and mask \[5, 2\]"):
        list(packs(x, torch.ones(5, 2), maximum=6))


def test_the_loss_must_be_one_value_per_row() -> None:
    net = Net()
    with pytest.raises(InputError, match=r"one value per row, \[4, 2\], not \[4\]"):
        private(net).clipped_sum(lambda x, t: net(x, t).sum(1), data(4, 2), torch.ones(4, 2))


def test_clipping_norm_is_a_quantile_of_the_unit_norms() -> None:
    net, x, mask = Net(), data(40, 3), ragged(40, 3)
    norms = unit_gradients(net, x, mask).norm(dim=1)
    norms = norms[mask.any(dim=1)].double()
    for quantile in (0.5, 0.95):
        norm = clipping_norm_from(net, net, x, mask, quantile)
        assert norm == pytest.approx(float(torch.quantile(norms, quantile)), rel=1e-5)
    with pytest.raises(InputError, match="no unit has a finite, positive"):
        clipping_norm_from(net, net, x, torch.zeros(40, 3))
