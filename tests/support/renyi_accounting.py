"""Epsilon by Renyi divergences: looser than the package's accounting, and independent of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dp_accounting import dp_event, rdp

from dpsynth.privacy import Event
from dpsynth.privacy.noisy_event import SAMPLED


def rdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """Return the epsilon of all events together.

    The discrete Gaussian enters as a continuous one, without any smoothing: its divergence at
    an integer shift is no larger (Canonne, Kamath, Steinke, arXiv 2004.00010, Proposition 5).
    """
    accountant = rdp.RdpAccountant()
    for event in events:
        loss = event.loss
        if loss.kind == SAMPLED:
            step = dp_event.GaussianDpEvent(loss.parameter)
            sampled = dp_event.PoissonSampledDpEvent(loss.sampling_rate, step)
            accountant.compose(sampled, loss.times)
        else:
            accountant.compose(dp_event.GaussianDpEvent(1 / event.mu()))
    aside = math.fsum(event.set_aside for event in events)
    return float(accountant.get_epsilon(delta - aside))
