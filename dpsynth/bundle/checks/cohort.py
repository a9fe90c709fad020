"""What holds between the tables of a synthetic cohort: keys, days, caps, and events once.

Each table was compared with its own schema before. Here it is held to what linked tables declare of
it, and to that of patients: a row belongs to a patient, its day lies within the window and not
after the end of her follow-up, she has no more rows than the schema keeps, and no temporal rule is
broken. All of it is true of what a sampler draws, so a difference came from somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import counted
from dpsynth.bundle.checks.findings import Findings
from dpsynth.bundle.format import table_path
from dpsynth.bundle.gates import PatientDays, days_of, read_columns, temporal_counts
from dpsynth.bundle.gates.patient_days import DAY
from dpsynth.schema import ChildTable, LinkedSchema, SyntheticTable, synthetic_tables

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def check_cohort(folder: Path, schema: LinkedSchema, findings: Findings) -> None:
    """Check the tables of the bundle in ``folder`` against each other.

    Args:
        folder: of the bundle; every cell of its tables is known to be valid.
        schema: of the tables.
        findings: what is found goes there.
    """
    own, *children = synthetic_tables(schema).values()
    place, before = table_path(own.name), len(findings.problems)
    with findings.step(place):
        patients = PatientDays.of(folder, own, schema)
        if not np.array_equal(patients.keys, np.arange(1, len(patients.keys) + 1)):
            findings.add(place, "does not number its patients from 1, in order")
            return
        for table in children:
            for message in _faults(folder, table, patients, schema):
                findings.add(table_path(table.name), message)
        for rule in temporal_counts(folder, schema):
            if rule.broken:
                findings.add(place, f"rule '{rule.text}': some patients break it")
    if len(findings.problems) > before:
        return
    findings.checks += [
        f"keys agree: every row of {counted(len(children), 'table')} belongs to one of "
        f"{counted(len(patients.keys), 'patient')}",
        "no patient has more rows than the schema keeps, and each event at most once",
    ]
    if any(table.child is not None and table.child.time for table in children):
        findings.checks.append(
            "every day lies within the declared window, and none after the end of follow-up"
        )


def _faults(
    folder: Path, table: SyntheticTable, patients: PatientDays, schema: LinkedSchema
) -> Iterator[str]:
    """Name every way in which the rows of a table do not fit the patients or its declaration."""
    child = table.child
    assert child is not None
    named = child.once if child.series is None else child.series.column
    names = {child.key, *filter(None, (child.time, child.order, named))}
    values = read_columns(folder, table, names)
    keys = values[child.key]
    if not np.isin(keys, patients.keys).all():
        yield f"has rows of patients whom table {schema.patients.name} does not have"
        return
    if (np.diff(keys) < 0).any():
        yield "does not have its rows in the order of its patients"
        return
    owners = keys.astype(np.int64) - 1
    kinds = np.zeros(len(owners), dtype=np.int64)
    if named is not None:
        kinds = np.unique(values[named], return_inverse=True)[1]
    yield from _capped(child, owners, kinds)
    if child.order is not None and not np.array_equal(values[child.order], _places(owners)):
        yield "does not number the rows of each patient from 1"
    if child.time is not None:
        time = values[child.time]
        column = table.schema.column(child.time)
        if column.kind.is_time and not column.kind.in_days and (time % DAY != 0).any():
            yield "has times of day, which are not modelled"
        if child.origin is not None:
            time = days_of(time, column) - patients.origins[owners]
        yield from _timed(schema, time, owners, patients)
        yield from _apart(child, time, owners, kinds)


def _capped(child: ChildTable, owners: Ints, kinds: Ints) -> Iterator[str]:
    """Compare the rows of each patient, of each test or event, with the most that are kept."""
    most = 1 if child.once is not None else child.schema.unit.max_rows
    counts = np.unique(np.column_stack([owners, kinds]), axis=0, return_counts=True)[1]
    if not (counts > most).any():
        return
    if child.once is not None:
        yield "has an event of a patient twice; each happens once"
    else:
        of_each = " of a test" if child.series is not None else ""
        yield f"has more than {counted(most, 'row')}{of_each} of a patient, the most that are kept"


def _places(owners: Ints) -> Ints:
    """Return the place of each row among those of its patient, from 1."""
    return np.arange(len(owners)) - np.searchsorted(owners, owners) + 1


def _timed(
    schema: LinkedSchema, days: Floats, owners: Ints, patients: PatientDays
) -> Iterator[str]:
    """Compare days since the origin with the window, the end of follow-up, and each other."""
    window = schema.window
    assert window is not None
    if np.isnan(days).any():
        yield "has dates of patients without an origin, from which they count"
        return
    if ((days < window.first) | (days > window.last)).any():
        yield f"has days outside the declared window, {window.first} to {window.last}"
    elif (days > patients.ends[owners]).any():
        yield f"has days after the end of a patient's follow-up, column '{schema.end}'"
    same = np.diff(owners) == 0
    if (np.diff(days)[same] < 0).any():
        yield "does not have the rows of each patient in order of time"


def _apart(child: ChildTable, days: Floats, owners: Ints, kinds: Ints) -> Iterator[str]:
    """Compare the days between two rows of a patient, of each test, with the most declared."""
    if child.longest_gap is None:
        return
    order = np.lexsort((kinds, owners))  # stable: rows of a test stay in order of time
    alike = (np.diff(owners[order]) == 0) & (np.diff(kinds[order]) == 0)
    if (np.diff(days[order])[alike] > child.longest_gap).any():
        yield f"has rows of a patient more than {child.longest_gap} days apart"
