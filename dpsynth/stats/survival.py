"""Times to events by groups: survival, incidence, their bands, and tests.

Times to an event by groups: at risk, events, survival with a band, and the log-rank test.

**What is asked.** One histogram: for each group, the events and the censored of each interval
between public cuts, and those followed beyond the last cut. A row adds 1 to one cell; where a
patient may have several rows, they share one person. Rows without a time, or without a known state
when they leave, are left out.

Survival from noisy counts: the estimate of Kaplan and Meier, its bands, and the log-rank test.

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

Times to one of several events, of which the first precludes the others, by groups.

**What is asked.** One histogram, as for survival: for each group, the events of each kind and the
censored of each interval between public cuts, and those followed beyond the last cut. A row adds 1
to one cell; where a patient may have several rows, they share one person.

Cumulative incidence from noisy counts, where one event precludes another: Aalen and Johansen.

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
`kaplan_meier` by each count, and d_m,j / n_j has [x = m] [i = j] / n_j - [i >= j] d_m,j / n_j^2 by
a count of kind x in interval i. So F_m,k has the sum over j <= k of S_(j-1) times the second plus
d_m,j / n_j times the first, of j - 1; noise gives it the standard deviation s |g|, with g all of
them. From the first interval where n - D is not clear of its noise, S may be 0, and F_m may have
all that S has had until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, RowSums, row_sums
from dpsynth.privacy.answers import NOWHERE
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import MISSING, Axis, told_apart
from dpsynth.stats.comparisons import CLEAR, Facts, tested, undecided
from dpsynth.stats.counts import counting
from dpsynth.stats.statistic import FINE, Asked, Events, Ints, Rows, Statistic, sure


@dataclass(frozen=True, eq=False)
class Survival(Statistic):
    """Survival of groups; ``axes`` are those of the groups.

    Attributes:
        time: its intervals; the last begins at the last cut.
        state: whether the event happened (0) or the row is censored (the last one).
        cuts: where intervals end.
    """

    time: Axis
    state: Axis
    cuts: tuple[float, ...]

    @property
    def reads(self) -> Asked:
        """Its groups, intervals and states."""
        return told_apart((*self.axes, self.time, self.state))

    @property
    def each(self) -> int:
        """How many counts a group has."""
        return self.state.size * len(self.cuts) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        """What the result calls its own columns."""
        return "before", "at risk", "events", "survival", "incidence"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """One histogram."""
        return ((counting(self.name, self), 1.0),)

    def sizes(self) -> dict[str, list[int]]:
        """One part: events and censored ones of each interval and group."""
        return {self.name: [self.size * self.each]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count events and censored rows."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        interval, state = self.time.cells(rows.codes), self.state.cells(rows.codes)
        beyond = interval == len(self.cuts)
        known = (interval != NOWHERE) & (beyond | (state != NOWHERE))
        place = np.where(beyond, self.each - 1, self.state.size * interval + state)
        cells = np.where(known, self.cells(rows) * self.each + place, NOWHERE)[:, None]
        weights = rows.weights(cells[:, 0] != NOWHERE)[:, None] if self.per_unit else None
        added = rows.adding(cells, weights)
        return {self.name: row_sums(added, [self.size * self.each], event, entropy)}

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List groups and cuts with those at risk before, events, and the share without one."""
        counts, sd = self._counts(answers, events)
        risk, happened = people_at_risk(counts)
        curves = np.array([kaplan_meier(group, sd, z) for group in counts]).round(6)
        survival, lower, upper = curves.transpose(1, 0, 2).reshape(3, -1)
        groups = self.frame().to_numpy(dtype=object).repeat(len(self.cuts), axis=0)
        found = pd.DataFrame(groups, columns=[axis.column for axis in self.axes])
        found["before"] = np.tile(self.cuts, self.size)
        for label, values in (
            ("at risk", risk.round(1).ravel()),
            ("events", happened.round(1).ravel()),
            ("survival", survival),
            ("lower", lower),
            ("upper", upper),
            ("incidence", (1 - survival).round(6)),
        ):
            found[label] = values
        return found

    def facts(self, answers: Numbers, events: Events) -> Facts:
        """Test whether the groups differ; those of whom the group is not known are left out."""
        counts, sd = self._counts(answers, events)
        known = ~(self.frame() == MISSING).any(axis=1).to_numpy(dtype=bool)
        return log_rank(counts[known], sd) if known.sum() > 1 else {}

    def _counts(self, answers: Numbers, events: Events) -> tuple[np.ndarray, float]:
        event = events[self.name]
        assert isinstance(event, RowSums)
        whole = FINE if self.per_unit else 1
        counts = np.asarray(answers[self.name][0], dtype=np.float64) / whole
        return counts.reshape(self.size, self.each), event.sigma / whole

    def expected(self, events: Events, z: float) -> str:
        """Say how far a curve of a thousand people will be off."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        off = z * event.sigma / event.largest * len(self.cuts) ** 0.5 / 1000
        return f"survival of 1,000 people at the last cut to within about {figure(off)} {sure(z)}"


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


NO_EVENT = "none"


@dataclass(frozen=True, eq=False)
class Competing(Survival):
    """Incidence of each kind of event, and survival without any; ``axes`` are those of the groups.

    The labels of ``state`` are the kinds of events, and then the censored.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """What the result calls its own columns."""
        return "event", "before", "at risk", "leaving", "share", "lower", "upper"

    @property
    def kinds(self) -> int:
        """How many kinds of events there are."""
        return self.state.size - 1

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List groups, kinds and cuts; shares of all kinds and of none add up to 1.

        Those who leave by none are the censored.
        """
        counts, sd = self._counts(answers, events)
        risk, happened = split_counts(counts, self.kinds)
        shares = np.array([aalen_johansen(group, self.kinds, sd, z) for group in counts])
        each, size = self.kinds + 1, len(self.cuts)
        left = counts[:, :-1].reshape(-1, size, each)[:, None, :, -1]  # the censored
        groups = self.frame().to_numpy(dtype=object).repeat(each * size, axis=0)
        found = pd.DataFrame(groups, columns=[axis.column for axis in self.axes])
        kinds = np.array([*self.state.labels[:-1], NO_EVENT], dtype=object)
        found["event"] = np.tile(kinds.repeat(size), self.size)
        found["before"] = np.tile(self.cuts, self.size * each)
        found["at risk"] = np.repeat(risk[:, None], each, axis=1).round(1).ravel() + 0.0
        found["leaving"] = np.concatenate([happened, left], axis=1).round(1).ravel() + 0.0
        for label, values in zip(("share", "lower", "upper"), shares.swapaxes(0, 1), strict=True):
            found[label] = values.round(6).ravel() + 0.0
        return found

    def facts(self, answers: Numbers, events: Events) -> Facts:
        """Test for each kind whether the groups differ in it, the others counted as censored."""
        counts, sd = self._counts(answers, events)
        known = ~(self.frame() == MISSING).any(axis=1).to_numpy(dtype=bool)
        if known.sum() < 2:
            return {}
        leaving = counts[known, :-1].reshape(int(known.sum()), -1, self.kinds + 1)
        found: Facts = {}
        for kind, label in enumerate(self.state.labels[:-1]):
            rest = leaving.sum(axis=2) - leaving[:, :, kind]
            two = np.stack([leaving[:, :, kind], rest], axis=2).reshape(len(leaving), -1)
            facts = log_rank(np.hstack([two, counts[known, -1:]]), sd, merged=self.kinds)
            found |= {f"{label}: {name}": value for name, value in facts.items()}
        return found


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
