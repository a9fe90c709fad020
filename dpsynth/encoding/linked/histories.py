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
