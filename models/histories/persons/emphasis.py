"""What counts more in the table of patients than other columns and pairs of it.

It says how precisely a pair is measured, whether it is measured again in any case, how finely a
column is cut into bins, and how strongly it is tied to independence. All of it follows from what
the columns are, and from shares that were released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.domain import WIDE
from dpsynth.models.histories.persons.table import Hidden, PersonTable

Floats = npt.NDArray[np.float64]

VALUE = 2.0  # weight of a pair of the baseline with a first value, which groups are compared by
APART = 0.4  # of a pair of hidden columns of two series
COUNT, OF_WIDE = 2.0, 1.5  # of one with the number of rows of a series; where rows are wide
FIRST = 1.25  # of a pair of the baseline with a value of a first row, where rows are wide
OWN = 2.0  # weight of a pair of columns of the tables of patients and of events
FATE = 4.0  # of one that survival by groups depends on: when who had an event, and when who died
ALONE = 0.2  # what a patient without a later row counts when numbers of rows are cut into bins
SMOOTH = 8  # codes of a baseline column, from which on it is cut more finely where patients are few
APART_BY = 1 / 3  # by this power of a code's share: few are very old, and what they have differs
LEAST = 1e-5  # share of a code, for that


@dataclass(frozen=True)
class Emphasis:
    """Weights of the columns and pairs of a table of patients.

    Attributes:
        person: the table.
        first: weight of a pair of the baseline with a value of a first row, where rows are wide.
    """

    person: PersonTable
    first: float = FIRST

    def weight_of(self, pair: tuple[int, int]) -> float:
        """Say by how much a pair is measured more precisely than others: by what its columns are.

        What stands in the tables of patients and of events is wanted as it is; a hidden column
        only begins a history. How many rows there are decides who has a step, and how many weigh.
        """
        if max(pair) < self.person.own:
            return FATE if self._tells_fates(pair) else OWN
        for hidden in self._series:
            if hidden.count in pair:
                return OF_WIDE if len(hidden.values) >= WIDE else COUNT
            if min(pair) < self.person.baseline and max(pair) in hidden.values:
                return self.first if len(hidden.values) >= WIDE else VALUE
        if min(pair) < self.person.own:
            return 1.0
        first, last = pair
        together = any(one.count <= first and last <= one.values[-1] for one in self._series)
        return 1.0 if together else APART

    def _tells_fates(self, pair: tuple[int, int]) -> bool:
        """Whether a pair has the end of follow-up, or the baseline and an event."""
        of_event = min(pair) < self.person.baseline <= max(pair)
        return of_event or self.person.ended in pair

    def is_compared(self, pair: tuple[int, int]) -> bool:
        """Whether groups of patients are compared by a pair: the baseline with a first value.

        Not where rows are wide, which have many values. A pair that noise hides would be lost.
        """
        values = {j for one in self._series if len(one.values) < WIDE for j in one.values}
        return min(pair) < self.person.baseline and max(pair) in values

    def ties(self, of_outcomes: float, others: float) -> list[float]:
        """Return each column's tie to independence: of what became of patients, and of the rest.

        It takes noise out, and weakens relations. Few patients die, and what a component says of
        them is mostly noise; how values differ between groups is clearer.
        """
        outcomes = {self.person.ended, *range(self.person.baseline, self.person.own)}
        return [of_outcomes if j in outcomes else others for j in range(len(self.person.features))]

    @cached_property
    def _series(self) -> list[Hidden]:
        return [hidden for of_table in self.person.hidden for hidden in of_table]

    def importance_of(self, place: int, shares: Floats) -> Floats | None:
        """Say how much patients with each code of a column count when it is cut into bins."""
        if self.person.ending is not None and place == self.person.ended:
            return self.person.ending.importance(shares)
        if place in self.person.numbers_of_wide:
            return np.maximum(self.person.numbers_of_wide[place].middles - 1.0, ALONE)
        cells = self.person.features[place].cells
        if place < self.person.baseline and cells > SMOOTH:
            return np.asarray(np.maximum(shares[:cells], LEAST) ** -APART_BY)
        return None
