"""Survival from noisy counts: the estimate of Kaplan and Meier, its bands, and the log-rank test.

A group has, in each interval between cuts, a count of events and one of those censored, and one
count of all who are followed beyond the last cut: 2 K + 1 counts y, each with noise of the same
standard deviation s. Those at risk in interval k, n_k, are all who leave in k or later: sums of
counts. Who is censored in an interval is at risk for all of it.

**The estimate** is S_k = prod_{j <= k} (1 - d_j / n_j) (Kaplan, Meier, JASA 53, 1958), at the cuts.
Noise may make a factor exceed 1; the nearest curve that falls, by least squares, is given instead.

**Bands** are about the S that the source's own counts give. With A_j = 1 / (n_j - d_j) - 1 / n_j,
log S_k has derivatives sum_{j <= min(i, k)} A_j by a count of those censored in i, and by one of
events the same less 1 / (n_i - d_i) if i <= k. So noise gives log S_k the standard deviation s |g|,
with g all derivatives. From the first interval where n_j - d_j is not clear of its own noise (3
standard deviations), the band goes down to 0.

**Log-rank test** (Mantel, Cancer Chemotherapy Reports 50, 1966). U_g = sum_k (d_gk - n_gk h_k),
with h_k = D_k / N_k of all groups. Where groups do not differ, people give U the covariance
sum_k D_k (N_k - D_k) / (N_k - 1) (diag(p_k) - p_k p_k'), p_gk = n_gk / N_k, and noise s^2 J J',
where J has the derivatives of U by each count: an event in interval i of group c moves U_g by
[g = c] - p_gi - sum_{k <= i} h_k ([g = c] - p_gk), and any other person who leaves in i by the last
term alone. The sum stops at the first interval where a group's n is not clear of its noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.stats.comparisons.chi_square import CLEAR, Facts, tested, undecided

Floats = npt.NDArray[np.float64]


def people_at_risk(counts: Floats) -> tuple[Floats, Floats]:
    """Return numbers at risk and of events, both ``[groups, K]``, of ``[groups, 2 K + 1]`` counts.

    >>> [part.tolist() for part in people_at_risk(np.array([[1.0, 2, 3, 4, 5]]))]
    [[[15.0, 12.0]], [[1.0, 3.0]]]
    """
    events = counts[:, 0:-1:2]
    leaving = events + counts[:, 1::2]
    later = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1]
    return later + counts[:, -1:], events


def noise_at_risk(intervals: int, sd: float, each: int = 2) -> Floats:
    """Return the standard deviation of the noise in each number at risk, ``[K]``.

    Args:
        intervals: K.
        sd: of the noise in a count.
        each: how many counts an interval has.
    """
    return np.asarray(sd * np.sqrt(each * np.arange(intervals, 0, -1.0) + 1), dtype=np.float64)


def kaplan_meier(counts: Floats, sd: float, z: float) -> tuple[Floats, Floats, Floats]:
    """Return survival at each cut with its band, ``[K]`` each, of one group's counts ``[2 K + 1]``.

    >>> survival, lower, upper = kaplan_meier(np.array([100.0, 0, 450, 0, 450]), 2.0, 1.96)
    >>> survival.round(2).tolist(), lower.round(3).tolist(), upper.round(3).tolist()
    ([0.9, 0.45], [0.896, 0.446], [0.904, 0.454])
    """
    from sklearn.isotonic import isotonic_regression  # verification of tables does without

    risk, events = (part[0] for part in people_at_risk(counts[None]))
    size = len(risk)
    clear = np.logical_and.accumulate(risk - events > CLEAR * noise_at_risk(size, sd))
    known = int(clear.sum())
    survival, lower, upper = np.ones(size), np.zeros(size), np.ones(size)
    if known == 0:
        return survival, lower, upper
    left, here = (risk - events)[:known], risk[:known]
    raw = np.cumprod(left / here)
    steps = np.cumsum(1 / left - 1 / here)
    k, i = np.ogrid[:known, :size]
    censored = steps[np.minimum(i, k)]
    event = censored - np.where(i <= k, (1 / np.resize(left, size))[i], 0.0)
    rest = steps[:, None]
    off = z * raw * sd * np.sqrt((np.hstack([censored, event, rest]) ** 2).sum(axis=1))
    survival[:known] = isotonic_regression(raw, y_min=0.0, y_max=1.0, increasing=False)
    survival[known:] = survival[known - 1]
    lower[:known] = np.minimum(np.clip(raw - off, 0.0, 1.0), survival[:known])
    upper[:known] = np.maximum(np.clip(raw + off, 0.0, 1.0), survival[:known])
    upper[known:] = upper[known - 1]
    falling = np.maximum.accumulate(upper[::-1])[::-1]
    return survival, np.minimum.accumulate(lower), falling


def log_rank(counts: Floats, sd: float, merged: int = 1) -> Facts:
    """Test whether groups differ in survival, of their counts ``[groups, 2 K + 1]``.

    Those of the censored may be sums of several ``merged`` counts, such as of other events.

    >>> log_rank(np.array([[100.0, 0, 900], [150, 0, 850]]), 5.0)["p-value"] < 0.01
    True
    """
    groups = len(counts)
    risk, events = people_at_risk(counts)
    size = risk.shape[1]
    enough = (risk > np.maximum(CLEAR * noise_at_risk(size, sd, 1 + merged), 1.0)).all(axis=0)
    used = int(np.logical_and.accumulate(enough).sum())
    if used == 0:
        return undecided(groups - 1)
    risk, events = risk[:, :used], events[:, :used]
    everyone, share = risk.sum(axis=0), risk / risk.sum(axis=0)
    failed = np.clip(events.sum(axis=0), 0.0, everyone)
    difference = (events - share * events.sum(axis=0)).sum(axis=1)
    weight = failed * (everyone - failed) / (everyone - 1)
    people = np.diag(share @ weight) - (share * weight) @ share.T
    own = np.eye(groups)[:, :, None] - share[:, None, :]  # [g, c, k]
    past = np.cumsum(failed / everyone * own, axis=2)
    later = (1 + merged) * (size - used) + 1  # counts of those who leave after the intervals used
    moved = [own - past, past * merged**0.5, past[:, :, -1:] * later**0.5]
    noise = sum((part.reshape(groups, -1) @ part.reshape(groups, -1).T for part in moved), 0.0)
    covariance = people + sd**2 * noise
    return tested(difference[:-1], covariance[:-1, :-1])
