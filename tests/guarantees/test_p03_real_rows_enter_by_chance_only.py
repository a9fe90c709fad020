"""P03: a conditional GAN that draws real rows by their values; its accountant assumes Poisson.

CTGAN draws a column, then a code by the logarithm of its frequency, then a row with that code (Xu
et al. 2019, arXiv 1907.00503, section 4.3): whoever has a rare code is drawn far more often than
the sampling rate says, and which codes there are is counted in the private table. Here the
condition of a real row is one of its own columns, drawn uniformly, after the row was drawn.

The checks look at the steps of whole fits. Their seeds are fixed, so a run that passes once passes
always; under another seed each would raise a false alarm once in a million.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from torch import Tensor, nn

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, presets
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.dpsgd import trainer as training
from dpsynth.models.generators import Ctgan, GeneratorNetwork
from dpsynth.models.generators.ctgan import REAL
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

UNITS, STEPS, RATE, ODD = 400, 250, 0.05, 7
FALSE_ALARM = 1e-6
DOMAIN = Domain((Feature("ward", 3, 0), Feature("drug", 4, 0), Feature("sex", 2, 0)), UNITS, 1)
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
Ints = npt.NDArray[np.int64]


def cohort() -> Cohort:
    """One unit alone has the last drug."""
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, size, UNITS) for size in (3, 3, 2)], axis=1)
    codes[ODD, 1] = 3
    return Cohort(codes[:, None].astype(np.uint16), np.ones((UNITS, 1), dtype=bool))


def log_frequency(codes: npt.NDArray[np.uint16], count: int, rng: np.random.Generator) -> Ints:
    """CTGAN's row sampler: a column, a code by log frequency, a row among those that have it."""
    chosen = np.empty(count, dtype=np.int64)
    for i in range(count):
        column = codes[:, rng.integers(codes.shape[1])]
        weights = np.log1p(np.bincount(column))
        code = rng.choice(len(weights), p=weights / weights.sum())
        chosen[i] = rng.choice(np.flatnonzero(column == code))
    return np.unique(chosen)


class ByFrequency(DpSgd):
    """The broken twin: batches of the right size on average, drawn by value."""

    rng = np.random.default_rng(4)

    def sample_batch(self, units: int) -> Ints:
        size = len(super().sample_batch(units))
        chosen = log_frequency(cohort().codes[:, 0], size, self.rng)
        self._drawn = len(chosen)
        return chosen


@pytest.fixture
def included(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[DpSgd]], dict[str, Any]]:
    """How often each unit was in a step of a fit with the given trainer, and what the steps saw."""
    shipped = presets.adversarial_training
    small = {"sampling_rate": RATE, "steps": STEPS, "warm_steps": 2, "hidden": 4, "rounds": 50}
    monkeypatch.setattr(presets, "adversarial_training", lambda *size: shipped(*size) | small)
    for name in ("ctgan.WARM_BATCH", "ctgan.FAKES", "ctgan.BATCH"):
        monkeypatch.setattr(f"dpsynth.models.generators.{name}", 50)

    def run(trainer: type[DpSgd]) -> dict[str, Any]:
        counts = np.zeros(UNITS, dtype=np.int64)
        asked: list[Tensor] = []
        faithful: list[bool] = []

        class Counting(trainer):  # type: ignore[misc, valid-type]
            def __init__(self, network: nn.Module, **settings: Any) -> None:
                super().__init__(network, **settings)
                assert (self.event.sampling_rate, self.event.steps) == (RATE, STEPS)

            def sample_batch(self, units: int) -> Ints:
                assert units == UNITS
                self.chosen = super().sample_batch(units)
                counts[self.chosen] += 1
                return self.chosen

            def step(self, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
                rows, columns, labels = batch
                bins = model.start_.binning.coarsen(cohort())[self.chosen]
                faithful.append(bool((rows.numpy() == bins).all()) and bool((labels == REAL).all()))
                asked.append(columns.flatten())
                super().step(loss, batch, mask, anchor=anchor)

        model = Ctgan(DOMAIN)
        plan = PrivacyPlan.calibrate(BUDGET, model.shares(BUDGET))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "DpSgd", Counting)
            model.fit(cohort(), plan, SeededEntropy(6))
        columns = np.concatenate([part.numpy() for part in asked])
        return {"counts": counts, "columns": columns, "faithful": all(faithful)}

    return run


def fits_binomial(counts: Ints) -> float:
    """The p-value of a chi-square test of the units' inclusions against Binomial(steps, rate).

    The sum over units of the squared deviation, over its variance: one unit far off is enough.
    """
    spread = ((counts - STEPS * RATE) ** 2).sum() / (STEPS * RATE * (1 - RATE))
    law = stats.chi2(len(counts))
    return float(2 * min(law.cdf(spread), law.sf(spread)))


def drawn_too_often(count: int) -> bool:
    """Whether one unit was drawn more often than the sampling rate allows by chance."""
    return bool(stats.binom(STEPS, RATE).sf(count - 1) < FALSE_ALARM)


def test_inclusions_are_binomial_and_a_singleton_is_like_any_other(
    included: Callable[[type[DpSgd]], dict[str, Any]],
) -> None:
    drawn = included(DpSgd)
    columns = drawn["columns"]
    assert fits_binomial(drawn["counts"]) > FALSE_ALARM
    # the column of a condition is uniform whatever the row holds; its code is the row's own
    assert stats.chisquare(np.bincount(columns, minlength=3)).pvalue > FALSE_ALARM
    assert not drawn_too_often(drawn["counts"][ODD])
    assert drawn["faithful"], "a step sees the units that were drawn, labelled real"


def test_rows_drawn_by_log_frequency_are_caught(
    included: Callable[[type[DpSgd]], dict[str, Any]],
) -> None:
    drawn = included(ByFrequency)
    assert fits_binomial(drawn["counts"]) < FALSE_ALARM
    assert drawn_too_often(drawn["counts"][ODD])


def test_conditions_of_generated_rows_come_from_the_mixture_alone() -> None:
    """Neither the generator nor its conditions take a table, or counts of one."""
    arguments = GeneratorNetwork.ask.__annotations__
    assert set(arguments) == {"products", "rows", "rng", "even", "return"}
