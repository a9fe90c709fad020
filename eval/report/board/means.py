"""Columns whose mean or outer values are clearly off, in plain words with figures.

Bins of equal mass hide a lost tail, so these columns come first in the answer. A column counts as
off where its figure is beyond a limit and the interval's lower end is above what real people score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.report.board.figures import FEW, beyond, part
from dpsynth.eval.report.formatting import value_text, with_unit

Details = Mapping[str, Any]

MEANS = (0.10, 0.25)  # standard deviations beyond the reference: fit up to the first, with care
REACHES = (0.3, 0.6)  # doublings beyond the reference: 0.3 is 1.2 times as far, 0.6 is 1.5 times
SLACK = 0.05  # of the reach of the source, as in the measure


@dataclass(frozen=True)
class Off:
    """A column whose mean or outer values are off.

    Attributes:
        name: of the column.
        title: of the column, for people.
        score: how many times it reaches the last limit; from 1 the table is not fit for it.
        sentence: both tables' figures.
    """

    name: str
    title: str
    score: float
    sentence: str

    @property
    def unfit(self) -> bool:
        """Whether averages or extremes of the column should not be used."""
        return self.score > 1


def judged(document: Details) -> int:
    """Return how many columns were compared on enough rows."""
    return len(list(_entries(document)))


def off_columns(document: Details) -> list[Off]:
    """Return the columns that are clearly off, the worst first."""
    columns = (_off(entry) for entry in _entries(document))
    return sorted((one for one in columns if one is not None), key=lambda one: -one.score)


def _entries(document: Details) -> Iterator[Details]:
    for entry in part(document, "fidelity").get("location") or []:
        if (entry["mean"].get("n") or FEW) >= FEW:
            yield entry


def _off(entry: Details) -> Off | None:
    mean, reach = _times(entry["mean"], MEANS), _times(entry["reach"], REACHES)
    if not mean and not reach:
        return None
    sentences = [_of_mean(entry)] if mean else []
    sentences += [_of_reach(entry)] if reach else []
    title = with_unit(str(entry.get("title") or entry["column"]), entry.get("unit"))
    return Off(str(entry["column"]), title, max(mean, reach), " ".join(sentences))


def _times(entry: Details, limits: tuple[float, float]) -> float:
    """Return how many times a figure reaches the last limit; 0 where it is not clearly off."""
    away, low = beyond(entry), entry.get("low")
    known = [float(entry[name]) for name in ("reference", "chance") if entry.get(name) is not None]
    if away is None or away <= limits[0] or (low is not None and low <= max(known)):
        return 0.0
    return away / limits[1]


def _of_mean(entry: Details) -> str:
    synthetic, real = (value_text(entry, entry[side]["mean"]) for side in ("synthetic", "source"))
    return f"The mean is {synthetic} in the synthetic table and {real} in the source."


def _of_reach(entry: Details) -> str:
    """Say which end is lost or exaggerated."""
    source, synthetic = entry["source"], entry["synthetic"]
    slack = max(SLACK * (source["highest"] - source["lowest"]), float(entry.get("step") or 1e-9))

    def apart(end: str, sign: int) -> float:
        ends = [
            max(sign * (one[end] - source["median"]), 0.0) + slack for one in (synthetic, source)
        ]
        return math.log2(ends[0] / ends[1])

    low, high = apart("lowest", -1), apart("highest", 1)
    end, side, last, change = ("highest", "above", "p99", high)
    if abs(low) > abs(high):
        end, side, last, change = ("lowest", "below", "p01", low)
    here, there = value_text(entry, synthetic[end]), value_text(entry, source[end])
    sentence = (
        f"The {end} 5 % of its values average {here} in the synthetic table and {there} in the "
    )
    sentence += "source"
    if change < 0:
        return (
            f"{sentence}: values {side} {value_text(entry, synthetic[last])} are nearly all lost."
        )
    return f"{sentence}: its tail is exaggerated."
