"""`ctgan` goes on from a checkpoint as if it had not been stopped, with both of its networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dpsynth.errors import InputError
from dpsynth.models import Checkpoints, TrainingState, spec_of
from dpsynth.models.generators import Critic, Ctgan, GeneratorNetwork, GeneratorTrainer
from dpsynth.models.generators.ctgan import GENERATOR_STEPS
from dpsynth.models.marginals import InitialModel
from dpsynth.privacy import SeededEntropy

from ..support.toy_generators import FEW_STEPS, TOY, plan_for, settle_for, toy_cohort

TURNS = 6


class Kept(Checkpoints):
    """Keeps every state in memory."""

    every = 1

    def __init__(self, state: TrainingState | None = None) -> None:
        self.state, self.all = state, list[TrainingState]()

    def save(self, state: TrainingState) -> None:
        self.all.append(state)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> tuple[Ctgan, list[TrainingState]]:
    settle_for(monkeypatch, Ctgan, **FEW_STEPS[Ctgan])
    kept = Kept()
    model = Ctgan(TOY).fit(toy_cohort(1), plan_for(Ctgan), SeededEntropy(2), checkpoints=kept)
    return model, kept.all


def trainer_of(start: InitialModel, seed: int) -> GeneratorTrainer:
    seeds = torch.Generator().manual_seed(seed)
    residual = GeneratorNetwork(
        start.products, hidden=16, latent=3, fixed=start.binning.hidden, generator=seeds
    )
    critic = Critic(start.binning.sizes, 8, generator=seeds)
    return GeneratorTrainer(start, residual, critic, TURNS, np.random.default_rng(seed))


def test_the_generator_goes_on_to_the_bit(fitted: tuple[Ctgan, list[TrainingState]]) -> None:
    start = InitialModel.restore(fitted[0].domain, fitted[1][0].arrays)
    whole, later = trainer_of(start, 1), trainer_of(start, 2)
    later.critic = whole.critic
    for turn in range(TURNS):
        if turn == 2:
            later.go_on(turn, whole.arrays())
            assert later.taken == turn * GENERATOR_STEPS
            whole.rng, later.rng = np.random.default_rng(5), np.random.default_rng(5)
        for one in (whole, later) if turn >= 2 else (whole,):
            one.turn()
        with torch.no_grad():  # the critic moves, as by a private step
            whole.critic.scored.weight += 0.1
        for one in (whole, later):
            one.remember()
    ended, resumed = whole.arrays(), later.arrays()
    assert ended.keys() == resumed.keys()
    assert all(np.array_equal(ended[name], resumed[name]) for name in ended)
    assert whole.taken == later.taken == TURNS * GENERATOR_STEPS


def test_what_was_learned_is_taken_over(
    fitted: tuple[Ctgan, list[TrainingState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the last checkpoint no step is left, so the run is the one of the first process."""
    model, states = fitted

    def counted(*_: Any, **__: Any) -> Any:
        raise AssertionError("the counts were released already")

    monkeypatch.setattr(InitialModel, "fit", counted)
    settings: list[Any] = [toy_cohort(1), plan_for(Ctgan), SeededEntropy(9)]
    again = Ctgan(TOY).fit(*settings, checkpoints=Kept(states[-1]))
    assert again.config() == model.config()
    ours, theirs = again.arrays(), model.arrays()
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_each_state_is_of_its_step(fitted: tuple[Ctgan, list[TrainingState]]) -> None:
    model, states = fitted
    steps = next(event.steps for event in plan_for(Ctgan).events if hasattr(event, "steps"))
    assert [state.step for state in states] == [0, 0, *range(1, steps + 1)]  # counted, warmed up
    last = states[-1].arrays
    for name, weights in model.arrays().items():
        if name.startswith("residual."):
            own = name.replace("residual.", "generator.weights.")
            assert np.array_equal(last[own], weights)
    target = model.start_.target
    assert target is not None
    assert all(np.array_equal(state.arrays["target.pairs"], target.pairs) for state in states)


def test_a_checkpoint_of_another_network_is_refused(
    fitted: tuple[Ctgan, list[TrainingState]],
) -> None:
    start = InitialModel.restore(fitted[0].domain, fitted[1][0].arrays)
    trainer = trainer_of(start, 1)
    arrays = trainer.arrays()
    for name in arrays:
        for wrong in ({**arrays, name: arrays[name][:-1]}, {**arrays, name: np.zeros(77)}):
            with pytest.raises(InputError, match="not that of this network"):
                trainer_of(start, 1).go_on(1, wrong)
    assert spec_of("ctgan").resumable
