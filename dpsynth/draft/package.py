"""A draft of a package, from a folder of files or a dictionary of several tables, never rows.

Which column of each table is its key, its day, its test: by name alone.

Everything here is a proposal. A person who knows the tables confirms it.

The tables of a folder, a workbook or a database, by the names of their columns; what is no table is
left out.

A hospital's folder holds other files too: notes, lists of codes, a dictionary. None of them stops a
draft. Each is named with the reason, so that nobody misses a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.field_reader import TODO
from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft.clinical import DROP, KEY, find
from dpsynth.draft.drafts import (
    Draft,
    checked_proposal,
    draft_schema,
    merged,
    read_entries,
    rule_lines,
    stem_of,
)
from dpsynth.draft.entry import Entries, Entry
from dpsynth.draft.header import NoHeadingsError
from dpsynth.draft.history_hints import child_hints, package_hints
from dpsynth.draft.intervals import (
    add_body_mass_index,
    add_intervals,
    add_length_of_stay,
    is_end,
    without_intervals,
)
from dpsynth.draft.names import compact, spellings, words
from dpsynth.draft.proposal import Proposal
from dpsynth.draft.repeating import EVENT, INSTANCE, is_repeating, shared_tables
from dpsynth.draft.sheets import sheet_names, sheet_rows
from dpsynth.draft.stems import meanings, moment_of
from dpsynth.draft.table_header import read_table_header
from dpsynth.draft.type_words import code_system
from dpsynth.draft.yaml_text import comment, field_lines, flow
from dpsynth.errors import InputError, SchemaError, TableError, printable
from dpsynth.files import cannot_read
from dpsynth.schema import LinkedSchema, table_name
from dpsynth.schema.linked.facts import HIDDEN
from dpsynth.tables.formats import DICTIONARY, FIRST_LINE, FORMATS, NAMES, suffix_of, suffixes

ENDS = ("last contact", "date of death")  # of follow-up, the surest first
UNIT = "each test has one unit: declare it as ucum, and convert values in another unit first"
_DATE_FORMATS = {
    "date": 'such as "%d.%m.%Y", or default for 2015-12-31',
    "datetime": 'such as "%d.%m.%Y %H:%M", or default for 2015-12-31T08:30:00',
}


def draft_any(
    *,
    header: str | Path | None = None,
    dictionary: str | Path | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    catalog: str | Path | None = None,
    header_row: int | None = None,
    repeating: Sequence[str] = (),
) -> Draft:
    """Draft a schema, or a package where the header or the dictionary has several tables.

    Args:
        header: a table as a fit takes it; or several: a folder with a file for each, a workbook
            with a sheet for each, or a database. Only names of columns are read.
        dictionary: as in `draft_schema`; a column of it may name the table of each column, or a
            workbook may have a sheet for each table.
        delimiter: between the cells of text files; None for what each header shows.
        encoding: of text files; None for UTF-8, and for headers what each shows.
        sheet: of a workbook.
        catalog: as in `draft_schema`.
        header_row: as in `draft_schema`, of each table.
        repeating: of the export of a REDCap project, the forms of which a record may have several.

    Raises:
        InputError: as `draft_schema`; or a folder has no file with a header, or its tables no key.
    """
    how: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "header_row": header_row}
    place = None if catalog is None else path_of(catalog)
    parts_of = None if header is None else _parts(header, sheet if dictionary is None else None)
    if header is not None and parts_of is not None:
        found = read_tables(header, parts_of, delimiter, encoding, header_row)
        if found.single:
            made = _single(found.single, dictionary, sheet, catalog, repeating, how)
            return replace(made, left_out=(*found.left_out, *made.left_out))
        _refuse(repeating)
        described = None
        if dictionary is not None:
            described = read_entries(
                path_of(dictionary), None, encoding, sheet, place, several=True
            )
        stem = stem_of(header) if parts_of.of else Path(header).resolve().name
        return _package(stem, found.tables, described, found.left_out)
    if header is None and dictionary is not None:
        described = read_entries(
            path_of(dictionary), delimiter, encoding, sheet, place, several=True
        )
        names = list(dict.fromkeys(one.table for one in described.columns if one.table))
        if len(names) > 1:
            _refuse(repeating)
            parts = {name: _of_table(described, name) for name in names}
            return _package(Path(dictionary).name.split(".")[0], parts, None)
    return _single(header, dictionary, sheet, catalog, repeating, how)


def _single(
    header: str | Path | None,
    dictionary: str | Path | None,
    sheet: str | None,
    catalog: str | Path | None,
    repeating: Sequence[str],
    how: dict[str, Any],
) -> Draft:
    """Draft a schema of one table, or a package of the tables that share it."""
    names = None
    if header is not None:
        names = read_table_header(
            header,
            how["delimiter"],
            how["encoding"],
            how["header_row"],
            None if dictionary else sheet,
        )
    if names is None or not is_repeating(names):
        _refuse(repeating)
        return draft_schema(
            header=header, dictionary=dictionary, sheet=sheet, catalog=catalog, **how
        )
    described = None
    if dictionary is not None:
        place = None if catalog is None else path_of(catalog)
        described = read_entries(path_of(dictionary), None, how["encoding"], sheet, place)
    shared = shared_tables(names, described, repeating)
    placed = {}
    for table, own in shared.columns.items():
        where = dict(shared.rows_where[table])
        rest = [one for one in own.columns if one.name not in {*where, INSTANCE, EVENT}]
        one = replace(_placed(table, shared.key, rest), where=where)
        by_number = one.time is None and any(c.name == INSTANCE for c in own.columns)
        placed[table] = replace(one, order=INSTANCE if by_number else None)
    made = _package(stem_of(str(header)), shared.columns, None, placed=(next(iter(placed)), placed))
    return replace(
        made,
        only_in_header=shared.only_in_header,
        only_in_dictionary=shared.only_in_dictionary,
    )


def _refuse(repeating: Sequence[str]) -> None:
    if repeating:
        raise InputError(
            "--repeating is for the export of a REDCap project with repeating instruments, one "
            "file with the column redcap_repeat_instrument, as --from-header; leave it out"
        )


def _of_table(described: Entries, name: str) -> Entries:
    """Return what a dictionary says about one table: by its name, else about all columns."""
    own = tuple(one for one in described.columns if one.table.casefold() == name.casefold())
    return replace(described, columns=own or described.columns)


def _package(
    name: str,
    tables: Mapping[str, Entries],
    described: Entries | None,
    left_out: tuple[str, ...] = (),
    *,
    placed: tuple[str, dict[str, Placed]] | None = None,
) -> Draft:
    columns, unknown = dict(tables), []
    if described is not None:
        for table, names in tables.items():
            both, missing, _ = merged(names, _of_table(described, table))
            columns[table] = both
            unknown += [f"{table}.{one}" for one in missing]
    source = described.source if described is not None else ""
    source = source or f"the headers of {listed(tables)}"
    if placed is not None:
        patients, places = placed
        source = columns[patients].source
    else:
        patients, places = placed_tables({table: own.columns for table, own in columns.items()})
    proposals = {
        table: _fields(columns[table], places[table], table == patients) for table in columns
    }
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", name) or "tables"
    dialects = {table: dict(own.dialect) for table, own in columns.items() if own.dialect}

    def write() -> str:
        text = package_text(stem, source, patients, places, proposals, dialects, len(left_out))
        LinkedSchema.from_dict(parse_yaml(text.encode(), "draft"), "draft")  # it must be readable
        return text

    modelled = []
    for table, own in proposals.items():
        fields = [one for one in own if "dpsynth" in one.document]
        timed = [*fields, *_times(columns[table], places[table], table == patients)]
        add_intervals(timed)
        add_body_mass_index(fields)
        add_length_of_stay(timed)
        modelled += fields
    _add_end(proposals[patients])
    try:
        text = write()
    except SchemaError:
        without_intervals(modelled)
        text = write()
    text += rule_lines(LinkedSchema.from_dict(parse_yaml(text.encode(), "draft"), "draft"))
    each = [
        (f"{table}.{one.document['name']}", one) for table, own in proposals.items() for one in own
    ]
    return Draft(
        text,
        tuple(place for place, one in each if not one.is_open and not one.is_dropped),
        tuple(place for place, one in each if one.is_open),
        tuple(place for place, one in each if one.is_dropped),
        tuple(unknown),
        left_out=left_out,
        unused_headings=() if described is None else described.unused,
    )


def _fields(columns: Entries, own: Placed, is_patients: bool) -> list[Proposal]:
    """Propose the fields of a table; those with a place of their own have a name and a type."""
    fields = []
    for entry in columns.columns:
        if entry.name == own.key or entry.name in own.where:
            fields.append(_plain(entry, "string"))
        elif entry.name == own.order:
            fields.append(_plain(entry, "integer"))
        elif not is_patients and entry.name == own.time:
            fields.append(_plain(entry, own.type))
        elif not is_patients and not own.once and entry.name == own.named:
            fields.append(_plain(entry, "string"))
        elif not is_patients and entry.name == own.value:
            fields.append(_plain(entry, "number"))
        elif not is_patients and entry.name == own.unit:
            fields.append(_dropped(entry, UNIT))
        elif not is_patients and own.once and entry.name != own.named:
            made = checked_proposal(entry, columns.source)
            why = "an event has a day and no value"
            fields.append(made if made.is_dropped else _dropped(entry, why))
        else:
            if not is_patients and own.once:
                entry = replace(entry, kind=entry.kind or "string")
            fields.append(checked_proposal(entry, columns.source))
    _drop_keys(fields)
    return fields


def _times(columns: Entries, own: Placed, is_patients: bool) -> list[Proposal]:
    """Return what stands for the time of a wide table, from which another date may count."""
    if is_patients or own.named is not None or own.type == DAYS:
        return []
    own_entries = [entry for entry in columns.columns if entry.name == own.time]
    return [checked_proposal(entry, columns.source) for entry in own_entries]


def _plain(entry: Entry, kind: str) -> Proposal:
    proposal = Proposal({"name": entry.name, "type": kind})
    if kind in ("date", "datetime") and entry.format != "default":
        proposal.document["format"] = entry.format or "TODO"
        proposal.comments["format"] = _DATE_FORMATS[kind]
    return proposal


def _dropped(entry: Entry, why: str) -> Proposal:
    proposal = Proposal({"name": entry.name, "type": "string", "dpsynth": {"role": "drop"}})
    proposal.comments["dpsynth.role"] = why
    return proposal


def _drop_keys(fields: list[Proposal]) -> None:
    """Drop the numbers of stays and visits: the patient's key is chosen by its place."""
    for one in fields:
        if one.document.get("dpsynth", {}).get("role") == "TODO" and not one.question:
            one.document["dpsynth"] = {"role": "drop"}
            one.comments["dpsynth.role"] = "a key is not modelled; it may be a foreign key"


_HEAD = """\
# A draft of `dpsynth schema draft`, made from: {source}
# No row of any table was read. Before you use this schema:
#   1. Check the table of patients, and of each other table: its key, its time, and whether it is
#      wide (a row a visit), long (a test and its value a row), or of events that happen once.
#   2. Replace each TODO. A number or list comes from a document, never from the data.
#   3. Check each proposal. Then write your own source in bounds_basis, or write
#      "confirmed by NAME" in the place of the word "proposal".
#   4. Remove `draft: true` at the end, and run `dpsynth schema check`.
"""
_FOOT = """\
dpsynth:
  version: 1
  draft: true  # remove it when no TODO and no proposal is left
  patients: {patients}  # proposal: the table with one row a patient
  person: {{name: patient}}  # how certificate and pages call a person
  population: {{value: TODO, basis: TODO}}  # how many patients, two digits, from a report
  window: {{first: TODO, last: TODO, basis: TODO}}  # days from each patient's origin, as -3650
  # in intensive care, hours in place of days: add unit: h to the window
  {end}
  # if an event, such as death, ends it: ended_by: EVENT
  # if rows of a patient have an order that holds: rules: ["each(visits).date >= patients.admitted"]
"""
_MAX_ROWS = "max_rows: {value: TODO, basis: TODO}"
_WHERE = "rows_where: {}  # its rows in the one file of all tables"


def package_text(
    name: str,
    source: str,
    patients: str,
    placed: Mapping[str, Placed],
    proposals: Mapping[str, Sequence[Proposal]],
    dialects: Mapping[str, Mapping[str, str | int]],
    left_out: int = 0,
) -> str:
    """Write a draft.

    Args:
        name: of the package.
        source: of the draft, in words.
        patients: the name of the table of patients.
        placed: the columns of each table that have a place, by its name.
        proposals: the fields of each table.
        dialects: how the file of a table is written, where it is not the usual.
        left_out: how many files of the folder are no table of the draft. Their names do not get
            into a schema: those of a hospital's files may name a patient.
    """
    lines = [_HEAD.format(source=comment(source)[2:]).rstrip()]
    if left_out:
        lines.append(comment(f"Left out, and named on the screen: {counted(left_out, 'file')}."))
    lines.append("$schema: https://datapackage.org/profiles/2.0/datapackage.json")
    lines += [f"name: {flow(name)}", "resources:"]
    order = [patients, *(table for table in placed if table != patients)]
    dates = _origins(proposals[patients])
    stay = _stay(order[1:], placed, proposals)
    for table in order:
        own = placed[table]
        lines += [f"  - name: {flow(table)}", "    schema:"]
        if table == patients:
            lines.append(f"      primaryKey: {flow(own.key)}")
        else:
            key = {"resource": patients, "fields": [placed[patients].key]}
            lines.append(f"      foreignKeys: [{flow({'fields': [own.key], 'reference': key})}]")
        lines.append("      fields:")
        for proposal in proposals[table]:
            lines += [f"      {line}" for line in field_lines(proposal)]
        extra = [_WHERE.format(flow(dict(own.where)))] if own.where else []
        if "TODO" in own.where.values():
            extra.append(comment("TODO: the event with the fields of a record: enrolment_arm_1"))
        if table != patients:
            extra += list(_child_lines(own, dates, proposals[table], stay))
        if table in dialects:
            hint = comment('add decimal: "," if numbers are written 3,5')
            extra.append(f"dialect: {flow(dict(dialects[table]))}  {hint}")
        if extra:
            lines += ["    dpsynth:", *(f"      {line}" for line in extra)]
    end = _end_line(proposals[patients])
    lines.append(_FOOT.format(patients=flow(patients), end=end).rstrip())
    events = [name for name in order[1:] if placed[name].once]
    lines += [f"  {comment(hint)}" for hint in package_hints(events)]
    return "\n".join(lines) + "\n"


def _origins(patients: Sequence[Proposal]) -> list[str]:
    """Return the dates of patients from which days can count."""
    return [
        str(one.document["name"])
        for one in patients
        if one.document.get("type") in ("date", "datetime")
        and one.document.get("dpsynth", {}).get("role") not in ("drop", "sensitive")
        and not any(_is_variable(one, meaning) for meaning in ENDS)
    ]


def _end_of(patients: Sequence[Proposal]) -> Proposal | None:
    """Return the one date on which follow-up ends: the last contact, or else death."""
    for meaning in ENDS:
        found = [one for one in patients if _is_variable(one, meaning) and not one.is_dropped]
        if len(found) == 1:
            return found[0]
    return None


def _add_end(patients: Sequence[Proposal]) -> None:
    """Declare the end of follow-up by its distance from the date from which days count."""
    end, dates = _end_of(patients), _origins(patients)
    if end is None or len(dates) != 1:
        return
    role = end.document["dpsynth"].get("role")
    end.document.pop("constraints", None)
    end.comments.pop("constraints", None)
    end.comments.pop("dpsynth.calendar", None)
    end.document["dpsynth"] = ({"role": role} if role else {}) | {
        "after": dates[0],
        "longest": TODO,
        "unit": "d",
        "bounds_basis": TODO,
    }
    end.comments["dpsynth.longest"] = "the last day of the window"


def _end_line(patients: Sequence[Proposal]) -> str:
    """Say when follow-up ends: with the last contact, or with death, where its date is known."""
    end = _end_of(patients)
    if end is None:
        return "# if a column of patients has the last day of follow-up: end: COLUMN"
    name = flow(str(end.document["name"]))
    why = "rows end with it; who has none is followed to the last day of the window"
    if "after" in end.document["dpsynth"]:
        return f"end: {name}  # proposal: {why}"
    return f"# if {why}: end: {name}"


@dataclass(frozen=True)
class Stay:
    """The table of stays.

    Attributes:
        table: its name.
        length: the column that says when a stay ends.
        keys: its columns that number stays.
    """

    table: str
    length: str
    keys: frozenset[str]

    def names(self, fields: Sequence[Proposal]) -> bool:
        """Tell whether rows of a table name the stay that they belong to."""
        return bool(self.keys & _stay_keys(fields))


def _stay(
    tables: Sequence[str],
    placed: Mapping[str, Placed],
    proposals: Mapping[str, Sequence[Proposal]],
) -> Stay | None:
    """Find the one table of stays: rows of admissions that begin and end."""
    found = []
    for table in tables:
        own, fields = placed[table], proposals[table]
        if own.named is not None or own.time is None:
            continue
        lasting = [
            str(one.document["name"])
            for one in fields
            if one.document.get("dpsynth", {}).get("after") == own.time
        ]
        lasting += [
            str(one.document["name"])
            for one in fields
            if one.document["type"] == "integer" and _is_variable(one, "length of stay")
        ]
        admitted = _means(own.time, "admission date") or any(
            _is_variable(one, "discharge date") or _is_variable(one, "length of stay")
            for one in fields
        )
        if lasting and (admitted or _stay_keys(fields)):
            found.append(Stay(table, lasting[0], frozenset(_stay_keys(fields))))
    sure = [one for one in found if any(map(_is_stay_key, one.keys))] or found
    return sure[0] if len(sure) == 1 else None


def _is_variable(proposal: Proposal, name: str) -> bool:
    return proposal.variable is not None and proposal.variable.name == name


def _is_stay_key(name: str) -> bool:
    match = find(name)
    return match is not None and match.variable.name.startswith("encounter")


def _stay_keys(fields: Sequence[Proposal]) -> set[str]:
    """Return the columns that number stays, in letters and digits only."""
    names = (str(one.document["name"]) for one in fields)
    return {compact(name) for name in names if _is_stay_key(name)}


def _child_lines(
    own: Placed, dates: Sequence[str], fields: Sequence[Proposal], stay: Stay | None
) -> Iterator[str]:
    """Write what a table of rows says of itself, and ask what it could declare."""
    if own.time is None and own.order is not None:
        yield f"order: {flow(own.order)}  # or, if the form has a day: time: COLUMN"
    elif own.time is None:
        yield "time: TODO  # the column of the day; or order: COLUMN, where rows are only ordered"
    else:
        yield f"time: {flow(own.time)}" + (
            "  # proposal: days since each patient's origin" if own.type == DAYS else ""
        )
        if own.type != DAYS:
            hint = f", such as {dates[0]}" if dates else ""
            if not dates:
                hint = "; where there is none, one date for all patients: origin: YYYY-MM-DD"
            what = f"the date of patients from which dates count{hint}"
            if len(dates) == 1:
                yield f"origin: {flow(dates[0])}  {comment('proposal: ' + what.partition(',')[0])}"
            else:
                yield f"origin: TODO  {comment(what)}"
    if own.once:
        yield f"once: {flow(own.named)}  # proposal: whether a patient has each, and since when"
        yield "# to keep each row and other columns: remove once, and declare max_rows"
        return
    if own.value is not None:
        yield "series:  # proposal: a long table, one test a row"
        yield f"  column: {flow(own.named)}"
        yield f"  value: {flow(own.value)}"
        yield "  tests: TODO  # such as {hdl: {minimum: 5, maximum: 200, bounds_basis: ...}}"
        yield f"{_MAX_ROWS}  # rows of each test of a patient that count"
    else:
        yield f"{_MAX_ROWS}  # rows of a patient that count"
    others = stay is not None and stay.table != own.name and own.time is not None
    if stay is not None and others and stay.names(fields):
        inside = flow({"table": stay.table, "length": stay.length})
        yield f"inside: {inside}  # proposal: each row lies on a day of a stay"
    if own.time is not None:
        yield "# if two rows of a patient are never far apart: longest_gap: DAYS"
    asked = (stay.table, stay.length) if stay is not None and others else None
    if asked is not None and stay is not None and stay.names(fields):
        asked = None
    for question in child_hints(own.time, own.type, fields, asked):
        yield comment(question)


DAYS, DATE = "integer", "date"


@dataclass(frozen=True)
class Placed:
    """The columns of one table that have a place of their own.

    Attributes:
        name: of the table.
        key: the patient's.
        time: of the day; None where no name says it.
        type: of the time: integer for days, date.
        named: the column of the test, or of the event.
        value: the column of a test's value; None unless the table is long.
        unit: the column of the unit of a value, in a long table.
        once: whether it is a table of events.
        order: the column by which rows are ordered, where that is known and no name says the day.
        where: what columns have in the rows of the table, where it shares its file with others.
    """

    name: str
    key: str
    time: str | None = None
    type: str = DATE
    named: str | None = None
    value: str | None = None
    unit: str | None = None
    once: bool = False
    order: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)


def placed_tables(tables: Mapping[str, Sequence[Entry]]) -> tuple[str, dict[str, Placed]]:
    """Propose the table of patients, and the columns of each table that have a place.

    Args:
        tables: the columns of each table, by its name.

    Returns:
        The name of the table of patients, and what is proposed of each.

    Raises:
        InputError: a table has no column that can be the patient's key.
    """
    keys = _keys(tables)
    placed = {name: _placed(name, keys[name], columns) for name, columns in tables.items()}
    return _patients(tables, placed), placed


def _keys(tables: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Choose the patient's key of each table."""
    named = {
        name: patient_keys(name, [entry.name for entry in columns])
        for name, columns in tables.items()
    }
    if all(named.values()):
        return {name: found[0] for name, found in named.items()}
    everywhere = set.intersection(
        *({entry.name for entry in columns} for columns in tables.values())
    )
    first = next(iter(tables.values()))
    common = [entry.name for entry in first if entry.name in everywhere]
    likely = [name for name in common if words(name)[-1:] in (["id"], ["nr"], ["no"], ["key"])]
    chosen = (likely or common)[:1]
    for name, found in named.items():
        if not chosen and not found:
            raise InputError(
                f"table {name} has no column that looks like the patient's key, and no column "
                "stands in every table; rename the key to the same name in all tables, such as "
                "patient_id"
            )
    return {name: found[0] if found and not chosen else chosen[0] for name, found in named.items()}


def patient_keys(table: str, names: Sequence[str]) -> list[str]:
    """Return the columns that can be the patient's key by their names.

    In a table of patients, that is also a plain number.

    >>> patient_keys("visits", ["id", "Patient ID"]), patient_keys("patients", ["ID", "sex"])
    (['Patient ID'], ['ID'])
    >>> patient_keys("wizyty", ["PESEL", "data"]), patient_keys("labs", ["NHS number", "pat_id"])
    (['PESEL'], ['pat_id'])
    """
    found = [name for name in names if _means(name, "patient key")]
    found = found or [name for name in names if _means(name, "identity number")]
    plain = [name for name in names if _is_called(name, "number")]
    return found or (plain[:1] if is_patients(table) else [])


def is_patients(table: str) -> bool:
    """Tell whether a table has one row a patient, by its name."""
    return any(_is_called(word, "patients") for word in words(table))


def _means(name: str, variable: str) -> bool:
    match = find(name)
    return match is not None and match.is_sure and match.variable.name == variable


def _placed(name: str, key: str, columns: Sequence[Entry]) -> Placed:
    others = [entry for entry in columns if entry.name != key]
    time, kind = _time(others)
    rest = [entry.name for entry in others if entry.name != time]
    test, value = _first(rest, "test"), _first(rest, "value")
    if test is not None and value is not None:
        return Placed(name, key, time, kind, test, value, _first(rest, "unit"))
    event = _first(rest, "event")
    if event is None or value is not None or len(rest) > 2:
        event = _fact(others, time)
    if event is not None and time is not None:
        return Placed(name, key, time, kind, event, once=True)
    return Placed(name, key, time, kind)


FACTS = frozenset(("main diagnosis", "secondary diagnosis", "drug code", "procedure code"))
_STAYS = frozenset(("admission date", "discharge date", "ICU admission date", "ICU discharge date"))
_NAMED = frozenset("name code text bezeichnung naam nom nome nombre nazwa kod namn kode".split())
_BESIDE = 5  # other columns of a table of diagnoses or drugs at most: of more, a row is a visit


def _fact(columns: Sequence[Entry], time: str | None) -> str | None:
    """Return the only column of codes of a table that says little else: diagnoses, drugs.

    Such a code is a fact of the patient: whether she has it, and since when.
    """
    codes, others = [], 0
    for entry in columns:
        match = find(entry.name)
        meaning = "" if match is None or not match.is_sure else match.variable.name
        bare = "".join(word for word in words(entry.name) if word not in _NAMED)
        named = meaning == "" and (_is_called(bare, "fact") or code_system(entry) is not None)
        if meaning in FACTS or named:
            codes.append(entry.name)
        elif meaning in _STAYS or (match is not None and match.variable.is_numeric):
            return None
        elif entry.name != time and (match is None or match.variable.type not in (KEY, DROP)):
            others += 1
    return codes[0] if len(codes) == 1 and others <= _BESIDE else None


def _time(columns: Sequence[Entry]) -> tuple[str | None, str]:
    """Choose the first column of a day, but rather where something starts than where it ends."""
    times = list(_named_times(columns))
    starts = [(name, kind) for name, kind in times if not is_end(name)]
    return next(iter([*starts, *times]), (None, DATE))


def _named_times(columns: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in columns:
        match = find(entry.name)
        dated = match is not None and match.variable.type == "date"
        if entry.kind in ("date", "datetime"):
            yield entry.name, entry.kind
        elif _is_called(entry.name, "days"):
            yield entry.name, DAYS
        elif dated or moment_of(entry.name) is not None:
            yield entry.name, moment_of(entry.name) or DATE


def _first(names: Sequence[str], meaning: str) -> str | None:
    return next((name for name in names if _is_called(name, meaning)), None)


def _is_called(name: str, meaning: str) -> bool:
    """Tell whether a whole name is a word for a place of its own in a table."""
    return any(meaning in meanings("table").get(one, ()) for one in spellings(name))


def _patients(tables: Mapping[str, Sequence[Entry]], placed: Mapping[str, Placed]) -> str:
    """Choose the table of patients: by its name, or the one that looks least like rows."""
    named = [name for name in tables if is_patients(name)]
    plain = [name for name, one in placed.items() if one.time is None and one.named is None]
    return (named or plain or list(tables))[0]


@dataclass(frozen=True)
class FolderTables:
    """What a folder holds.

    Attributes:
        tables: the columns of each table, by its name.
        left_out: for each other file its name, and why it is no table of the draft.
        single: how the only table of a workbook or database is named; empty if there are several.
    """

    tables: Mapping[str, Entries]
    left_out: tuple[str, ...]
    single: str = ""


@dataclass(frozen=True)
class Parts:
    """Where several tables lie.

    Attributes:
        names: how each is named, by the name that messages give it; without the suffix of a file.
        of: what it is a part of: a sheet of a workbook or a table of a database; empty for files.
        left_out: for each other file its name, and why it is not read.
    """

    names: Mapping[str, str]
    of: str = ""
    left_out: tuple[str, ...] = ()


def _parts(header: str | Path, sheet: str | None) -> Parts | None:
    """Return the tables of a folder, a workbook or a database; None for a single table."""
    from dpsynth.tables import Reference, is_url
    from dpsynth.tables.formats import format_of

    if not is_url(str(header)) and path_of(header).is_dir():
        return None if format_of(path_of(header)) is not None else _files(path_of(header))
    reference = Reference.of_parts(header)
    if reference is None or sheet is not None or (reference.part and reference.url is None):
        return None
    if reference.format is FORMATS["excel"]:
        assert reference.path is not None
        names = sheet_names(reference.path)
        filled = [name for name in names if next(iter(sheet_rows(reference.path, name)), None)]
        parts = {name: f"{reference.path}#{name}" for name in filled}
    elif reference.url is not None and reference.part and "." in reference.part:
        return None
    else:
        try:
            own = reference.format.tables.parts_in(reference)
        except TableError:
            if reference.url is None:
                raise
            return None  # the part is a table, and not a schema of the database
        place = reference.url or str(reference.path)
        parts = {name: f"{place}#{written}" for name, written in own.items()}
    return Parts(parts, reference.format.part) if len(parts) > 1 else None


def _files(folder: Path) -> Parts:
    """Return the files of a folder of which a draft reads names; hidden ones do not count."""
    try:
        paths = sorted(one for one in folder.iterdir() if not one.name.startswith(HIDDEN))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {cannot_read(error)}") from None
    known = [one for how in (FIRST_LINE, NAMES, DICTIONARY) for one in suffixes(how)]
    names = [one for one in paths if suffix_of(one, known) and one.is_file()]
    left_out = [
        f"{printable(one.name)}: it is not a text file or another table ({', '.join(known)})"
        for one in paths
        if one not in names
    ]
    return Parts({one.name: str(one) for one in names}, "", tuple(left_out))


def read_tables(
    place: str | Path,
    parts: Parts,
    delimiter: str | None = None,
    encoding: str | None = None,
    row: int | None = None,
) -> FolderTables:
    """Read the names of the columns of several tables.

    Args:
        place: where they lie.
        parts: the tables.
        delimiter: between the cells of every text file; None for what each header shows.
        encoding: of every text file; None for UTF-8, or cp1252 where a header is not UTF-8.
        row: with the headings, of every table.

    Raises:
        InputError: files cannot be read, two have one name, or fewer than two are tables; it
            lists all that is wrong.
    """
    found: dict[str, tuple[str, Entries]] = {}
    left_out, problems = [*parts.left_out], list[str]()
    for part, reference in parts.names.items():
        shown = printable(part)
        try:
            entries = read_table_header(reference, delimiter, encoding, row)
        except NoHeadingsError:
            left_out.append(
                f"{shown}: its first line names one column only, or is a title, and no line with "
                "headings follows; if it is a table, give its line with --header-row"
            )
            continue
        except InputError as error:
            problems += [f"{shown}: {one}" for one in error.items] or [str(error)]
            continue
        if len(entries.columns) < 2:
            left_out.append(f"{shown}: its first line names one column only; a table has two")
            continue
        name = table_name(part if parts.of else part[: -len(suffix_of(part))])
        twin = next((one for one in found if one.lower() == name.lower()), None)
        if twin is not None:
            problems.append(
                f"{place} has two files for table {name}: {listed([found[twin][0], part])}; "
                "keep one of them, or rename one"
            )
            continue
        found[name] = part, entries
    if problems:
        out = "the folder" if not parts.of else "the tables: give the others one by one"
        raise InputError(
            f"{'; '.join(problems)}. If the file is not a table, move it out of {out}"
            if len(problems) == 1
            else f"{place} has {len(problems)} mistakes; move what is not a table out of {out}:",
            items=problems if len(problems) > 1 else (),
        )
    tables = {name: entries for name, (_, entries) in found.items()}
    for name, why in _without_key({name: own.columns for name, own in tables.items()}).items():
        left_out.append(f"{printable(found[name][0])}: {why}")
        del tables[name]
    if parts.of:
        beside = _beside(tables)
        left_out += [f"{printable(found[name][0])}: {why}" for name, why in beside.items()]
        tables = {name: own for name, own in tables.items() if name not in beside}
    if len(tables) == 1 and parts.of:
        [name] = tables
        return FolderTables(tables, tuple(left_out), parts.names[found[name][0]])
    if len(tables) < 2:
        raise InputError(
            f"{place} has {counted(len(tables), parts.of or 'file')} with names of columns that "
            "can be tables; linked tables are two or more. "
            + (f"Not used: {'; '.join(left_out)}. " if left_out else "")
            + "Of other kinds of files, describe the columns in a dictionary (--from); a single "
            "table is named alone"
        )
    return FolderTables(tables, tuple(left_out))


def _beside(tables: Mapping[str, Entries]) -> dict[str, str]:
    """Tell which sheets stand beside the only one with a patient's key, such as lists of codes."""
    names = {table: {one.name for one in own.columns} for table, own in tables.items()}
    keyed = [table for table, own in names.items() if patient_keys(table, sorted(own))]
    if len(keyed) != 1 or any(
        names[keyed[0]] & own for one, own in names.items() if one != keyed[0]
    ):
        return {}
    return {table: "no column looks like the patient's key" for table in names if table != keyed[0]}


def _without_key(tables: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Tell which tables lack the patient's key, where at least two others have it."""
    names = {table: [one.name for one in columns] for table, columns in tables.items()}
    keys = {table: patient_keys(table, own) for table, own in names.items()}
    keyed = [table for table, found in keys.items() if found]
    if len(keyed) < 2:
        return {}  # the key has another name: what stands in every table is proposed
    found = {}
    for table, own in names.items():
        if table in keyed:
            continue
        if is_patients(table):
            raise InputError(
                f"table {table} has no column that looks like the patient's key; rename the key as "
                f"in the other tables, such as {printable(keys[keyed[0]][0])}"
            )
        shared = [(one, other) for one in own for other in keyed if one in names[other]]
        why = "no column looks like the patient's key"
        if shared:
            column, other = shared[0]
            why += (
                f"; if {printable(column)} leads to a patient by table {other}, add her key to the "
                "file with a join"
            )
        found[table] = why
    return found
