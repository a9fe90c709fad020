"""What one part of an evaluation found: named figures, and details for tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpsynth.eval.core.estimate import Estimate


@dataclass(frozen=True)
class Measure:
    """A figure under its name.

    Attributes:
        key: by which gates and scripts know it, such as ``tvd2``; a column's or a target's own
            figures end in ``:name``.
        title: a few words for people.
        estimate: the figure.
        best: the value of a table that could not be told from the population.
        meaning: one plain sentence: what is counted, and what a bad value would mean.
    """

    key: str
    title: str
    estimate: Estimate
    best: float
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Give the measure in JSON types."""
        return {
            "title": self.title,
            **self.estimate.to_dict(),
            "best": self.best,
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class PartResult:
    """One part of an evaluation.

    Attributes:
        measures: its figures.
        details: what tables and pictures show, in JSON types, by name.
        notes: what a reader has to know: what was left out and why, which subsample was taken.
    """

    measures: tuple[Measure, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
