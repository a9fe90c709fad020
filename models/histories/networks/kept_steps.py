"""The private steps of networks of linked tables: all of the plan, kept from time to time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from dpsynth.models import Checkpoints, Progress, TrainingState
from dpsynth.models.dpsgd import DpSgd, Trainer, steps_before, trainer_arrays

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
    steps = trainer.event.steps

    def keep(step: int) -> None:
        assert isinstance(trainer, DpSgd)
        checkpoints.save(TrainingState(step, config, {**start, **trainer_arrays(trainer)}))

    for step in range(steps_before(trainer, checkpoints, keep), steps):
        yield step
        if checkpoints.due(step + 1, steps):
            keep(step + 1)
        progress("training", (step + 1) / steps)
