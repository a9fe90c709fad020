"""Which pairs of a step table's columns are measured, and how finely: public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.models.histories.steps.table import StepTable

Pair = tuple[int, int]

FEW_VALUES = 40  # up to so many values, the row before is measured with itself too

# Weights of a pair's precision; found on two cohorts (docs/benchmarks.md).
_LEVEL, _COPY, _CROSS, _KNOWN = 3.0, 2.0, 0.5, 0.4


@dataclass(frozen=True)
class StepPlaces:
    """Where the columns of a step table are.

    Attributes:
        baseline: coarse columns of the person table.
        numbers: rows, index, remaining.
        times: day before, pace, gap before; empty in an untimed table.
        before: levels, or values before.
        gap: of the gap; None in an untimed table.
        values: what is drawn of them.
    """

    baseline: tuple[int, ...]
    numbers: tuple[int, ...]
    times: tuple[int, ...]
    before: tuple[int, ...]
    gap: int | None
    values: tuple[int, ...]

    @classmethod
    def of(cls, table: StepTable) -> StepPlaces:
        """Lay out the columns of a step table."""
        sizes = (
            len(table.conditions),
            3,
            3 * int(table.table.timed),
            len(table.series.values),
            int(table.table.timed),
            len(table.series.values),
        )
        parts, place = [], 0
        for size in sizes:
            parts.append(tuple(range(place, place + size)))
            place += size
        baseline, numbers, times, before, gap, values = parts
        return cls(baseline, numbers, times, before, gap[0] if gap else None, values)

    def bins(self, smooth: int) -> list[int]:
        """Return the number of bins that each column is cut into, about."""
        drawn = 14 if self.gap is not None else 0
        parts = {
            **dict.fromkeys(self.baseline, 8),
            **dict.fromkeys(self.numbers, 7),
            **dict.fromkeys(self.times, 10),
            **dict.fromkeys(self.before, smooth),
            **dict.fromkeys(self.values, smooth),
        }
        if self.gap is not None:
            parts[self.gap] = drawn
        return [parts[place] for place in range(len(parts))]


def step_pairs(places: StepPlaces, changes: tuple[bool, ...]) -> Mapping[Pair, float]:
    """Return every pair that is measured, with the weight of its precision.

    What is drawn is measured with all that is known, and with what else is drawn. Of what is known,
    only those pairs are measured without which conditions would be taken to be unrelated.
    """
    drawn = (*(() if places.gap is None else (places.gap,)), *places.values)
    known = (*places.baseline, *places.numbers, *places.times, *places.before)
    pairs: dict[Pair, float] = {(one, other): 1.0 for one in known for other in drawn}
    for place, other in enumerate(drawn):
        pairs |= {(one, other): 1.0 for one in drawn[:place]}
    for place, (before, value) in enumerate(zip(places.before, places.values, strict=True)):
        for later in places.values:
            if later != value:
                pairs[before, later] = _CROSS
        pairs[before, value] = _LEVEL if changes[place] else _COPY
    if places.gap is not None:
        day, pace, gap = places.times
        pairs[pace, places.gap] = _LEVEL
        pairs[gap, places.gap] = _COPY
        pairs[pace, gap] = pairs[day, places.numbers[2]] = _KNOWN
        pairs |= {(number, pace): _KNOWN for number in places.numbers}
        pairs |= {(before, pace): _KNOWN for before in places.before}
    rows, index, remaining = places.numbers
    pairs |= dict.fromkeys([(rows, index), (rows, remaining), (index, remaining)], _KNOWN)
    pairs |= {(one, other): _KNOWN for one in places.baseline for other in places.before}
    if len(places.before) <= FEW_VALUES:
        for place, other in enumerate(places.before):
            pairs |= {(one, other): _KNOWN for one in places.before[:place]}
    return {(min(pair), max(pair)): weight for pair, weight in pairs.items()}
