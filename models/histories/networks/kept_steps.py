"""The private steps of networks of linked tables: all of the plan, kept from time to time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from dpsynth.models import Checkpoints, Progress, TrainingState
from dpsynth.models.dpsgd import DpSgd, Trainer, go_on, trainer_arrays, training_state

Arrays = Mapping[str, npt.NDArray[Any]]


def steps_left(
    trainer: Trainer,
    checkpoints: Checkpoints,
    start: Arrays,
    config: Mapping[str, float],
    progress: Progress,
) -> Iterator[int]:
    """Yield the number of each private step that is left, from 0; the caller takes it.

    Their number and schedule are fixed beforehand. Where an earlier process took some, its trainer
    is taken over before the first of them.

    Args:
        trainer: takes the steps; its network was warmed up, or goes on.
        checkpoints: where the fit keeps its state.
        start: what was released, and the networks as they were before the first private step.
        config: settings that follow from what was released.
        progress: of the stage ``training``.

    Raises:
        InputError: what was kept is of another network.
    """
    state, steps = training_state(checkpoints), trainer.event.steps

    def keep(step: int) -> None:
        assert isinstance(trainer, DpSgd)
        checkpoints.save(TrainingState(step, config, {**start, **trainer_arrays(trainer)}))

    taken = 0
    if state is not None:
        assert isinstance(trainer, DpSgd)
        taken = state.step
        go_on(trainer, taken, state.arrays)
    elif checkpoints.every:
        keep(0)  # warmed up
    for step in range(taken, steps):
        yield step
        if checkpoints.due(step + 1, steps):
            keep(step + 1)
        progress("training", (step + 1) / steps)
