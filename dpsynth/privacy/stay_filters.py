"""The filter of time series: what a stay adds to each period, and how far it moves all of them.

**The filter.** For stays of at most L periods, its weights are those of (1 - r z)^(1/2) with
r = 1 - 1 / L, times `WHOLE` and cut to whole numbers towards 0: b_0 = `WHOLE`, and b_n the cut of
what b_(n-1) was before cutting, times r (n - 3/2) / n. Of a series y of T periods it makes
z_t = sum_(n <= t) b_n y_(t-n), from which y is computed back. Where L = 1 it is the series itself.
Half a difference is the square root by which prefix sums are released with little noise
(Fichtenberger, Henzinger, Upadhyay, Constant Matters, ICML 2023): a stay moves z less than it moves
y, and the way back adds less noise than prefix sums of changes do. r forgets what is long past, as
stays end. `python bench/direct_statistics.py --only-series` compares it with other ways.

**How far a stay moves it.** No b_n after b_0 is above 0, and |b_n| never rises from b_1 on; cutting
keeps both. Let c_n = b_0 + ... + b_n. A stay of l periods that begins at s moves z_(s+n) by
c_n - c_(n-l), whatever s is but for the end of the window: most cells move where s = 0. So the
square of the L2 norm is at most m_l = sum_(n < T) (c_n - c_(n-l))^2, a whole number, and that of
any stay of at most L periods at most m = max(m_1, ..., m_L) (`most_moved`). All m_l are computed,
because they need not rise with l.

**How far k stays move it.** Two stays without a common period move z by vectors whose product is
not positive: it is a sum of products <B e_i, B e_j> of two periods d = j - i >= 1 apart, each
sum_n b_n b_(n+d) = `WHOLE` b_d + sum_(n >= 1) |b_n| |b_(n+d)|, over as many n as the window has,
and so at most |b_d| (sum_(n >= 1) |b_n| - `WHOLE`). That is not above 0 where the weights add up to
0 or more, which `filter_weights` requires. So the square of the norm of k stays without a common
period is at most k m. Where stays of a unit overlap, she is counted once in each period: sorted by
their begin, each keeps what lies after the ends of those before it, which is one stay of at most L
periods again.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
WHOLE = 2**20
"""Parts of a unit that a series is counted in."""
_MAX_PERIODS = 2**21  # WHOLE^2 times as many stays below 2^62


@lru_cache(maxsize=64)
def filter_weights(periods: int, longest: int) -> Ints:
    """Return the weights of the filter, ``[periods]``: whole numbers, the first `WHOLE`.

    Args:
        periods: of the series.
        longest: L, the most periods of a stay.

    Raises:
        InputError: there are no periods, or too many; or the weights are not such as derived.

    Example:
        >>> (filter_weights(4, 1) / WHOLE).tolist()
        [1.0, 0.0, 0.0, 0.0]
        >>> (filter_weights(4, 3) / WHOLE).round(3).tolist()
        [1.0, -0.333, -0.056, -0.019]
    """
    if not 1 <= longest <= periods <= _MAX_PERIODS:
        raise InputError("a window has a period at least, and stays no more than it")
    weights = np.zeros(periods, dtype=np.int64)
    weights[0], value = WHOLE, float(WHOLE)
    for n in range(1, periods):
        value *= (n - 1.5) / n * (longest - 1) / longest
        weights[n] = int(value)
    falls = (np.diff(np.abs(weights[1:])) <= 0).all()
    if not falls or (weights[1:] > 0).any() or weights.sum() < 0:
        raise InputError("the weights of a filter must be negative, fall, and add up to 0 or more")
    return weights


@lru_cache(maxsize=256)
def most_moved(periods: int, longest: int) -> int:
    """Return the square of how far one stay moves a filtered series, in parts of a unit, squared.

    >>> most_moved(30, 1) / WHOLE**2, round(most_moved(30, 7) / WHOLE**2, 2)
    (1.0, 2.67)
    """
    sums = np.cumsum(filter_weights(periods, longest))
    most = 0
    for length in range(1, longest + 1):
        moved = sums.copy()
        moved[length:] -= sums[:-length]
        most = max(most, int((moved * moved).sum()))
    return most


@lru_cache(maxsize=64)
def inverse_weights(periods: int, longest: int) -> Floats:
    """Return the weights that turn a filtered series into units again, ``[periods]``.

    >>> (inverse_weights(4, 3) * WHOLE).round(3).tolist()
    [1.0, 0.333, 0.167, 0.093]
    """
    weights = filter_weights(periods, longest) / WHOLE
    found = np.zeros(periods)
    found[0] = 1.0
    for n in range(1, periods):
        found[n] = -(weights[1 : n + 1] * found[n - 1 :: -1][:n]).sum()
    return found / WHOLE
