"""Times to one of several events, of which the first precludes the others, by groups.

**What is asked.** One histogram, as for survival: for each group, the events of each kind and the
censored of each interval between public cuts, and those followed beyond the last cut. A row adds 1
to one cell; where a patient may have several rows, they share one person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.stats.axes import MISSING
from dpsynth.stats.comparisons.chi_square import Facts
from dpsynth.stats.comparisons.curves import log_rank
from dpsynth.stats.comparisons.incidence import aalen_johansen, split_counts
from dpsynth.stats.comparisons.survival import Survival
from dpsynth.stats.statistic import Answers, Events

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

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
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

    def facts(self, answers: Answers, events: Events) -> Facts:
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
