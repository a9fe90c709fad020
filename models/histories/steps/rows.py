"""The rows of one table of repeated rows, and its steps: what the events of the table count.

Everything is a function of each patient's own rows, whoever else there is; so the steps of a few
patients are the same alone as among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories.domain import HistoryTable
from dpsynth.models.histories.steps.lines import GROUPS, line_cells
from dpsynth.models.histories.steps.stack import Stack
from dpsynth.models.histories.steps.table import Known, Steps, StepTable, weights_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableRows:
    """Patients' rows of one table.

    Attributes:
        table: the table.
        rows: of every series of it.
        person_codes: of the person table, ``[patients, columns]``.
        ends: last day of each patient's follow-up.
        steps: of every series.
        weights: of each step, by series.
    """

    table: HistoryTable
    rows: tuple[SeriesRows, ...]
    person_codes: npt.NDArray[np.integer]
    ends: Ints
    steps: tuple[Steps, ...]
    weights: tuple[Ints, ...]

    @classmethod
    def of(
        cls,
        table: HistoryTable,
        rows: tuple[SeriesRows, ...],
        person_codes: npt.NDArray[np.integer],
        ends: Ints,
    ) -> TableRows:
        """Pair each row with the one before it, and weigh the steps."""
        patients = len(ends)
        steps = tuple(
            Steps.of(part, series.values, patients)
            for part, series in zip(rows, table.series, strict=True)
        )
        weights = tuple(weights_of(steps, patients))
        return cls(table, rows, person_codes, ends, steps, weights)

    def stack(self, codes: Sequence[Ints], features: tuple[tuple[Feature, ...], ...] = ()) -> Stack:
        """Put codes of the steps of each series together, to be counted."""
        owners = tuple(part.patients for part in self.steps)
        return Stack(features, tuple(codes), owners, self.weights)

    def line_cells(self, places: Sequence[int], cuts: Sequence[Sequence[Ints]]) -> list[Ints]:
        """Return the cell of each step in the table of each of some values, by series.

        It is the last one where a series has no line for the value.

        Args:
            places: of the values.
            cuts: codes at which groups of each value begin, by series.
        """
        found = []
        parts = zip(self.steps, self.rows, self.table.series, cuts, strict=True)
        for steps, rows, series, of_series in parts:
            none = np.full(len(steps.place), GROUPS * GROUPS)
            columns = [
                line_cells(
                    steps.levels[:, place],
                    rows.values[steps.place, place],
                    series.values[place],
                    of_series[place],
                )
                if self.table.changes_of(series)[place]
                else none
                for place in places
            ]
            found.append(np.column_stack(columns))
        return found

    def gap_cells(self) -> list[Ints]:
        """Return the cell of days of each step's gap, by series, ``[steps, 1]``."""
        return [self.table.days.code(steps.gaps)[:, None] for steps in self.steps]

    def coded(self, tables: Sequence[StepTable]) -> list[Ints]:
        """Return the codes of the steps of each series, ``[steps, columns]``."""
        parts = zip(tables, self.steps, self.rows, strict=True)
        return [self._coded(*part) for part in parts]

    def _coded(self, table: StepTable, steps: Steps, rows: SeriesRows) -> Ints:
        who, before = steps.patients, steps.place - 1
        known = Known(
            baseline=table.baseline_of(self.person_codes[who]),
            counts=steps.counts,
            index=steps.index,
            days=rows.days[before],
            ends=self.ends[who],
            paces=mean_days_left(steps, rows),
            gaps=days_before(steps),
            before=rows.values[before].astype(np.int64),
            levels=steps.levels,
        )
        drawn = table.drawn_codes(known, steps.gaps, rows.values[steps.place].astype(np.int64))
        return np.column_stack([table.known_codes(known), drawn])


def mean_days_left(steps: Steps, rows: SeriesRows) -> Floats:
    """Return the mean gap of what is left of the patient's rows at each step."""
    last = steps.place - steps.index + steps.counts - 1
    spans = rows.days[last] - rows.days[steps.place - 1]
    return np.asarray(spans / np.maximum(steps.counts - steps.index, 1))


def days_before(steps: Steps) -> Ints:
    """Return the gap before the row before; -1 for a patient's first step."""
    earlier = np.concatenate([steps.gaps[:1], steps.gaps[:-1]])
    return np.where(steps.index > 1, earlier, -1)
