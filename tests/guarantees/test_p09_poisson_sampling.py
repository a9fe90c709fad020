"""P09: the accountant assumes Poisson sampling, and the batches are drawn so.

Draws come from the operating system, so each statistical check states a threshold with a false
alarm rate of 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats
from torch import Tensor

from dpsynth.errors import BudgetError, InputError
from dpsynth.models.dpsgd import Activations, DpSgd, Linear
from dpsynth.privacy import OsEntropy, PaidEntropy, PoissonSgd
from dpsynth.privacy.entropy import Size

from ..support.private_steps import private

UNITS, RATE, STEPS = 300, 0.04, 3_000
FALSE_ALARM = 1e-6
Included = npt.NDArray[np.bool_]


class NobodyDrawn(OsEntropy):
    """Real noise; no unit is ever drawn."""

    def uniform(self, size: Size) -> npt.NDArray[np.float64]:
        return np.ones(size)


def engine(layer: Linear, *, steps: int = STEPS, noise: float = 1.0, **changes: object) -> DpSgd:
    event = PoissonSgd("steps", RATE, steps, noise)
    settings: dict[str, object] = {"population": UNITS, "learning_rate": 1.0}
    source = PaidEntropy([event], changes.pop("entropy", OsEntropy()))  # type: ignore[arg-type]
    return private(layer, event=event, entropy=source, **settings | changes)


def one_layer(
    inputs: int = 1, outputs: int = 1
) -> tuple[Linear, Callable[[Tensor, Activations], Tensor]]:
    layer = Linear(inputs, outputs, generator=torch.Generator().manual_seed(0))
    return layer, lambda x, activations: layer(x, activations).sum(-1)


def by_engine() -> Included:
    """Which unit was in which of the steps, ``[steps, units]``, as the engine draws."""
    layer, loss = one_layer()
    trainer = engine(layer)
    x = torch.zeros(UNITS, 1, 1)
    included = np.zeros((STEPS, UNITS), dtype=bool)
    for step in range(STEPS):
        drawn = trainer.sample_batch(UNITS)
        included[step, drawn] = True
        trainer.step(loss, x[drawn], torch.ones(len(drawn), 1))
    return included


def by_shuffling() -> Included:
    """The broken twin: a loader that cuts a shuffled order into batches of qn."""
    size = int(RATE * UNITS)
    rng = OsEntropy().generator()

    def batches() -> Iterator[npt.NDArray[np.int64]]:
        while True:
            order = rng.permutation(UNITS)
            yield from (order[start : start + size] for start in range(0, UNITS, size))

    included = np.zeros((STEPS, UNITS), dtype=bool)
    for step, batch in zip(range(STEPS), batches(), strict=False):
        included[step, batch] = True
    return included


def fits_binomial(counts: npt.NDArray[np.int64], trials: int, rate: float) -> float:
    """The p-value of a chi-square test of counts against Binomial(trials, rate)."""
    law = stats.binom(trials, rate)
    edges = np.unique(law.ppf(np.linspace(0, 1, 13)[1:-1]))  # about twelve classes of equal mass
    chances = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    classes = np.searchsorted(edges, counts, side="left")
    found = np.bincount(classes, minlength=len(chances))
    return float(stats.chisquare(found, chances * len(counts)).pvalue)


def p_values(included: Included) -> dict[str, float]:
    """One p-value per property of Poisson sampling."""
    spread = included.sum(axis=0).var() * UNITS / (STEPS * RATE * (1 - RATE))
    overlaps = (included[1::2] & included[::2]).sum(axis=1)
    law = stats.chi2(UNITS - 1)
    return {
        "batch sizes": fits_binomial(included.sum(axis=1), UNITS, RATE),
        "inclusions of a unit": 2 * min(law.cdf(spread), law.sf(spread)),
        "overlap of neighbouring steps": fits_binomial(overlaps, UNITS, RATE**2),
    }


def test_batches_are_poisson() -> None:
    chances = p_values(by_engine())
    assert min(chances.values()) > FALSE_ALARM, chances


def test_shuffled_batches_are_caught() -> None:
    chances = p_values(by_shuffling())
    assert max(chances.values()) < FALSE_ALARM, chances


def steps_with_nobody(skip_empty: bool) -> tuple[DpSgd, Tensor]:
    """Take a step with an empty batch; the broken twin skips it."""
    layer, loss = one_layer(100, 100)
    trainer = engine(layer, noise=2.0, entropy=NobodyDrawn(), clipping_norm=3.0)
    before = trainer.flat.values.clone()
    drawn = trainer.sample_batch(UNITS)
    assert len(drawn) == 0
    if not (skip_empty and len(drawn) == 0):
        trainer.step(loss, torch.zeros(0, 1, 100), torch.ones(0, 1))
    return trainer, trainer.flat.values - before


def has_noise(change: Tensor, deviation: float) -> bool:
    """Chi-square test of the variance, two-sided, at 1e-6."""
    statistic = float((change.double() / deviation).square().sum())
    law = stats.chi2(change.numel())
    return bool(law.ppf(FALSE_ALARM / 2) < statistic < law.isf(FALSE_ALARM / 2))


def test_an_empty_batch_adds_noise_and_counts() -> None:
    deviation = 2.0 * 3.0 / (RATE * UNITS)  # noise multiplier times C, over the expected batch
    trainer, change = steps_with_nobody(skip_empty=False)
    assert trainer.steps_taken == 1
    assert has_noise(change, deviation)
    twin, change = steps_with_nobody(skip_empty=True)
    assert twin.steps_taken == 0
    assert not has_noise(change, deviation)


def test_no_step_beyond_the_event() -> None:
    layer, loss = one_layer()
    trainer = engine(layer, steps=2)
    for _ in range(2):
        drawn = trainer.sample_batch(UNITS)
        trainer.step(loss, torch.zeros(len(drawn), 1, 1), torch.ones(len(drawn), 1))
    drawn = trainer.sample_batch(UNITS)
    before = trainer.flat.values.clone()
    with pytest.raises(BudgetError, match="all 2 steps"):
        trainer.step(loss, torch.zeros(len(drawn), 1, 1), torch.ones(len(drawn), 1))
    assert torch.equal(trainer.flat.values, before)


def test_a_step_takes_the_units_that_were_drawn() -> None:
    layer, loss = one_layer()
    trainer = engine(layer)
    x, mask = torch.zeros(UNITS + 1, 1, 1), torch.ones(UNITS + 1, 1)
    with pytest.raises(InputError, match="draw once per step"):
        trainer.step(loss, x, mask)
    drawn = trainer.sample_batch(UNITS)
    with pytest.raises(InputError, match="drawn already"):
        trainer.sample_batch(UNITS)
    with pytest.raises(InputError, match="pass all that were drawn"):
        trainer.step(loss, x[: len(drawn) + 1], mask[: len(drawn) + 1])
    trainer.step(loss, x[drawn], mask[drawn])
    assert trainer.steps_taken == 1
    with pytest.raises(InputError, match="draw once per step"):
        trainer.step(loss, x[drawn], mask[drawn])
