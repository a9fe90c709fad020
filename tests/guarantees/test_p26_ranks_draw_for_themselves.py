"""P26: several processes draw the same units, add noise each, or leave a step out.

A fit by several ranks has to be the fit of one: every unit is held by one rank with all its rows,
each rank draws with a source of its own, a rank that drew nothing takes the step all the same, and
the noise is added once. Ranks are threads here; `tests/synthesis/test_torchrun.py` has processes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dpsynth._util.torchrun import place_of
from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.models import Domain, Feature
from dpsynth.models.dpsgd import DpSgd, OtherRank, Units
from dpsynth.models.dpsgd.trainer import FirstRank
from dpsynth.models.generators import Autoregressive, Tvae, assist, training
from dpsynth.models.presets import STEPS
from dpsynth.privacy import OsEntropy, PaidEntropy, PoissonSgd, SeededEntropy
from dpsynth.privacy.entropy import Size

from ..support.private_steps import Quiet, private
from ..support.short_training import shorten_mixture
from ..support.thread_ranks import ThreadRanks, together
from ..support.toy_generators import FEW_STEPS, plan_for, randomised, settle_for
from ..support.toy_network import Net

SIZE = 3
UNITS = 60
DOMAIN = Domain((Feature("group", 4, 0), Feature("value", 9, 8)), population=UNITS, max_rows=2)


def cohort(units: int = UNITS) -> Cohort:
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, n, (units, 2)) for n in (4, 9)], axis=-1).astype(np.uint16)
    mask = np.ones((units, 2), dtype=bool)
    mask[::3, 1] = False
    return Cohort(codes, mask)


class Watched:
    """What every rank of a fit drew, held and added as noise."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.draws: dict[int, list[npt.NDArray[np.int64]]] = {}
        self.held: dict[int, int] = {}
        self.noises: list[int] = []
        self.ends: dict[int, torch.Tensor] = {}
        draw, noise, step = DpSgd.sample_batch, DpSgd._noise, {}

        def drawing(trainer: Any, units: int) -> npt.NDArray[np.int64]:
            chosen = draw(trainer, units)
            rank = trainer.ranks.place.rank
            self.draws.setdefault(rank, []).append(chosen)
            self.held[rank] = units
            return chosen

        def noisy(trainer: Any) -> torch.Tensor:
            self.noises.append(trainer.ranks.place.rank)
            return noise(trainer)

        for kind in (FirstRank, OtherRank):
            step[kind] = kind.step

            def stepping(trainer: Any, *words: Any, **more: Any) -> None:
                step[type(trainer)](trainer, *words, **more)
                self.ends[trainer.ranks.place.rank] = trainer.flat.values.clone()

            patch.setattr(kind, "step", stepping)
        patch.setattr(DpSgd, "sample_batch", drawing)
        patch.setattr(DpSgd, "_noise", noisy)

    def faults(self, steps: int, units: int = UNITS) -> set[str]:
        """Say what is wrong."""
        found = set()
        if sum(self.held.values()) != units or len(self.held) != SIZE:
            found.add("not every unit is held once")
        if {len(draws) for draws in self.draws.values()} != {steps}:
            found.add("steps left out")
        first = [np.concatenate(draws) for draws in self.draws.values() if len(draws)]
        if any(np.array_equal(one, other) for one, other in combinations(first, 2)):
            found.add("the same draws")
        if self.noises != [0] * steps:
            found.add("not the noise of one")
        if any(not torch.equal(self.ends[0], end) for end in self.ends.values()):
            found.add("other parameters")
        return found


def fit_in_ranks(kind: type[Any], patch: pytest.MonkeyPatch, units: int = UNITS) -> set[str]:
    """Fit by several ranks; return what was wrong."""
    settle_for(patch, kind, **FEW_STEPS[kind] | {"steps": 5})
    shorten_mixture(patch)
    watched = Watched(patch)
    plan = plan_for(kind, DOMAIN)

    def part(ranks: ThreadRanks) -> None:
        if ranks.place.rank:
            assist(ranks)
            return
        generator = kind(DOMAIN)
        generator.train_with(ranks)
        generator.fit(cohort(units), plan, plan.opened(OsEntropy()))

    together(SIZE, part)
    event = plan.event(STEPS)
    assert isinstance(event, PoissonSgd)
    return watched.faults(event.steps, units)


@pytest.mark.parametrize("kind", [Autoregressive, Tvae])
def test_a_fit_in_ranks_is_one_fit(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert fit_in_ranks(kind, monkeypatch) == set()


@pytest.mark.parametrize("units", [0, 1])
def test_a_rank_that_holds_nobody_takes_every_step(
    units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fit_in_ranks(Autoregressive, monkeypatch, units) <= {"the same draws"}  # of nobody


class Alike(OsEntropy):
    """The broken twin: each process starts from the same seed."""

    def __init__(self) -> None:
        self._seeded = SeededEntropy(7)

    def uniform(self, size: Size) -> npt.NDArray[np.float64]:
        return self._seeded.uniform(size)


def test_one_seed_for_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "OsEntropy", Alike)
    assert "the same draws" in fit_in_ranks(Autoregressive, monkeypatch)


def test_noise_of_every_rank_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: each rank adds the step's noise to its part, so that what is left is not it."""
    add = ThreadRanks.add

    def noisy(self: Any, *of: Any) -> torch.Tensor:
        part = DpSgd.clipped_sum(self, *of)
        self.entropy = PaidEntropy([self.event], OsEntropy())  # what has no plan has no noise
        part[self.flat.free] += self._noise()
        return add(self.ranks, part)

    monkeypatch.setattr(OtherRank, "clipped_sum", noisy)
    assert "not the noise of one" in fit_in_ranks(Autoregressive, monkeypatch)


def test_units_that_two_ranks_hold_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: rank 0 keeps what it gave away."""
    share = training.share

    def kept(*words: Any) -> Units:
        share(*words)
        units: Units = words[-1]
        return units

    monkeypatch.setattr("dpsynth.models.generators.warm_started.share", kept)
    assert "not every unit is held once" in fit_in_ranks(Autoregressive, monkeypatch)


def test_an_empty_batch_that_is_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: a rank that drew nothing goes on to its next step, and the others wait."""
    step = OtherRank.step

    def skipping(self: Any, loss: Any, batch: Any, mask: Any, *, anchor: Any = None) -> None:
        if len(mask):
            step(self, loss, batch, mask, anchor=anchor)
        else:
            self._drawn = None

    monkeypatch.setattr("tests.support.thread_ranks.PATIENCE", 0.5)
    monkeypatch.setattr(OtherRank, "step", skipping)
    with pytest.raises(Exception):  # noqa: B017, PT011 - a queue that stays empty
        fit_in_ranks(Autoregressive, monkeypatch, 1)


def sums(deal: Callable[[int], tuple[slice, slice]], size: int) -> torch.Tensor:
    """Return the clipped sum of units of two rows, held by ranks as they are dealt."""
    rng = np.random.default_rng(5)
    batch = torch.from_numpy(rng.standard_normal((9, 2, 4)).astype(np.float32)) * 50
    mask = torch.ones(9, 2)

    def part(ranks: ThreadRanks) -> torch.Tensor:
        network = Net()
        randomised(network)
        units, rows = deal(ranks.place.rank)
        settings = private(network, entropy=Quiet(0))
        trainer = FirstRank(
            network,
            event=settings.event,
            clipping_norm=0.5,
            population=40,
            learning_rate=0.1,
            entropy=Quiet(0),
            schedule="constant",
            optimizer="sgd",
            ranks=ranks,
        )
        return trainer.clipped_sum(network, batch[units, rows], mask[units, rows])

    return together(size, part)[0]


def test_the_sum_of_all_ranks_is_that_of_one() -> None:
    alone = sums(lambda rank: (slice(None), slice(None)), 1)
    dealt = sums(lambda rank: (slice(rank, None, SIZE), slice(None)), SIZE)
    torch.testing.assert_close(dealt, alone, rtol=1e-5, atol=1e-6)


def test_a_unit_whose_rows_are_dealt_is_caught() -> None:
    """Broken twin: two ranks hold a row each of the same units, so both are clipped for itself."""
    alone = sums(lambda rank: (slice(None), slice(None)), 1)
    torn = sums(lambda rank: (slice(None), slice(rank, None, 2)), 2)
    assert not torch.allclose(torn, alone, rtol=1e-2, atol=1e-2)


def test_processes_of_other_machines_are_refused() -> None:
    """What they tell each other is not encrypted."""
    here = {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2"}
    assert place_of(here | {"LOCAL_WORLD_SIZE": "2"}).rank == 1
    with pytest.raises(InputError, match="several machines"):
        place_of(here | {"LOCAL_WORLD_SIZE": "1"})
