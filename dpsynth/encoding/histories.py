"""Coded histories of patients: what a generator of histories learns from, and what it emits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).min
"""The day of an event that a patient does not have."""


@dataclass(frozen=True, eq=False, repr=False)
class SeriesRows:
    """Rows of one series, by patient, and in order within a patient.

    Attributes:
        patients: the patient of each row, ascending, ``[rows]``.
        days: since the patient's origin, ``[rows]``, ascending within a patient; 0 in a table
            without time.
        values: their codes, ``[rows, values]``.
    """

    patients: Ints
    days: Ints
    values: Codes

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows")

    def counts(self, patients: int) -> Ints:
        """Return the number of rows of each patient, ``[patients]``."""
        return np.bincount(self.patients, minlength=patients).astype(np.int64)

    def starts(self, patients: int) -> Ints:
        """Return the place of each patient's first row, ``[patients]``."""
        counts = self.counts(patients)
        return np.asarray(np.cumsum(counts) - counts)

    def numbered(self, number: Ints) -> SeriesRows:
        """Return the rows under new numbers of their patients; those with -1 are left out."""
        kept = np.flatnonzero(number[self.patients] >= 0)
        return SeriesRows(number[self.patients[kept]], self.days[kept], self.values[kept])

    def beside(self, others: SeriesRows, patients: int) -> SeriesRows:
        """Return these rows of so many patients, and behind them those of others."""
        return SeriesRows(
            np.concatenate([self.patients, others.patients + patients]),
            np.concatenate([self.days, others.days]),
            np.concatenate([self.values, others.values]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Histories:
    """Patients with all their rows.

    Attributes:
        baseline: codes of the table of patients, ``[patients, columns]``.
        ends: last day of each patient's follow-up, ``[patients]``.
        onsets: day of each event, `NEVER` without one, ``[patients, events]``.
        rows: of every series of every table.
    """

    baseline: Codes
    ends: Ints
    onsets: Ints
    rows: tuple[tuple[SeriesRows, ...], ...]

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows of patients")

    def __len__(self) -> int:
        """Return the number of patients."""
        return len(self.baseline)

    def take(self, who: Ints) -> Histories:
        """Return some patients, in ascending order, with all their rows."""
        number = np.full(len(self), -1)
        number[who] = np.arange(len(who))
        rows = tuple(tuple(one.numbered(number) for one in table) for table in self.rows)
        return Histories(self.baseline[who], self.ends[who], self.onsets[who], rows)

    def beside(self, others: Histories) -> Histories:
        """Return these patients, and others behind them."""
        rows = tuple(
            tuple(one.beside(more, len(self)) for one, more in zip(*pair, strict=True))
            for pair in zip(self.rows, others.rows, strict=True)
        )
        return Histories(
            np.concatenate([self.baseline, others.baseline]),
            np.concatenate([self.ends, others.ends]),
            np.concatenate([self.onsets, others.onsets]),
            rows,
        )
