"""Times to an event by groups: at risk, events, survival with a band, and the log-rank test.

**What is asked.** One histogram: for each group, the events and the censored of each interval
between public cuts, and those followed beyond the last cut. A row adds 1 to one cell; where a
patient may have several rows, they share one person. Rows without a time, or without a known state
when they leave, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, RowSums, row_sums
from dpsynth.privacy.answers import NOWHERE
from dpsynth.stats.axes import MISSING, Axis, told_apart
from dpsynth.stats.comparisons.chi_square import Facts
from dpsynth.stats.comparisons.curves import kaplan_meier, log_rank, people_at_risk
from dpsynth.stats.rows import FINE, Asked, Rows
from dpsynth.stats.statistic import Answers, Events, Ints, Statistic, sure
from dpsynth.stats.tables import counting


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

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
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

    def facts(self, answers: Answers, events: Events) -> Facts:
        """Test whether the groups differ; those of whom the group is not known are left out."""
        counts, sd = self._counts(answers, events)
        known = ~(self.frame() == MISSING).any(axis=1).to_numpy(dtype=bool)
        return log_rank(counts[known], sd) if known.sum() > 1 else {}

    def _counts(self, answers: Answers, events: Events) -> tuple[np.ndarray, float]:
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
