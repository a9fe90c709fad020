"""The best k of several candidates by their scores; `choice_event` has what it costs.

Scores that are numbers of units are counted here, so that what a plan charges for units is not
counted in rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.answers.choice_event import TopChoice
from dpsynth.privacy.answers.sums import Contributions, units_in_cells
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import noisy_top


def most_units(rows: Contributions, size: int, event: TopChoice, entropy: Entropy) -> list[int]:
    """Name the candidates that most units have, best first; a unit counts once for each it has.

    Args:
        rows: the cell of each row; the first cells are the candidates.
        size: number of cells.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Raises:
        InputError: the rows are not what the event accounts for; no noise has been drawn then.
    """
    if rows.cells.shape != (len(rows.units), 1) or event.candidates > size:
        raise InputError(f"event '{event.name}' chooses among the cells of one part")
    return top_choice(units_in_cells(rows, 0, size)[: event.candidates], event, entropy)


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
