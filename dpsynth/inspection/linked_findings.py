"""Findings of linked tables: keys, links, counts, times and temporal rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection import hints
from dpsynth.inspection.findings import (
    ABSENT,
    BROKEN,
    CLIPPED,
    LIMITS,
    MANY_ROWS,
    REPLACED,
    ROLLED_UP,
    UNKNOWN,
    UNREADABLE,
    Finding,
    Level,
    Limits,
    share_text,
)
from dpsynth.inspection.keys import CROWDED, bracket, crowd_findings, near_keys
from dpsynth.inspection.linked_read import (
    NAMELESS,
    Bools,
    ChildRead,
    Floats,
    Ints,
    PatientsRead,
    RowsRead,
)
from dpsynth.schema import (
    DeclarationCount,
    Link,
    LinkedSchema,
    PatientRows,
    declared_counts,
    declares,
)
from dpsynth.schema.linked.declared import (
    FALLS,
    NOT_EXACTLY,
    NOT_IMPLIED,
    OFF_SCHEDULE,
    OUTSIDE,
)
from dpsynth.schema.relations import elapsed
from dpsynth.tables.unit_keys import NO_KEY

STRANGERS, NO_ROWS, TWICE, VARYING = "strangers", "no-rows", "twice", "varying"
NO_ORIGIN, TIMELESS, EARLY, LATE = "no-origin", "timeless", "early", "late"
NOT_LAST = "not-last"
AGAIN, LONG_GAP, UNLINKED = "again", "long-gap", "unlinked"
FEW_LAST, OF_NO_TABLE = "few-last", "of-no-table"

# docs/cohorts.md lists them.
LINKED_LIMITS: Mapping[str, Limits] = {
    STRANGERS: Limits(0.01, 0.05),  # of the rows with a key
    NO_ROWS: Limits(0.50, math.inf),  # of the patients; serious where it is all of them
    TWICE: Limits(0.0, 0.0),  # of the patients; a fit stops
    VARYING: Limits(0.10, 0.50),  # of the patients with several rows
    NO_ORIGIN: Limits(0.01, 0.05),  # of the patients
    TIMELESS: Limits(0.01, 0.05),  # of the rows of a patient
    EARLY: Limits(0.01, 0.10),  # of the rows with a day
    LATE: Limits(0.01, 0.10),
    NOT_LAST: Limits(0.01, 0.10),  # of the patients with the event
    AGAIN: Limits(0.10, 0.50),  # of the events of a patient
    LONG_GAP: Limits(0.01, 0.10),  # of the gaps between two rows of a patient
    UNLINKED: Limits(0.01, math.inf),  # of the rows that point to a row; it is not modelled
    OUTSIDE: Limits(0.01, 0.10),  # of the rows with a day
    OFF_SCHEDULE: Limits(0.01, 0.10),
    NOT_EXACTLY: Limits(0.01, 0.10),  # of the patients
    NOT_IMPLIED: Limits(0.01, 0.10),  # of the patients with the event
    FALLS: Limits(0.01, 0.10),  # of the patients with several values
    FEW_LAST: Limits(0.99, math.inf),  # of the patients
    OF_NO_TABLE: Limits(0.0, math.inf),  # of the rows of a source
}
LINKED_KINDS = tuple(LINKED_LIMITS)


def unchosen_finding(
    name: str, columns: Sequence[str], left: int, rows: int, empty: Sequence[str]
) -> Finding:
    """Tell that a source has rows that no table chooses.

    Args:
        name: of the first table that lies in the source.
        columns: by which rows are chosen.
        left: how many rows are of no table.
        rows: how many there are.
        empty: tables of which no row is; then the rows that are left are likely theirs.
    """
    remedy = "if they are rows of another table, declare it"
    if empty:
        remedy = f"no row is of table {listed(empty)}: correct its rows_where, letter by letter"
    return Finding(
        name,
        OF_NO_TABLE,
        Level.SERIOUS if empty else LINKED_LIMITS[OF_NO_TABLE].level(left / rows, left),
        f"{share_text(left, rows, 'row')} of its source belong to no table: no rows_where says "
        f"what they have in {listed(columns)}; a fit leaves them out",
        left,
        rows,
        f"{remedy}; {hints.SHOW}",
    )


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


def link_findings(
    read: ChildRead, link: Link, owners: Ints, target: RowsRead, target_owners: Ints
) -> list[Finding]:
    """Judge one foreign key between two tables of rows.

    Args:
        read: the table that points.
        link: the key.
        owners: the patient of each of its rows.
        target: the table that it points to.
        target_owners: the patient of each row there.
    """
    own = pd.Series(read.links(link.columns), dtype=object)
    there = pd.Index(pd.Series(target.links(link.target), dtype=object))
    filled = own.notna().to_numpy()
    total = int(filled.sum())
    if not total:
        return []
    first = ~there.duplicated()
    places = np.asarray(there[first].get_indexer(own[filled]), dtype=np.int64)
    lost = int((places < 0).sum())
    rows = np.flatnonzero(first)[places[places >= 0]]
    strange = int((target_owners[rows] != owners[filled][places >= 0]).sum())
    place = f"{read.child.name}.{listed(link.columns)}"
    found = []
    for count, words, remedy in (
        (
            lost,
            f"point to a row that table {link.table} does not have",
            "compare the extracts of both tables; dpsynth keeps the key in the schema and does not "
            "model it",
        ),
        (
            strange,
            f"point to a row of table {link.table} that belongs to another patient",
            "one of both tables has the wrong patient's key, or the numbers of rows begin anew for "
            "each patient: then name the patient's key in the foreign key, too",
        ),
    ):
        if count:
            found.append(
                Finding(
                    place,
                    UNLINKED,
                    LINKED_LIMITS[UNLINKED].level(count / total, count),
                    f"{share_text(count, total, 'row')} {words}",
                    count,
                    total,
                    remedy,
                )
            )
    return found


def count_findings(
    read: ChildRead, owners: Ints, days: Floats, patients: int, noun: str
) -> list[Finding]:
    """Judge how many rows patients have, and how far apart.

    Args:
        read: a table of rows.
        owners: the patient of each row.
        days: since her origin.
        patients: how many there are.
        noun: what days are: hours or minutes where the window counts these.
    """
    kept = rows_that_count(read, owners, days)
    series = owners[kept] * max(len(read.names), 1) + read.named[kept]
    each, counts = np.unique(series, return_counts=True)
    if read.child.once is not None:
        return _again(read, counts)
    of_patient = each // max(len(read.names), 1)
    return [
        *_many_rows(read, of_patient, counts, patients),
        *_gaps(read, series, days[kept], noun),
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


def _gaps(read: ChildRead, series: Ints, days: Floats, noun: str) -> list[Finding]:
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
            f"{counted(longest, noun)}; a fit counts them as the longest",
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


_LEFT_OUT = "; a fit leaves these rows out"


def days_since_origin(read: ChildRead, owners: Ints, patients: PatientsRead) -> Floats:
    """Return the day of each row since her origin; NaN without one, or without a patient."""
    if read.child.origin is None:
        return np.where(owners == NO_KEY, np.nan, read.times)
    origins = np.append(patients.origins(), np.nan)  # the last one is nobody's
    return elapsed(read.times, origins[owners])


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
        before = (
            "the origin" if window.first == 0 else f"the window, {window.noun} {window.first:,}"
        )
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


def rule_findings(
    whole: LinkedSchema,
    patients: PatientsRead,
    children: Mapping[str, ChildRead],
    owners: Mapping[str, Ints],
) -> list[Finding]:
    """Judge temporal rules and declarations; cells that are not valid leave them undecided."""
    if not (whole.rules or declares(whole)):
        return []
    first = patients.first_rows()
    frame = patients.cells().take(first).reset_index(drop=True)
    tables = {whole.patients.name: frame.assign(**{whole.key: range(len(first))})}
    for name, read in children.items():
        tables[name] = _named(read).assign(**{read.child.key: owners[name]})
    rows, found = PatientRows(tables, whole), []
    for rule in whole.rules:
        kept, certain = rule.holds_in(rows), rule.holds_in(rows, missing=False)
        broken, judged = int((~kept).sum()), int((~kept | certain).sum())
        if broken:
            found.append(
                Finding(
                    rule.text,
                    BROKEN,
                    LIMITS[BROKEN].level(broken / judged, broken),
                    f"{share_text(broken, judged, 'patient')} break this rule",
                    broken,
                    judged,
                    "correct these rows in the source, or leave the rule out: dpsynth never draws "
                    "a patient that breaks it",
                )
            )
    found += [_declared(one) for one in declared_counts(rows, whole) if one.broken]
    return found + _few_last(patients, whole)


_KEYS = {
    OUTSIDE: "inside",
    OFF_SCHEDULE: "schedule_within",
    NOT_EXACTLY: "rows",
    NOT_IMPLIED: "implies",
    FALLS: "cumulative",
}


def _declared(one: DeclarationCount) -> Finding:
    """Word how many rows or patients break a declaration."""
    return Finding(
        one.place,
        one.kind,
        LINKED_LIMITS[one.kind].level(one.broken / one.judged, one.broken),
        f"{share_text(one.broken, one.judged, one.unit)} {one.broken_text}",
        one.broken,
        one.judged,
        f"correct them in the source, or remove {_KEYS[one.kind]} from the schema if this can "
        "happen: dpsynth never draws it",
    )


def _few_last(patients: PatientsRead, whole: LinkedSchema) -> list[Finding]:
    """Judge whether many patients are followed to the last day, where the schema says so."""
    if not whole.last_day or whole.window is None:
        return []
    ends = patients.ends()
    before, total = int((ends < whole.window.last).sum()), len(ends)
    level = LINKED_LIMITS[FEW_LAST].level(before / total if total else 0.0, before)
    if level is Level.NOTE:
        return []
    return [
        Finding(
            f"{whole.patients.name}.{whole.end}",
            FEW_LAST,
            level,
            f"{share_text(before, total, 'patient')} are followed to a day before the last one, "
            f"{whole.window.last:,}; last_day is for windows to whose end many are followed",
            before,
            total,
            "compare window.last with its source, or remove last_day from the schema",
        )
    ]


def _named(read: ChildRead) -> pd.DataFrame:
    """Return the cells of a table of rows, with the declared name of its test or event."""
    if not len(read.units):
        return pd.DataFrame(columns=[column.name for column in read.schema.columns], dtype=object)
    cells = read.cells()
    column = read.child.once if read.child.once is not None else read.child.test_column
    if column is not None:
        names = pd.Series([*read.names, None], dtype=object)
        cells = cells.assign(**{column: names.take(read.named).to_numpy()})
    return cells
