"""Rows before the window, after the end of follow-up, or without a day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth.inspection.findings import (
    ABSENT,
    CLIPPED,
    LIMITS,
    REPLACED,
    UNREADABLE,
    Finding,
    share_text,
)
from dpsynth.inspection.linked.child_read import ChildRead
from dpsynth.inspection.linked.kinds import EARLY, LATE, LINKED_LIMITS, NOT_LAST, TIMELESS
from dpsynth.inspection.linked.patient_read import Floats, Ints, PatientsRead
from dpsynth.schema import LinkedSchema
from dpsynth.tables.unit_keys import NO_KEY

_LEFT_OUT = "; a fit leaves these rows out"


def days_since_origin(read: ChildRead, owners: Ints, patients: PatientsRead) -> Floats:
    """Return the day of each row since her origin; NaN without one, or without a patient."""
    if read.child.origin is None:
        return np.where(owners == NO_KEY, np.nan, read.times)
    origins = np.append(patients.origins(), np.nan)  # the last one is nobody's
    return np.asarray(read.times - origins[owners])


def time_findings(
    read: ChildRead, owners: Ints, patients: PatientsRead, whole: LinkedSchema
) -> list[Finding]:
    """Judge the days of a table's rows."""
    if read.child.time is None or whole.window is None:
        return []
    place, window = f"{read.child.name}.{read.child.time}", whole.window
    days = days_since_origin(read, owners, patients)
    found = _cell_findings(read, place)
    timed = np.isfinite(days)
    total = int(timed.sum())
    early = int((days[timed] < window.first).sum())
    if early:
        before = "the origin" if window.first == 0 else f"the window, day {window.first:,}"
        found.append(
            Finding(
                place,
                EARLY,
                LINKED_LIMITS[EARLY].level(early / total, early),
                f"{share_text(early, total, 'row')} lie before {before}; a fit moves them to the "
                "first day",
                early,
                total,
                "correct them in the source; or compare window.first with its source: dpsynth: "
                "{window: {first: ...}}",
            )
        )
    last = patients.ends()[owners[timed]]
    late, beyond = int((days[timed] > last).sum()), int((days[timed] > window.last).sum())
    if late:
        end = "the window"
        if whole.end is not None:
            end = f"the end of their patient's follow-up ({whole.end})"
        part = "" if whole.end is None else f", {beyond:,} of them after the window"
        found.append(
            Finding(
                place,
                LATE,
                LINKED_LIMITS[LATE].level(late / total, late),
                f"{share_text(late, total, 'row')} lie after {end}{part}; a fit moves them to the "
                "last day",
                late,
                total,
                "correct them in the source: a row after death or after the last contact is an "
                "error of one of both dates; or compare window.last with its source",
            )
        )
    return _explained(read, found) + _not_last(read, owners, days, patients, whole)


def _not_last(
    read: ChildRead, owners: Ints, days: Floats, patients: PatientsRead, whole: LinkedSchema
) -> list[Finding]:
    """Judge whether the event that ends follow-up is on its last day."""
    if whole.ended_by not in read.names or read.child.once is None:
        return []
    of_event = (read.named == read.names.index(whole.ended_by)) & np.isfinite(days)
    who, day = owners[of_event], days[of_event]
    order = np.lexsort((day, who))
    who, first = np.unique(who[order], return_index=True)
    total, wrong = len(who), int((day[order][first] != patients.ends()[who]).sum())
    if not wrong:
        return []
    return [
        Finding(
            f"{read.child.name}.{read.child.time}",
            NOT_LAST,
            LINKED_LIMITS[NOT_LAST].level(wrong / total, wrong),
            f"{share_text(wrong, total, 'patient')} with {whole.ended_by} have it on another day "
            f"than the end of their follow-up ({whole.end}); a fit takes it for the last day",
            wrong,
            total,
            "correct the day or the end in the source; or remove ended_by, if patients are "
            "followed after it",
        )
    ]


def _cell_findings(read: ChildRead, place: str) -> list[Finding]:
    """Judge cells that are no day, and rows without one."""
    found = []
    for one in () if read.time is None else read.time.findings():
        if one.kind == REPLACED:
            found.append(replace(one, place=place))
        if one.kind in (UNREADABLE, ABSENT):
            kind = TIMELESS if one.kind == ABSENT else UNREADABLE
            limits = LINKED_LIMITS[TIMELESS] if kind == TIMELESS else LIMITS[UNREADABLE]
            text = share_text(one.count, one.total, "row") + " have no day"
            if kind == UNREADABLE:
                text = one.message.split("; a fit")[0]
            found.append(
                replace(
                    one,
                    place=place,
                    kind=kind,
                    level=limits.level(one.count / one.total, one.count),
                    message=text + _LEFT_OUT,
                    remedy=one.remedy if kind == UNREADABLE else "complete the day in the source",
                )
            )
    return found


def _explained(read: ChildRead, found: list[Finding]) -> list[Finding]:
    """Add the causes of days outside all bounds, where they can be of one finding only."""
    moved = [one for one in found if one.kind in (EARLY, LATE)]
    if len(moved) != 1 or read.time is None:
        return found
    clipped = next((one for one in read.time.findings() if one.kind == CLIPPED), None)
    causes = () if clipped is None else clipped.causes
    if not causes or sum(cause.cells for cause in causes) > moved[0].count:
        return found
    return [replace(one, causes=causes, remedy="") if one is moved[0] else one for one in found]
