"""P20: "every unit" read as "the units on the whole".

Sensitivity is about the worst unit, so each check of a bound has to hold for every unit, row,
column, answer and step, and not for their mean, the first one, or all of them together. Here one
single element among many breaks each bound, in every place that it can stand in: it must be
refused, before any noise is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import Activations, DpSgd, Linear
from dpsynth.privacy import (
    ChosenHistograms,
    Counts,
    JointHistograms,
    PoissonSgd,
    SeededEntropy,
    ask,
    chosen_histograms,
    joint_histograms,
    mechanisms,
)

from ..support.bare_counts import Rows
from ..support.private_steps import private

UNITS, PAID, COLUMNS = 400, 2, 4
SIZES = (5,) * COLUMNS
JOINT = JointHistograms("counts", COLUMNS, PAID, 9.0)
CHOSEN = ChosenHistograms("pairs", 3, PAID, 4.0)
PAIRS = [(0, 1), (1, 2), (2, 3)]
PARTS = [3**-0.5 * (1 - 1e-9)] * 3


class Mute(SeededEntropy):
    """Notes that it was asked."""

    asked = False

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        self.asked = True
        return np.zeros(size, np.int64)


def cohort(rows: int = PAID) -> Rows:
    codes = np.random.default_rng(1).integers(0, 5, (UNITS, rows, COLUMNS)).astype(np.int64)
    mask = np.zeros((UNITS, rows), bool)
    mask[:, 0] = True
    return Rows(codes, mask)


def first_column(rows: Any) -> Any:
    return rows[:, 0].astype(np.int64)


QUESTIONS = [Counts(first_column, 5), Counts(first_column, 5)]
SIGMAS = [CHOSEN.sigma_for(part) for part in PARTS]
MECHANISMS: dict[str, Callable[[Rows, Mute], Any]] = {
    "histograms": lambda rows, source: joint_histograms(rows, SIZES, JOINT, source),
    "pairs": lambda rows, source: chosen_histograms(rows, SIZES, PAIRS, SIGMAS, CHOSEN, source),
    "questions": lambda rows, source: ask(rows, SIZES, QUESTIONS, PARTS, CHOSEN, source),
}
PLACES = (0, UNITS // 2, UNITS - 1)


def refused(mechanism: str, rows: Rows) -> bool:
    source = Mute(0)
    try:
        MECHANISMS[mechanism](rows, source)
    except InputError:
        assert not source.asked
        return True
    return False


def one_row_more(unit: int) -> Rows:
    rows = cohort(PAID + 1)
    rows.mask[unit] = True
    return rows


def one_code_beyond(unit: int) -> Rows:
    rows = cohort()
    rows.codes[unit, 0, unit % COLUMNS] = 5
    return rows


def one_code_below(unit: int) -> Rows:
    rows = cohort()
    rows.codes[unit, 0, unit % COLUMNS] = -1
    return rows


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("broken", [one_row_more, one_code_beyond, one_code_below])
def test_one_unit_beyond_what_was_paid_is_refused(
    mechanism: str, broken: Callable[[int], Rows]
) -> None:
    assert not refused(mechanism, cohort())
    assert all(refused(mechanism, broken(unit)) for unit in PLACES)


def test_a_bound_on_the_mean_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: as many rows as were paid for, on average."""
    checked = mechanisms.checked_rows

    def on_average(rows: Any, sizes: Any, event: Any) -> Any:
        if rows.mask.sum(axis=1).mean() <= event.rows_per_unit:
            own = rows.codes[rows.mask][:, None]
            return checked(Rows(own, np.ones(own.shape[:2], bool)), sizes, event)
        return checked(rows, sizes, event)

    monkeypatch.setattr(mechanisms, "checked_rows", on_average)
    assert not refused("histograms", one_row_more(3))


@pytest.mark.parametrize("place", range(3))
def test_one_answer_beyond_what_was_paid_is_refused(place: int) -> None:
    less = [sigma * (0.9 if n == place else 1.0) for n, sigma in enumerate(SIGMAS)]
    wrong = [(0, 4) if n == place else pair for n, pair in enumerate(PAIRS)]
    for pairs, sigmas in ((PAIRS, less), (wrong, SIGMAS)):
        source = Mute(0)
        with pytest.raises(InputError):
            chosen_histograms(cohort(), SIZES, pairs, sigmas, CHOSEN, source)
        assert not source.asked


# Steps -------------------------------------------------------------------------------------------


def trainer(network: nn.Module, **changes: Any) -> DpSgd:
    event = PoissonSgd("steps", 1.0, 6, 1.0)
    return private(network, **{"event": event, "clipping_norm": 0.5, "population": 9} | changes)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.first = Linear(3, 3, generator=generator)
        self.second = Linear(3, 1, generator=generator)

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        return self.second(torch.tanh(self.first(x, activations)), activations)[..., 0]


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("layer", ["first", "second"])
def test_a_parameter_replaced_before_any_step_is_refused(layer: str, at: int) -> None:
    """At every step, and not at the first one alone."""
    network = Two()
    engine = trainer(network)
    for step in range(at + 1):
        if step == at:
            part = getattr(network, layer)
            part.weight = nn.Parameter(part.weight.clone(), requires_grad=False)
        drawn = engine.sample_batch(9)
        call = (network, torch.ones(9, 1, 3)[drawn], torch.ones(9, 1)[drawn])
        if step == at:
            with pytest.raises(InputError, match="replaced"):
                engine.step(*call)
        else:
            engine.step(*call)


@pytest.mark.parametrize("place", range(9))
def test_one_unit_beyond_the_norm_is_clipped_wherever_it_is(place: int) -> None:
    """The others have gradients far below C, so that a mean would let it through."""
    network = Two()
    engine = trainer(network, clipping_norm=0.5)
    rows = 1e-3 * torch.ones(9, 2, 3)
    mask = torch.ones(9, 2)
    weights = 1e-3 * mask
    huge = weights.clone()
    huge[place] = 1e4
    rest = torch.arange(9) != place
    moved = engine.clipped_sum(network, rows, huge) - engine.clipped_sum(
        network, rows[rest], weights[rest]
    )
    assert 0.49 < float(moved.norm()) <= 0.5 * (1 + 1e-4)


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_unit_that_is_no_number_counts_as_zero_wherever_it_is(place: int, value: float) -> None:
    network = Two()
    engine = trainer(network)
    rows, mask = torch.linspace(-1, 1, 54).reshape(9, 2, 3), torch.ones(9, 2)
    rest = torch.arange(9) != place
    clean = engine.clipped_sum(network, rows[rest], mask[rest])
    broken = rows.clone()
    broken[place, 1, 2] = value  # the last cell of the last row
    assert torch.allclose(engine.clipped_sum(network, broken, mask), clean, atol=1e-6)
