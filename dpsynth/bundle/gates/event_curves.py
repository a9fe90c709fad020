"""The share of synthetic patients without an event over time, by Kaplan and Meier.

Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EventCurve:
    """The share of patients without an event over time, by Kaplan and Meier.

    Attributes:
        event: its name.
        patients: who had not had it on day 0.
        happened: how many of them had it later.
        steps: days, and the share without it from then on.
    """

    event: str
    patients: int
    happened: int
    steps: tuple[tuple[float, float], ...]


def event_curve(name: str, onset: Floats, ends: Floats) -> EventCurve:
    """Return the curve of those who had not had the event on day 0.

    Args:
        name: of the event.
        onset: its day for each patient; infinite where it did not come.
        ends: last day of follow-up of each patient.

    >>> onset, ends = np.array([np.inf, 2, np.inf, 4]), np.array([1.0, 5, 2, 6])
    >>> event_curve("stroke", onset, ends).steps
    ((0.0, 1.0), (2.0, 0.6666666666666667), (4.0, 0.0))
    """
    at_risk = (onset > 0) & (ends >= 0)
    came = (onset <= ends)[at_risk]
    days = np.minimum(onset, ends)[at_risk]
    when, events = np.unique(days[came], return_counts=True)
    left = len(days) - np.searchsorted(np.sort(days), when)
    shares = np.cumprod(1 - events / np.maximum(left, 1))
    steps = ((0.0, 1.0), *zip(when.tolist(), shares.tolist(), strict=True))
    return EventCurve(name, len(days), int(came.sum()), steps)
