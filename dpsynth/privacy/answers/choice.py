"""The best k of several candidates by their scores; `choice_event` has what it costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.answers.choice_event import TopChoice
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import noisy_top


def top_choice(scores: NDArray[np.int64], event: TopChoice, entropy: Entropy) -> list[int]:
    """Name the candidates with the largest noisy scores, best first.

    Args:
        scores: one for each candidate, ``[candidates]``.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Raises:
        InputError: the scores are not what the event accounts for; no noise has been drawn then.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if scores.dtype != np.int64 or scores.shape != (event.candidates,):
        raise InputError(
            f"event '{event.name}' chooses among {event.candidates} whole-number scores"
        )
    return noisy_top(event, entropy, scores, event.chosen)
