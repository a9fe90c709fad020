"""How many patients or rows there are in each cell of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import (
    Entropy,
    Event,
    LaplaceCounts,
    RowSums,
    laplace_counts,
    row_sums,
)
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.rows import FINE, Rows
from dpsynth.stats.statistic import Answers, Events, Ints, Statistic, sure
from dpsynth.stats.tables.margins import NoisyTable


def counting(name: str, statistic: Statistic, parts: int = 1) -> RowSums:
    """Return the event of counting a statistic's units or rows in cells of each part."""
    return RowSums(
        name,
        parts=parts,
        rows_per_unit=statistic.rows_per_unit,
        largest=FINE if statistic.per_unit else 1,
        signed=False,
        once=statistic.once and statistic.rows_per_unit > 1,
        shared=statistic.per_unit,
        sigma=UNDECIDED,
    )


@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """Counts of declared cells; a contingency table where there are several axes."""

    def events(self) -> tuple[tuple[Event, float], ...]:
        """One histogram of all cells."""
        return ((counting(self.name, self), 1.0),)

    def in_laplace(self) -> LaplaceCounts | None:
        """Return its event with Laplace noise; None for a kind whose figures assume another."""
        if type(self) is not Counts:
            return None
        once = self.once and self.rows_per_unit > 1
        return LaplaceCounts(self.name, self.rows_per_unit, once, UNDECIDED)

    def sizes(self) -> dict[str, list[int]]:
        """One part of all cells."""
        return {self.name: [self.size]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count."""
        event = events[self.name]
        cells = self.cells(rows)
        if isinstance(event, LaplaceCounts):
            added = rows.adding(cells[:, None])
            return {self.name: laplace_counts(added, self.size, event, entropy)}
        assert isinstance(event, RowSums)
        weights = rows.weights(cells != NOWHERE)[:, None] if self.per_unit else None
        added = rows.adding(cells[:, None], weights)
        return {self.name: row_sums(added, [self.size], event, entropy)}

    @property
    def adds_up(self) -> bool:
        """Whether its margins are counts of the same rows: no unit may be in several cells."""
        return not self.once or self.rows_per_unit == 1

    def noisy(self, answers: Answers, events: Events) -> NoisyTable:
        """Return the answers as a table that can be made to agree with others."""
        event = events[self.name]
        assert isinstance(event, RowSums | LaplaceCounts)
        whole = event.largest if isinstance(event, RowSums) else 1
        counts = np.asarray(answers[self.name][0], dtype=np.float64).reshape(self.shape) / whole
        sd = event.sigma if isinstance(event, RowSums) else event.sd
        return NoisyTable(tuple(axis.key for axis in self.axes), counts, sd / whole)

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their counts."""
        noisy = self.noisy(answers, events)
        return self.listed(noisy.counts, noisy.sigma, self.reach(events, z))

    def reach(self, events: Events, z: float) -> float:
        """Return how many standard deviations of its noise an interval reaches.

        ``z`` for Gaussian noise. For Laplace noise, that of its own law if that is more; a sum of
        several such counts, in tables that agree, lies between both laws.
        """
        event = events[self.name]
        return z if not isinstance(event, LaplaceCounts) else max(z, _reach(event, z) / event.sd)

    def half_width(self, events: Events, z: float) -> float:
        """Return how far the interval of a count reaches to each side, before tables agree."""
        event = events[self.name]
        if isinstance(event, LaplaceCounts):
            return max(z * event.sd, float(_reach(event, z)))
        assert isinstance(event, RowSums)
        return z * event.sigma / event.largest

    def listed(self, counts: np.ndarray, sd: float, z: float) -> pd.DataFrame:
        """List cells with counts whose noise has this standard deviation."""
        found = self.frame()
        values = np.round(counts.ravel(), 1)
        found["count"] = values
        found["lower"] = np.maximum(np.floor(values - z * sd), 0.0)
        found["upper"] = np.maximum(np.ceil(values + z * sd), 0.0)
        return found

    def expected(self, events: Events, z: float) -> str:
        """Say how far a count will be off."""
        event = events[self.name]
        cells = "1 cell" if self.size == 1 else f"{self.size:,} cells"
        if isinstance(event, LaplaceCounts):
            off = f"{_reach(event, z):,} {self.counted} {sure(z)}"
            return f"{cells}, each to within {off} (Laplace noise)"
        assert isinstance(event, RowSums)
        off = figure(z * event.sigma / event.largest)
        return f"{cells}, each to within {off} {self.counted} {sure(z)}"


def _reach(event: LaplaceCounts, z: float) -> int:
    """Return what Laplace noise is beyond as seldom as Gaussian noise beyond ``z`` deviations."""
    from scipy.special import ndtr

    return event.reach(2 * float(ndtr(-z)))
