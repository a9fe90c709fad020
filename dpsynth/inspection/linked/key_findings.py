"""Rows without a patient, patients without rows, keys that occur twice."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dpsynth._util.formatting import counted
from dpsynth.inspection import hints
from dpsynth.inspection.findings import Finding, Level, share_text
from dpsynth.inspection.keys import near_keys
from dpsynth.inspection.linked.child_read import ChildRead
from dpsynth.inspection.linked.kinds import (
    LINKED_LIMITS,
    NO_ORIGIN,
    NO_ROWS,
    STRANGERS,
    TWICE,
    VARYING,
)
from dpsynth.inspection.linked.patient_read import Ints, PatientsRead
from dpsynth.schema import LinkedSchema
from dpsynth.tables.unit_keys import NO_KEY


def patient_findings(read: PatientsRead, whole: LinkedSchema) -> list[Finding]:
    """Judge the keys of the table of patients."""
    name, units = whole.patients.name, read.units
    rows_of_unit = np.bincount(units[units != NO_KEY])
    patients, found = int((rows_of_unit > 0).sum()), []
    twice = int((rows_of_unit > 1).sum())
    if twice and not whole.repeated:
        found.append(
            Finding(
                name,
                TWICE,
                Level.SERIOUS,
                f"{share_text(twice, patients, 'key')} stand in several rows of the table of "
                "patients, and each row is one patient; a fit stops",
                twice,
                patients,
                "keep one row of each patient in the source; or, if the table repeats what is "
                f"constant within a patient, declare in resource {name}: dpsynth: "
                "{repeated: true}",
            )
        )
    if whole.repeated:
        different, several = read.varying()
        if different:
            found.append(
                Finding(
                    name,
                    VARYING,
                    LINKED_LIMITS[VARYING].level(different / several, different),
                    f"{share_text(different, several, 'patient')} with several rows have rows that "
                    "differ in columns of the table of patients; a fit takes one row by chance",
                    different,
                    several,
                    "move columns that change within a patient to a table of rows",
                )
            )
    if whole.origin is not None:
        lost = int(np.isnan(read.origins()).sum())
        if lost:
            found.append(
                Finding(
                    f"{name}.{whole.origin}",
                    NO_ORIGIN,
                    LINKED_LIMITS[NO_ORIGIN].level(lost / patients, lost),
                    f"{share_text(lost, patients, 'patient')} have no origin; a fit leaves out "
                    "their rows with dates",
                    lost,
                    patients,
                    "complete the column in the source, or name another date as origin",
                )
            )
    return found


def owner_findings(
    read: ChildRead, owners: Ints, patients: PatientsRead, whole: LinkedSchema
) -> list[Finding]:
    """Judge rows whose key no patient has, and patients without rows.

    Args:
        read: a table of rows.
        owners: the patient of each row, `NO_KEY` without one.
        patients: the table of patients.
        whole: the schema.
    """
    name, units = read.child.name, read.units
    keyed = int((units != NO_KEY).sum())
    lost = (units != NO_KEY) & (owners == NO_KEY)
    found, count = [], int(lost.sum())
    if count:
        strangers = stranger_keys(read, owners)
        every = count == keyed
        causes = near_keys(strangers, patients.numbers())
        found.append(
            Finding(
                name,
                STRANGERS,
                Level.SERIOUS if every else LINKED_LIMITS[STRANGERS].level(count / keyed, count),
                f"{share_text(count, keyed, 'row')} have a key that no patient of table "
                f"{whole.patients.name} has, {counted(len(strangers), 'different key')}; a fit "
                + ("stops, because the keys do not fit" if every else "leaves these rows out"),
                count,
                keyed,
                ""
                if causes
                else "compare the extract of this table with that of the patients: the same people,"
                f" the same kind of key; {hints.SHOW}",
                causes,
            )
        )
    total = len(patients.numbers())
    without = total - len(np.unique(owners[owners != NO_KEY]))
    share = without / total if total else 0.0
    level = LINKED_LIMITS[NO_ROWS].level(share, without)
    if without and level is not Level.NOTE and read.child.once is None:
        remedy = "if you expect fewer, compare the periods and the wards of both extracts"
        if not len(owners):
            remedy = (
                "export the table again if the source has rows; if it is a table that nobody "
                "fills, leave it out of the schema: its part of the budget measures noise alone"
            )
        found.append(
            Finding(
                name,
                NO_ROWS,
                level,
                f"{share_text(without, total, 'patient')} have no row in this table",
                without,
                total,
                remedy,
            )
        )
    return found


def stranger_keys(read: ChildRead, owners: Ints) -> Counter[str]:
    """Return the keys that no patient has, with their rows; PRIVATE."""
    lost = read.units[(read.units != NO_KEY) & (owners == NO_KEY)]
    counts = np.bincount(lost, minlength=len(read.keys))
    return Counter({read.keys[unit]: int(counts[unit]) for unit in np.flatnonzero(counts).tolist()})
