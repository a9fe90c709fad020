"""Group privacy: what a guarantee for one unit is worth to somebody who has several of them.

Let M be (epsilon, delta)-private for adding or removing one unit, and let D and D' differ by k of
them. Remove them one by one: D = D_0, ..., D_k = D'. Then for every set S

    P[M(D_0) in S] <= e^epsilon P[M(D_1) in S] + delta
                   <= e^(2 epsilon) P[M(D_2) in S] + e^epsilon delta + delta
                   <= ... <= e^(k epsilon) P[M(D_k) in S] + delta (1 + ... + e^((k - 1) epsilon)),

and the same from D_k to D_0. So M is (k epsilon, delta sum_{i < k} e^(i epsilon))-private for k
units; for fewer it is so all the more. The sum is (e^(k epsilon) - 1) / (e^epsilon - 1). Vadhan,
The Complexity of Differential Privacy (2017), Lemma 2.2, bounds it by k e^(k epsilon).
"""

from __future__ import annotations

import math
from functools import lru_cache

from dpsynth.privacy.filter import exactly, upwards

_ROUNDING = 1 + 1e-12  # above what floats lose in the sum


@lru_cache(maxsize=4096)
def group_cost(epsilon: float, delta: float, units: int) -> tuple[float, float]:
    """Epsilon and delta for whoever has at most so many units, rounded up.

    Args:
        epsilon: for one unit, at least 0.
        delta: for one unit.
        units: at least 1.

    Returns:
        Both; delta is 1 where nothing is left of the guarantee.

    >>> group_cost(0.1, 1e-9, 1), group_cost(0.1, 1e-9, 3)[0]
    ((0.1, 1e-09), 0.3)
    """
    if units == 1:
        return epsilon, delta
    if (units - 1) * epsilon > _MAX_EXPONENT:
        return upwards(units * exactly(epsilon)), 1.0
    growth = math.fsum(math.exp(index * epsilon) for index in range(units))
    return upwards(units * exactly(epsilon)), min(1.0, delta * growth * _ROUNDING)


_MAX_EXPONENT = 700.0  # e^700 is about the largest float
