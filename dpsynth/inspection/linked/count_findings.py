"""Patients with more rows than count, events that occur again, and gaps between rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth._util.formatting import counted
from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection import hints
from dpsynth.inspection.findings import (
    ABSENT,
    LIMITS,
    MANY_ROWS,
    ROLLED_UP,
    UNKNOWN,
    Finding,
    share_text,
)
from dpsynth.inspection.keys import CROWDED, bracket, crowd_findings
from dpsynth.inspection.linked.child_read import NAMELESS, ChildRead
from dpsynth.inspection.linked.kinds import AGAIN, LINKED_LIMITS, LONG_GAP
from dpsynth.inspection.linked.patient_read import Bools, Floats, Ints
from dpsynth.tables.unit_keys import NO_KEY


def count_findings(read: ChildRead, owners: Ints, days: Floats, patients: int) -> list[Finding]:
    """Judge how many rows patients have, and how far apart.

    Args:
        read: a table of rows.
        owners: the patient of each row.
        days: since her origin.
        patients: how many there are.
    """
    kept = rows_that_count(read, owners, days)
    series = owners[kept] * max(len(read.names), 1) + read.named[kept]
    each, counts = np.unique(series, return_counts=True)
    if read.child.once is not None:
        return _again(read, counts)
    of_patient = each // max(len(read.names), 1)
    return [
        *_many_rows(read, of_patient, counts, patients),
        *_gaps(read, series, days[kept]),
    ]


def rows_that_count(read: ChildRead, owners: Ints, days: Floats) -> Bools:
    """Tell which rows have a patient, a day, and a test or event that is declared."""
    kept = (owners != NO_KEY) & (read.named != NAMELESS)
    return np.asarray(kept & np.isfinite(days)) if read.child.time is not None else kept


def crowds(read: ChildRead, owners: Ints, days: Floats) -> dict[int, int]:
    """Return the rows of each patient who has far more than any other can have."""
    if read.child.once is not None:
        return {}
    kept = rows_that_count(read, owners, days)
    series = owners[kept] * max(len(read.names), 1) + read.named[kept]
    each, counts = np.unique(series, return_counts=True)
    many = counts >= CROWDED * read.child.schema.unit.max_rows
    of_patient = np.unique(each[many] // max(len(read.names), 1))
    return {int(number): int((owners == number).sum()) for number in of_patient}


def _many_rows(read: ChildRead, of_patient: Ints, counts: Ints, patients: int) -> list[Finding]:
    name, most = read.child.name, read.child.schema.unit.max_rows
    rows = "row" if read.child.series is None else "row of one test"
    over = len(np.unique(of_patient[counts > most]))
    lost, total = int(np.maximum(counts - most, 0).sum()), int(counts.sum())
    level = LIMITS[MANY_ROWS].level(over / patients if patients else 0.0, over)
    many = len(np.unique(of_patient[counts >= CROWDED * most]))
    top = int(counts.max()) if len(counts) else 0
    found, largest = crowd_findings(name, many, top, patients, counted(most, rows)), bracket(top)
    if over:  # a few are expected, and then it is a note
        found.append(
            Finding(
                name,
                MANY_ROWS,
                level,
                f"{share_text(over, patients, 'patient')} have more than {counted(most, rows)}; "
                f"{share_text(lost, total, 'row')} do not count, and the largest number is "
                f"{largest}",
                over,
                patients,
                "a larger max_rows keeps more rows; take it from a protocol or a publication",
            )
        )
    return found


def _again(read: ChildRead, counts: Ints) -> list[Finding]:
    again = int((counts > 1).sum())
    if not again:
        return []
    return [
        Finding(
            read.child.name,
            AGAIN,
            LINKED_LIMITS[AGAIN].level(again / len(counts), again),
            f"{share_text(again, len(counts), 'event')} of a patient stand in several rows; a fit "
            "takes the first day",
            again,
            len(counts),
            "if they can happen again, declare the table without once, with max_rows",
        )
    ]


def _gaps(read: ChildRead, series: Ints, days: Floats) -> list[Finding]:
    longest = read.child.longest_gap
    if longest is None or len(days) < 2:
        return []
    order = np.lexsort((days, series))
    gaps = np.diff(days[order])[np.diff(series[order]) == 0]
    long = int((gaps > longest).sum())
    if not long:
        return []
    return [
        Finding(
            f"{read.child.name}.{read.child.time}",
            LONG_GAP,
            LINKED_LIMITS[LONG_GAP].level(long / len(gaps), long),
            f"{share_text(long, len(gaps), 'gap')} between two rows of a patient are longer than "
            f"{counted(longest, 'day')}; a fit counts them as the longest",
            long,
            len(gaps),
            "compare longest_gap with its source, or leave it out",
        )
    ]


def named_findings(read: ChildRead) -> list[Finding]:
    """Judge rows of a test or event that is not declared, in the words of its table."""
    column = read.child.once if read.child.once is not None else read.child.test_column
    if column is None:
        return []
    what = "event" if read.child.once is not None else "test"
    check = read.reading.columns[column]
    others = len(check.suspects.of_kind.get(Kind.UNKNOWN, ()))
    found = []
    for one in check.findings():
        if one.kind == UNKNOWN and check.column.on_unknown == "missing":
            where = f"series.tests of {read.child.name}" if what == "test" else "constraints.enum"
            found.append(
                replace(
                    one,
                    level=ROLLED_UP.level(one.count / one.total, one.count),
                    message=f"{share_text(one.count, one.total, 'row')} name a {what} that is not "
                    f"declared, {counted(others, 'different one')}; a fit leaves these rows out",
                    remedy=""
                    if one.causes
                    else f"declare each {what} that you need in {where}; {hints.SHOW}",
                )
            )
    missing, total = int(check.counts[Kind.MISSING]), int(check.counts.sum())
    if missing and not check.column.required:
        found.append(
            Finding(
                column,
                ABSENT,
                LIMITS[ABSENT].level(missing / total, missing),
                f"{share_text(missing, total, 'row')} name no {what}; a fit leaves these rows out",
                missing,
                total,
                "complete the column in the source",
            )
        )
    return found
