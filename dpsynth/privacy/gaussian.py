"""The Gaussian mechanism: delta at an epsilon, and back, in closed form.

``mu`` is sensitivity over noise. It measures any mechanism that resembles a Gaussian one, which
serves to choose grids and to start searches; claims come from accounting.py.

Source: Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy, arXiv 1805.06530,
Theorem 8.
"""

from __future__ import annotations

import math

from dpsynth.errors import InputError

_PRECISION = 1e-12


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Least delta for which the Gaussian mechanism is (epsilon, delta)-private.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import log_ndtr

    gain = float(log_ndtr(mu / 2 - epsilon / mu))
    loss = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return -math.exp(gain) * math.expm1(loss - gain) if loss < gain else 0.0


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu for which the Gaussian mechanism is (epsilon, delta)-private, by bisection.

    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)  # noise for a sensitivity of 1
    3.730632

    Raises:
        InputError: if epsilon is negative or not finite, or delta is not between 0 and 1.
    """
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise InputError("a budget has a finite epsilon of 0 or above and a delta between 0 and 1")
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if gaussian_delta(middle, epsilon) < delta:
            low = middle
        else:
            high = middle
    return low
