"""What a trainer has to keep between two private steps, as plain arrays, and back.

Weights and moments of Adam are functions of noisy sums. Neither the units of a step nor the state
of a random generator is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models.checkpoint import Checkpoints, TrainingState
from dpsynth.models.dpsgd.optimizer import DpSgd

_WEIGHTS, _MOMENT = "trainer.weights", "trainer.moment"

Arrays = Mapping[str, npt.NDArray[Any]]


def trainer_arrays(trainer: DpSgd) -> dict[str, npt.NDArray[Any]]:
    """Return copies of the weights, and of the optimizer's moments."""
    moments = trainer.optimizer.moments
    tensors = {_WEIGHTS: trainer.flat.values}
    tensors |= {f"{_MOMENT}{place}": moment for place, moment in enumerate(moments)}
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def training_state(checkpoints: Checkpoints) -> TrainingState | None:
    """Return the kept state if it has a trainer's part: the network was warmed up, at least."""
    state = checkpoints.state
    return state if state is not None and _WEIGHTS in state.arrays else None


def steps_before(trainer: object, checkpoints: Checkpoints, keep: Callable[[int], None]) -> int:
    """Begin the private steps: where an earlier process left them, or after the warming up.

    Args:
        trainer: takes the steps; of a fit with checkpoints, a `DpSgd`.
        checkpoints: where the fit keeps its state.
        keep: keeps the state after so many steps; called where nothing has been kept yet.

    Returns:
        How many steps were taken before.

    Raises:
        InputError: as `go_on`.
    """
    state = training_state(checkpoints)
    if state is None:
        if checkpoints.every:
            keep(0)  # warmed up
        return 0
    assert isinstance(trainer, DpSgd)
    go_on(trainer, state.step, state.arrays)
    return state.step


def go_on(trainer: DpSgd, step: int, arrays: Arrays) -> None:
    """Put a new trainer to where another one stood after so many private steps.

    Raises:
        InputError: the trainer has taken steps itself, the plan has not so many, or the arrays are
            those of another network.
    """
    if trainer.steps_taken or not 0 <= step <= trainer.event.steps:
        raise InputError(
            f"a trainer of {trainer.event.steps} steps that has taken {trainer.steps_taken} cannot "
            f"go on from step {step}"
        )
    _put(trainer.flat.values, arrays, _WEIGHTS)
    for place, moment in enumerate(trainer.optimizer.moments):
        _put(moment, arrays, f"{_MOMENT}{place}")
    trainer.steps_taken = trainer.optimizer.taken = step


def _put(tensor: Tensor, arrays: Arrays, name: str) -> None:
    array = arrays.get(name)
    if array is None or array.shape != tuple(tensor.shape):
        raise InputError("the checkpoint is not that of this network")
    tensor.copy_(torch.from_numpy(array.copy()))
