"""Counts by periods, with a smooth line beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.stats.axes import MISSING
from dpsynth.stats.series.smoothing import LEAST, Floats, smoothed
from dpsynth.stats.statistic import Answers, Events
from dpsynth.stats.tables import Counts

LINE = ("smooth", "smooth: lower", "smooth: upper")


@dataclass(frozen=True, eq=False)
class LineOfCounts(Counts):
    """A table of counts, smoothed along one of its axes.

    Attributes:
        time: the place of that axis among all.
    """

    time: int

    def __post_init__(self) -> None:
        """Refuse a series that is too short."""
        super().__post_init__()
        if self._periods < LEAST:
            raise InputError(f"'smooth' needs {LEAST} periods at least")

    @property
    def columns(self) -> tuple[str, ...]:
        """What columns of the line are called."""
        return LINE

    @property
    def adds_up(self) -> bool:
        """Never: the noise of tables that were made to agree is not the same in all periods."""
        return False

    @property
    def _periods(self) -> int:
        labels = self.axes[self.time].labels
        return len(labels) - (labels[-1] == MISSING)

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their counts and the smooth line; what has no time is left as is."""
        found = super().table(answers, events, z)
        noisy = self.noisy(answers, events)
        series = np.moveaxis(noisy.counts, self.time, -1)
        line = np.stack([series, series - z * noisy.sigma, series + z * noisy.sigma])
        power = np.full(self._periods, noisy.sigma**2)
        for place in np.ndindex(series.shape[:-1]):
            line[(slice(None), *place, slice(self._periods))] = smoothed(
                series[place][: self._periods], power, z
            )
        return with_line(found, np.moveaxis(line, -1, self.time + 1).reshape(3, -1))


def with_line(table: pd.DataFrame, line: Floats) -> pd.DataFrame:
    """Add a smooth line and its interval ``[3, rows]``, which begins at 0, as columns."""
    middle, lower, upper = line.round(1)
    for label, values in zip(
        LINE, (middle, np.maximum(lower, 0.0), np.maximum(upper, 0.0)), strict=True
    ):
        table[label] = values + 0.0
    return table
