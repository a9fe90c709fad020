"""The values of a column that most patients have, chosen by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import (
    Entropy,
    Event,
    RowSums,
    TopChoice,
    most_units,
    row_sums,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.axes import MISSING
from dpsynth.stats.counts import counting
from dpsynth.stats.statistic import Answers, Events, Ints, Rows, Statistic, sure

_CHOICE, _NUMBERS = 0.6, 0.4


@dataclass(frozen=True, eq=False)
class Ranking(Statistic):
    """The ``most`` values of one column, by the number of patients that have them.

    A patient raises the score of each of her values by 1 and lowers none: scores are monotone.

    Attributes:
        most: how many values are named.
    """

    most: int

    @property
    def candidates(self) -> int:
        """How many values may be named: all but the missing one."""
        return sum(label != MISSING for label in self.axes[0].labels)

    def names(self) -> tuple[str, str]:
        """Return the names of its events."""
        return f"{self.name}: choice", f"{self.name}: numbers"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """The choice, and counts of which those of the chosen values are kept."""
        choice, numbers = self.names()
        event = TopChoice(choice, self.most, self.candidates, 1, monotone=True, scale=UNDECIDED)
        return (event, _CHOICE), (counting(numbers, self), _NUMBERS)

    def sizes(self) -> dict[str, list[int]]:
        """A place and a number for each chosen value; other counts are not kept."""
        return {name: [self.most] for name in self.names()}

    def fits(self, answers: Answers) -> bool:
        """Whether each of the chosen places is that of another candidate."""
        chosen = [int(place) for part in answers[self.names()[0]] for place in part]
        distinct = len(set(chosen)) == len(chosen)
        return super().fits(answers) and distinct and set(chosen) <= set(range(self.candidates))

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Choose, then count the patients of each chosen value."""
        choice, numbers = self.names()
        event, counts = events[choice], events[numbers]
        assert isinstance(event, TopChoice) and isinstance(counts, RowSums)
        cells = self.cells(rows)
        added = rows.adding(cells[:, None])
        chosen = np.array(most_units(added, self.size, event, entropy), dtype=np.int64)
        (noisy,) = row_sums(added, [self.size], counts, entropy)
        return {choice: [chosen], numbers: [noisy[chosen]]}

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
        """List the chosen values, best first."""
        choice, numbers = self.names()
        counts = events[numbers]
        assert isinstance(counts, RowSums)
        chosen = np.asarray(answers[choice][0])
        values = np.asarray(answers[numbers][0], dtype=np.float64)
        labels = np.array(self.axes[0].labels, dtype=object)[chosen]
        return pd.DataFrame(
            {
                "rank": np.arange(1, len(chosen) + 1),
                self.axes[0].column: labels,
                "count": values,
                "lower": np.maximum(np.floor(values - z * counts.sigma), 0.0),
                "upper": np.maximum(np.ceil(values + z * counts.sigma), 0.0),
            }
        )

    def expected(self, events: Events, z: float) -> str:
        """Say how close two values are that may change places."""
        event = events[self.names()[0]]
        assert isinstance(event, TopChoice)
        apart = event.scale * np.log(event.candidates / math.erfc(z / math.sqrt(2)))
        return f"values named have within about {figure(apart)} units of those left out, {sure(z)}"
