"""Where a fit keeps what its mechanisms have released, so that it can go on after it was stopped.

A checkpoint is post-processing of the plan's events, like a run: bins, weights, the state of the
optimizer, the number of private steps. It never holds a row, or the state of a random generator: a
fit that goes on draws fresh noise. See "Fits that were stopped" in docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsynth._util.short_repr import short_repr

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class TrainingState:
    """Where a fit stands.

    Attributes:
        step: private steps that were taken.
        config: settings of the fit in plain JSON values.
        arrays: what was learned, by name.
    """

    step: int
    config: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[np.generic]] = field(repr=False)

    def __repr__(self) -> str:
        """Say how far it is."""
        return short_repr(self, f"step {self.step}")


class Checkpoints:
    """Where a generator keeps its state while it trains; this one keeps nothing.

    Attributes:
        state: where an earlier process stopped; None for a new fit.

    >>> Checkpoints().due(20, 400)
    False
    """

    state: TrainingState | None = None
    every: int = 0  # private steps from one checkpoint to the next; 0 for none

    def due(self, step: int, steps: int) -> bool:
        """Whether the state is to be kept after so many of all private steps.

        It always is after the last one: nothing of a fit leaves before that is recorded.
        """
        return bool(self.every) and (step % self.every == 0 or step == steps)

    def save(self, state: TrainingState) -> None:
        """Keep a state; what it holds is spent."""


NO_CHECKPOINTS = Checkpoints()
