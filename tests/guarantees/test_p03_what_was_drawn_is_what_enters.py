"""P03: something fixed in the place of something drawn, in a private step or in a release.

Accounting takes each unit to enter a step by a coin of its own, and each cell to have noise of its
own, from the source that the fit was given. The checks hold a whole fit against what that source
gave out: the rows of a step are those whose coins said so, the noise of every table and of every
step is a draw of the source, and every draw is used, once, where it was drawn. First rows instead
of drawn ones, the batch of the step before, a draw that was thrown away, or noise from a generator
beside the source are all found, in every generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, generator_class, spec_of
from dpsynth.models.dpsgd import DpSgd, Linear, Units
from dpsynth.models.generators import ctgan, independent, warm_started
from dpsynth.models.marginals import Binning, cohort_with_visits, measurement
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PoissonSgd, PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.bare_counts import Silence
from ..support.private_steps import private
from ..support.some_cases import each_generator
from .streams import Streams

NEURAL = [name for name in NAMES if spec_of(name).neural]

UNITS, MOST, STEPS = 60, 3, 5
FEATURES = (Feature("ward", 4, 0), Feature("age", 30, 30, (1,) * 30), Feature("sex", 3, 0))
DOMAIN = Domain(FEATURES, 80, MOST)
Patch = pytest.MonkeyPatch


def cohort() -> Cohort:
    """Rows that differ, so that one in the place of another is seen; and codes that nobody has."""
    rng = np.random.default_rng(8)
    mask = np.arange(MOST) < rng.integers(1, MOST + 1, (UNITS, 1))
    codes = np.stack([rng.integers(0, f.size - 1, (UNITS, MOST)) for f in FEATURES], axis=-1)
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


class Heard:
    """What entered the mechanisms of a fit, and what left them."""

    def __init__(self) -> None:
        self.tables: list[Any] = []  # noise of each
        self.sigmas: list[float] = []
        self.batches: list[tuple[Any, Any]] = []
        self.noises: list[Any] = []
        self.trainer: DpSgd | None = None

    def counting(self, release: Callable[..., Any]) -> Callable[..., Any]:
        def listened(*given: Any) -> Any:
            found = release(*given)
            bare = release(*given[:-1], Silence(0))
            self.tables += [(a - b).ravel() for a, b in zip(found, bare, strict=True)]
            event = given[-2]
            self.sigmas += [event.sigma] * len(found) if hasattr(event, "sigma") else given[3]
            return found

        return listened

    def stepping(self, step: Any) -> Callable[..., Any]:
        def listened(trainer: DpSgd, loss: Any, batch: Any, mask: Any, **rest: Any) -> None:
            rows = batch[0] if isinstance(batch, tuple) else batch
            self.batches.append((rows.numpy().copy(), mask.numpy().copy()))
            self.trainer = trainer
            step(trainer, loss, batch, mask, **rest)

        return listened

    def summing(self, summed: Any) -> Callable[..., Any]:
        """Take the sum of what was drawn to be nothing: what is left of it is noise."""
        clipped = DpSgd.clipped_sum

        def nothing(self: DpSgd, *given: Any) -> Any:
            return torch.zeros_like(clipped(self, *given))

        def listened(trainer: DpSgd, loss: Any, batch: Any, mask: Any) -> Any:
            with mock.patch.object(DpSgd, "clipped_sum", nothing):
                total = summed(trainer, loss, batch, mask)
            self.noises.append(total.numpy().copy())
            return total

        return listened


def faults(model: str) -> set[str]:
    """Fit, and say what was not as it was drawn."""
    heard, source = Heard(), Streams(2)
    kind = generator_class(model)
    plan = PrivacyPlan.calibrate(BUDGET, kind(DOMAIN).shares(BUDGET))
    patched = [
        (measurement, "joint_histograms", heard.counting(measurement.joint_histograms)),
        (measurement, "chosen_histograms", heard.counting(measurement.chosen_histograms)),
        (independent, "joint_histograms", heard.counting(independent.joint_histograms)),
        (DpSgd, "step", heard.stepping(DpSgd.step)),
        (DpSgd, "noisy_sum", heard.summing(DpSgd.noisy_sum)),
        (warm_started, "REHEARSAL", 100),
        (ctgan, "REHEARSAL", 100),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for place, name, listener in patched:
            patch.setattr(place, name, listener)
        fitted: Any = kind(DOMAIN).fit(cohort(), plan, source)
    found = counted_otherwise(heard, source)
    if heard.trainer is not None:
        start = getattr(fitted, "start_", None)
        binning = fitted.binning_ if start is None else start.binning
        found |= stepped_otherwise(heard, source, heard.trainer, binning)
    return found


def counted_otherwise(heard: Heard, source: Streams) -> set[str]:
    """Noise of tables that is not what the source drew, whole and in order."""
    drawn = source.drawn["discrete_gaussian"]
    found = set()
    ours, theirs = (np.concatenate(parts) for parts in (heard.tables, drawn))
    if ours.shape != theirs.shape or not np.array_equal(ours, theirs):
        found.add("the noise of counts is not what was drawn")
    scales = np.concatenate(
        [np.full(size, sigma) for sigma, size in source.asked["discrete_gaussian"]]
    )
    wanted = [np.full(len(noise), s) for noise, s in zip(heard.tables, heard.sigmas, strict=True)]
    if not np.array_equal(scales, np.concatenate(wanted)):
        found.add("the noise of counts has another scale")
    return found


def stepped_otherwise(heard: Heard, source: Streams, trainer: DpSgd, binning: Binning) -> set[str]:
    """Units and noise of steps that are not what the source drew."""
    found = set()
    coins, normals = source.drawn["uniform"], source.drawn["normal"]
    if not len(coins) == len(normals) == len(heard.batches) == STEPS:
        found.add("a draw was thrown away, or used again")
    units = cohort_with_visits(cohort())
    bins, own = binning.coarsen(units), units.mask.sum(axis=1, keepdims=True)
    weights = (units.mask / own).astype(np.float32)
    for coin, (rows, mask) in zip(coins, heard.batches, strict=False):
        chosen = np.flatnonzero(coin < trainer.event.sampling_rate)
        if not (np.array_equal(rows, bins[chosen]) and np.array_equal(mask, weights[chosen])):
            found.add("other units than were drawn")
    least = trainer.event.noise_multiplier * trainer.clipping_norm
    free = slice(None) if trainer.flat.free is None else trainer.flat.free.numpy()
    for normal, noise in zip(normals, heard.noises, strict=False):
        scale = float(noise[free] @ normal) / float(normal @ normal)
        if not np.allclose(noise[free], normal * scale, atol=1e-5 * scale):
            found.add("the noise of a step is not what was drawn")
        if not 1 - 1e-6 < scale / least < 1.01:
            found.add("the noise of a step has another scale")
    return found


BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-5)


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_what_the_source_drew_is_what_enters(model: str) -> None:
    assert faults(model) == set()


@pytest.mark.parametrize(("coin", "units"), [(0.0, 500), (1.0 - 2.0**-53, 0)])
def test_every_coin_counts_however_many_units_it_lets_in(coin: float, units: int) -> None:
    """A batch is never cut to a size, and never filled up."""

    class Coins(SeededEntropy):
        def uniform(self, size: Any) -> Any:
            return np.full(size, coin)

    layer = Linear(1, 1, generator=torch.Generator().manual_seed(0))
    event = PoissonSgd("steps", 0.01, 3, 1.0)
    trainer = private(layer, event=event, population=100, entropy=Coins(0))
    assert trainer.sample_batch(500).tolist() == list(range(units))


# Broken twins ------------------------------------------------------------------------------------


def the_first_units(patch: Patch) -> None:
    batch = Units.batch
    patch.setattr(Units, "batch", lambda self, chosen: batch(self, np.arange(len(chosen))))


def the_batch_of_the_first_step(patch: Patch) -> None:
    draw = DpSgd.sample_batch
    kept: list[Any] = []

    def again(self: DpSgd, units: int) -> Any:
        kept.append(draw(self, units))
        self._drawn = len(kept[0])
        return kept[0]

    patch.setattr(DpSgd, "sample_batch", again)


def the_larger_of_two_draws(patch: Patch) -> None:
    draw = DpSgd.sample_batch

    def larger(self: DpSgd, units: int) -> Any:
        first = draw(self, units)
        self._drawn = None
        second = draw(self, units)
        chosen = max(first, second, key=len)
        self._drawn = len(chosen)
        return chosen

    patch.setattr(DpSgd, "sample_batch", larger)


def rows_that_weigh_one(patch: Patch) -> None:
    of = Units.of.__func__  # type: ignore[attr-defined]

    def made(cls: type[Units], units: Cohort, binning: Binning) -> Units:
        return Units(of(cls, units, binning).bins, units.mask.astype(np.float64))

    patch.setattr(Units, "of", classmethod(made))


def noise_of_a_seed(patch: Patch) -> None:
    def seeded(self: DpSgd) -> Any:
        rng = np.random.default_rng(self.steps_taken)
        size = self.flat.values.numel() if self.flat.free is None else len(self.flat.free)
        self.entropy.normal(size, np.float32)
        noise = torch.from_numpy(rng.standard_normal(size, dtype=np.float32))
        return noise * self.event.noise_multiplier * self.clipping_norm

    patch.setattr(DpSgd, "_noise", seeded)


def counts_of_a_seed(patch: Patch) -> None:
    release = measurement.joint_histograms
    patch.setattr(
        measurement, "joint_histograms", lambda *given: release(*given[:-1], SeededEntropy(4))
    )


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize(
    ("twin", "fault"),
    [
        (the_first_units, "other units than were drawn"),
        (the_batch_of_the_first_step, "other units than were drawn"),
        (the_larger_of_two_draws, "a draw was thrown away, or used again"),
        (rows_that_weigh_one, "other units than were drawn"),
        (noise_of_a_seed, "the noise of a step is not what was drawn"),
    ],
)
@pytest.mark.parametrize("model", NEURAL)
def test_a_fixed_thing_in_the_place_of_a_drawn_one_is_caught(
    model: str, twin: Callable[[Patch], None], fault: str, monkeypatch: Patch
) -> None:
    twin(monkeypatch)
    assert fault in faults(model)


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_counts_with_the_noise_of_a_seed_are_caught(monkeypatch: Patch) -> None:
    counts_of_a_seed(monkeypatch)
    assert "the noise of counts is not what was drawn" in faults("mixture")
