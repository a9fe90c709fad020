"""P20, P22, P16, P02: training through Opacus clips by unit, pays for rounding, and lets out noise.

The broken twin of the first test clips each row, as Opacus's own optimizer does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from opacus import GradSampleModule
from torch import Tensor, nn

from dpsynth.errors import BudgetError, InputError
from dpsynth.models.dpsgd import OpacusSgd
from dpsynth.models.dpsgd.opacus_engine import SampledFlat
from dpsynth.models.dpsgd.optimizer import MARGIN
from dpsynth.privacy import OsEntropy, PaidEntropy, PoissonSgd, SeededEntropy

EVENT = PoissonSgd("steps", sampling_rate=1.0, steps=2, noise_multiplier=1.5)
NORM = 0.5
UNITS, ROWS = 12, 5


class Convolution(nn.Module):
    """A convolution over six numbers of a row, and one loss per row."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 1))

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.layers(rows[:, None])[:, 0]
        return out.square()


def setting(engine: type[OpacusSgd] = OpacusSgd, entropy: Any = None) -> tuple[Any, Any]:
    torch.manual_seed(3)
    network = Convolution()
    trainer = engine(
        network,
        event=EVENT,
        clipping_norm=NORM,
        population=UNITS,
        learning_rate=0.1,
        entropy=entropy or PaidEntropy([EVENT], OsEntropy()),
        schedule="constant",
        optimizer="sgd",
    )
    return trainer, lambda batch, _: network(batch[:, 0])[:, None]


def units(scale: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    return scale * torch.randn(UNITS, ROWS, 6, generator=source), torch.ones(UNITS, ROWS)


class ByRow(OpacusSgd):
    """The twin: every row is clipped, and a unit of five rows moves the sum five times as far."""

    def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        rows = batch.flatten(0, 1)[:, None]
        return super().clipped_sum(loss, rows, mask.reshape(-1, 1))


def shift(engine: type[OpacusSgd]) -> float:
    """How far one unit of equal rows moves the sum."""
    trainer, loss = setting(engine)
    batch, mask = units(30.0)
    batch[0] = batch[0, :1]
    with_it = trainer.clipped_sum(loss, batch, mask)
    without = trainer.clipped_sum(loss, batch[1:], mask[1:])
    return float(torch.linalg.vector_norm(with_it - without))


def test_a_unit_of_equal_rows_moves_the_sum_by_the_norm_and_the_twin_further() -> None:
    assert shift(OpacusSgd) == pytest.approx(NORM, rel=1e-6)
    assert shift(ByRow) > 4 * NORM


def test_every_unit_is_clipped_also_where_rows_cancel_or_overflow() -> None:
    trainer, loss = setting()
    for scale in (1e-6, 1.0, 1e4, 1e30):
        batch, mask = units(scale)
        batch[0, 0] = math.inf
        mask[1] = torch.tensor([1.0, -1.0, 0.5, 0.0, 0.0])
        for unit in range(4):
            some = slice(unit, unit + 1)
            norm = torch.linalg.vector_norm(trainer.clipped_sum(loss, batch[some], mask[some]))
            assert float(norm) <= NORM * (1 + MARGIN)
        assert float(trainer.clipped_sum(loss, batch[:1], mask[:1]).abs().sum()) == 0.0


def test_one_unit_more_moves_a_large_sum_by_no_more_than_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of two units: the order in which all others are added changes with one unit more."""
    monkeypatch.setattr("dpsynth.models.dpsgd.opacus_engine.BLOCK", 2 * ROWS)
    trainer, loss = setting()
    batch, mask = units(50.0)
    many, ones = batch.repeat(20, 1, 1), mask.repeat(20, 1)
    moved = trainer.clipped_sum(loss, many, ones) - trainer.clipped_sum(loss, many[1:], ones[1:])
    assert float(torch.linalg.vector_norm(moved)) <= NORM * (1 + 1e-9)


def test_the_noise_is_that_of_the_event_and_the_margin() -> None:
    trainer, loss = setting()
    batch, mask = units()
    exact = trainer.clipped_sum(loss, batch, mask)
    parts = []
    for _ in range(300):  # each by a plan of its own, which is open for one
        trainer.entropy = PaidEntropy([EVENT], OsEntropy())
        parts.append(trainer.noisy_sum(loss, batch, mask) - exact)
    drawn = torch.cat(parts)
    expected = EVENT.noise_multiplier * NORM * (1 + MARGIN)
    assert float(drawn.std()) == pytest.approx(expected, rel=0.03)


def test_noise_comes_from_the_entropy_and_no_seed_of_torch_repeats_it() -> None:
    def noisy(entropy: Any) -> npt.NDArray[np.float32]:
        trainer, loss = setting(entropy=entropy)
        torch.manual_seed(0)
        found: npt.NDArray[np.float32] = trainer.noisy_sum(loss, *units()).numpy()
        return found

    fresh = [PaidEntropy([EVENT], OsEntropy()) for _ in range(2)]
    assert not np.array_equal(*map(noisy, fresh))
    assert np.array_equal(noisy(SeededEntropy(1)), noisy(SeededEntropy(1)))


def test_no_gradient_of_a_row_outlives_a_step() -> None:
    trainer, loss = setting()
    batch, mask = units()
    chosen = trainer.sample_batch(UNITS)
    trainer.step(loss, batch[chosen], mask[chosen])
    network = trainer.flat.network
    for parameter in network.parameters():
        assert parameter.grad is None and not parameter.requires_grad
        assert not {"grad_sample", "summed_grad"} & set(vars(parameter))
    for module in network.modules():
        assert not module._forward_hooks and not module._backward_hooks
        kept = [value for value in vars(module).values() if isinstance(value, list)]
        assert not any(isinstance(part, Tensor) for value in kept for part in value)


def test_it_is_not_left_to_opacus_to_remove_the_gradients_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Versions of Opacus differ in what they leave on a network."""
    monkeypatch.setattr(GradSampleModule, "to_standard_module", GradSampleModule.remove_hooks)
    trainer, loss = setting()
    batch, mask = units()
    chosen = trainer.sample_batch(UNITS)
    trainer.step(loss, batch[chosen], mask[chosen])
    for parameter in trainer.flat.network.parameters():
        assert not {"grad_sample", "summed_grad"} & set(vars(parameter))


def test_a_step_lets_out_the_noisy_sum_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noisy sum put in its place, the weights do not depend on the rows at all."""

    def noisy(*_: Any) -> Tensor:
        return torch.ones(25)

    after = []
    for seed in (1, 2):
        trainer, loss = setting()
        monkeypatch.setattr(trainer, "noisy_sum", noisy)
        batch, mask = units(seed=seed)
        chosen = trainer.sample_batch(UNITS)
        trainer.step(loss, batch[chosen], mask[chosen])
        after.append(trainer.flat.values.clone())
    assert torch.equal(*after)


def test_steps_are_counted_and_units_are_those_that_were_drawn() -> None:
    trainer, loss = setting()
    batch, mask = units()
    with pytest.raises(InputError, match="drew"):
        trainer.step(loss, batch, mask)
    for _ in range(EVENT.steps):
        chosen = trainer.sample_batch(UNITS)
        trainer.step(loss, batch[chosen], mask[chosen])
    trainer.sample_batch(UNITS)
    with pytest.raises(BudgetError):
        trainer.step(loss, batch, mask)


def test_hooks_are_gone_after_an_error() -> None:
    trainer, _ = setting()
    flat: SampledFlat = trainer.flat
    with pytest.raises(RuntimeError):
        flat.rows(lambda batch, _: torch.ones(2, 7) @ batch, torch.ones(2, 1, 6), torch.ones(2))
    flat.check()
