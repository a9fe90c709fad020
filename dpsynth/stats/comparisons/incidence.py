"""Cumulative incidence from noisy counts, where one event precludes another: Aalen and Johansen.

A group has, in each interval between cuts, a count of each of M kinds of events and one of those
censored, and one count of all who are followed beyond the last cut: (M + 1) K + 1 counts, each with
noise of the same standard deviation s. Those at risk, n_k, are all who leave in k or later.

**The estimate.** With D_k all events of interval k, S_k = prod_(j <= k) (1 - D_j / n_j) and
F_m,k = sum_(j <= k) S_(j-1) d_m,j / n_j (Aalen, Johansen, An Empirical Transition Matrix for
Non-homogeneous Markov Chains, Scandinavian Journal of Statistics 5, 1978): F_1 + ... + F_M + S is 1
at each cut. Counting other events as censored, and taking 1 less the curve of Kaplan and Meier for
each kind, would give more than 1 together. Noise may make a term negative; each F_m is replaced by
the nearest curve that rises, by least squares, and all of them are scaled where they would exceed 1
together. S is what is left, and so falls.

**Bands** are about the curves that the source's own counts give. log S_j has the derivatives of
curves.py by each count, and d_m,j / n_j has [x = m] [i = j] / n_j - [i >= j] d_m,j / n_j^2 by a
count of kind x in interval i. So F_m,k has the sum over j <= k of S_(j-1) times the second plus
d_m,j / n_j times the first, of j - 1; noise gives it the standard deviation s |g|, with g all of
them. From the first interval where n - D is not clear of its noise, S may be 0, and F_m may have
all that S has had until then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.stats.comparisons.chi_square import CLEAR
from dpsynth.stats.comparisons.curves import noise_at_risk

Floats = npt.NDArray[np.float64]


def split_counts(counts: Floats, kinds: int) -> tuple[Floats, Floats]:
    """Return those at risk ``[groups, K]`` and events ``[groups, kinds, K]``.

    >>> risk, events = split_counts(np.array([[1.0, 2, 3, 4, 5, 6, 7]]), 2)
    >>> risk.tolist(), events.tolist()
    ([[28.0, 22.0]], [[[1.0, 4.0], [2.0, 5.0]]])
    """
    leaving = counts[:, :-1].reshape(len(counts), -1, kinds + 1)
    later = np.cumsum(leaving.sum(axis=2)[:, ::-1], axis=1)[:, ::-1]
    return later + counts[:, -1:], leaving[:, :, :kinds].transpose(0, 2, 1)


def aalen_johansen(
    counts: Floats, kinds: int, sd: float, z: float
) -> tuple[Floats, Floats, Floats]:
    """Return shares at each cut with their bands, ``[kinds + 1, K]`` each; the last is survival.

    Args:
        counts: of one group, ``[(kinds + 1) K + 1]``.
        kinds: of events.
        sd: standard deviation of the noise in each count.
        z: how many standard deviations bands reach.

    Example:
        >>> shares, lower, upper = aalen_johansen(np.array([100.0, 50, 0, 850]), 2, 2.0, 1.96)
        >>> shares[:, 0].round(3).tolist(), (upper - lower)[:, 0].round(3).tolist()
        ([0.1, 0.05, 0.85], [0.007, 0.007, 0.01])
    """
    from sklearn.isotonic import isotonic_regression  # verification of tables does without

    (risk,), (events,) = split_counts(counts[None], kinds)
    size, lost = len(risk), events.sum(axis=0)
    noise = noise_at_risk(size, sd, kinds + 1)
    known = int(np.logical_and.accumulate(risk - lost > CLEAR * noise).sum())
    shares = np.vstack([np.zeros((kinds, size)), np.ones(size)])
    lower, upper = np.zeros_like(shares), np.ones_like(shares)
    if known == 0:
        return shares, lower, upper
    raw, derived = _derived(risk[:known], events[:, :known], size)
    off = z * sd * np.sqrt((derived**2).sum(axis=2))
    rising = [isotonic_regression(one, y_min=0.0, y_max=1.0) for one in raw[:kinds]]
    fitted = np.array(rising) / max(1.0, sum(float(one[-1]) for one in rising))
    shares[:kinds, :known] = fitted
    shares[:kinds, known:] = fitted[:, -1:]
    shares[kinds] = 1 - shares[:kinds].sum(axis=0)
    here = shares[:, :known]
    lower[:, :known] = np.minimum(np.clip(raw - off, 0.0, 1.0), here)
    upper[:, :known] = np.maximum(np.clip(raw + off, 0.0, 1.0), here)
    lower[:kinds, known:] = lower[:kinds, known - 1 : known]
    left = upper[kinds, known - 1]
    upper[:kinds, known:] = np.minimum(upper[:kinds, known - 1 : known] + left, 1.0)
    upper[kinds, known:] = left
    lower[:kinds] = np.minimum.accumulate(lower[:kinds, ::-1], axis=1)[:, ::-1]
    upper[:kinds] = np.maximum.accumulate(upper[:kinds], axis=1)
    lower[kinds] = np.minimum.accumulate(lower[kinds])
    upper[kinds] = np.maximum.accumulate(upper[kinds, ::-1])[::-1]
    return shares, lower, upper


def _derived(risk: Floats, events: Floats, size: int) -> tuple[Floats, Floats]:
    """Return the curves ``[M + 1, known]`` and their derivatives ``[M + 1, known, counts]``.

    Counts are those of all intervals, also of those after the known ones, and the last one.
    """
    kinds, known = events.shape
    left = risk - events.sum(axis=0)
    survival = np.cumprod(left / risk)
    before = np.append(1.0, survival[:-1])
    interval = np.append(np.repeat(np.arange(size), kinds + 1), size)  # of each count
    kind = np.append(np.tile(np.arange(kinds + 1), size), kinds)
    steps = np.append(0.0, np.cumsum(1 / left - 1 / risk))  # up to j, from 0 of them
    j = np.arange(known + 1)[:, None]  # log S after j intervals
    of_log = steps[np.minimum(j, interval + 1)]
    gone = (interval < j) & (kind < kinds)
    of_log = of_log - gone / np.resize(left, size + 1)[interval]
    hazards = events / risk
    here = np.arange(known)[:, None]
    found, slopes = [], []
    for m in range(kinds):
        own = ((interval == here) & (kind == m)) / risk[:, None]
        own = own - (interval >= here) * (hazards[m] / risk)[:, None]
        each = before[:, None] * (own + hazards[m][:, None] * of_log[:-1])
        slopes.append(np.cumsum(each, axis=0))
        found.append(np.cumsum(before * hazards[m]))
    return np.array([*found, survival]), np.array([*slopes, survival[:, None] * of_log[1:]])
