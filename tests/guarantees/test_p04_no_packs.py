"""P04: PacGAN packs the rows of several people into one sample, and clips the pack.

With m rows in a pack a person is one of m people behind one clipped gradient: the batch has fewer
"samples" than people, so both the sampling rate and the bound on a person's part are others than
the accountant was told.
"""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models import Domain, Feature
from dpsynth.models.dpsgd import Activations, UnitGradients, clipping_norm_from, packs
from dpsynth.models.dpsgd.unit_gradients import check_units_apart
from dpsynth.models.generators import Critic, Ctgan
from dpsynth.models.generators.ctgan import REAL

DOMAIN = Domain((Feature("ward", 3, 0), Feature("drug", 4, 0)), 400, 1)
SIZES = (3, 4)


@pytest.mark.parametrize("pac", [2, 10, 0, -1])
def test_packs_are_refused(pac: int) -> None:
    with pytest.raises(InputError, match="it must be 1"):
        Ctgan(DOMAIN, pac=pac)


def test_one_row_is_the_default() -> None:
    assert inspect.signature(Ctgan).parameters["pac"].default == 1
    assert Ctgan(DOMAIN, pac=1).domain == DOMAIN


def critic() -> Critic:
    """A critic whose score depends on its hidden layers."""
    critic = Critic(SIZES, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        critic.scored.weight.normal_(generator=torch.Generator().manual_seed(1))
    return critic


def batch(units: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    rows = torch.stack([torch.randint(0, size, (units, 1), generator=generator) for size in SIZES])
    return rows.permute(1, 2, 0), torch.zeros(units, 1).long(), torch.full((units, 1), REAL)


class Packed(Critic):
    """The broken twin: each unit is scored together with its neighbour in the batch."""

    def loss(self, batch: tuple[Tensor, Tensor, Tensor], activations: Activations | None) -> Tensor:
        rows, columns, labels = batch
        hot = self.one_hot(rows[:, 0])
        pack = 0.5 * (hot + hot.roll(1, dims=0))
        return torch.nn.functional.softplus(
            -labels[:, 0] * self.score(pack, columns[:, 0], activations)
        )[:, None]


def test_each_unit_is_judged_alone() -> None:
    """By the gradient: at one unit's rows, another unit's loss has none."""
    (pack,) = packs(batch(), torch.ones(12, 1), 100)
    check_units_apart(critic().loss, pack)
    # the mean of two rows ties the inputs, which the gradients at a layer's output do not show:
    # the loss of a unit then changes with its neighbour's row
    assert not moved_by_a_neighbour(critic())
    packed = Packed(SIZES, 8, generator=torch.Generator().manual_seed(0))
    packed.load_state_dict(critic().state_dict())
    assert moved_by_a_neighbour(packed)


def moved_by_a_neighbour(network: Critic) -> bool:
    """Whether a unit's gradient changes when another unit of the batch is replaced."""
    rows, columns, labels = batch()
    other = rows.clone()
    other[0] = (other[0] + 1) % torch.tensor(SIZES)
    norms = []
    for some in (rows, other):
        (pack,) = packs((some, columns, labels), torch.ones(12, 1), 100)
        norms.append(UnitGradients.of(network.loss, pack).norms()[1:])
    return not torch.equal(*norms)


def test_the_clipping_norm_is_read_off_single_rows() -> None:
    assert clipping_norm_from(critic(), critic().loss, batch(), torch.ones(12, 1), 0.9) > 0
