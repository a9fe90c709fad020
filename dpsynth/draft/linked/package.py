"""A draft of a package, from a folder of files or a dictionary of several tables, never rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import listed
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft.drafts import Draft, checked_proposal, draft_schema, merged, read_entries
from dpsynth.draft.entry import Entries, Entry
from dpsynth.draft.intervals import add_body_mass_index, add_intervals, without_intervals
from dpsynth.draft.linked.columns import DAYS, Placed, placed_tables
from dpsynth.draft.linked.folder import read_folder
from dpsynth.draft.linked.text import package_text
from dpsynth.draft.proposal import Proposal
from dpsynth.errors import SchemaError
from dpsynth.schema import LinkedSchema

UNIT = "each test has one unit: declare it as ucum, and convert values in another unit first"
FORMATS = {
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
) -> Draft:
    """Draft a schema, or a package where the header is a folder or the dictionary names tables.

    Args:
        header: a CSV file, or a folder with one for each table; only first lines are read.
        dictionary: as in `draft_schema`; a column of it may name the table of each column, or a
            workbook may have a sheet for each table.
        delimiter: between the cells of text files; None for what each header shows.
        encoding: of text files; None for UTF-8, and for headers what each shows.
        sheet: of a workbook.
        catalog: as in `draft_schema`.

    Raises:
        InputError: as `draft_schema`; or a folder has no file with a header, or its tables no key.
    """
    how: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    place = None if catalog is None else path_of(catalog)
    if header is not None and path_of(header).is_dir():
        found = read_folder(Path(header), delimiter, encoding)
        described = None
        if dictionary is not None:
            described = read_entries(
                path_of(dictionary), None, encoding, sheet, place, several=True
            )
        stem = Path(header).resolve().name
        return _package(stem, found.tables, described, found.left_out)
    if header is None and dictionary is not None:
        described = read_entries(
            path_of(dictionary), delimiter, encoding, sheet, place, several=True
        )
        names = list(dict.fromkeys(one.table for one in described.columns if one.table))
        if len(names) > 1:
            parts = {name: _of_table(described, name) for name in names}
            return _package(Path(dictionary).name.split(".")[0], parts, None)
    return draft_schema(header=header, dictionary=dictionary, sheet=sheet, catalog=catalog, **how)


def _of_table(described: Entries, name: str) -> Entries:
    """Return what a dictionary says about one table: by its name, else about all columns."""
    own = tuple(one for one in described.columns if one.table.casefold() == name.casefold())
    return replace(described, columns=own or described.columns)


def _package(
    name: str,
    tables: Mapping[str, Entries],
    described: Entries | None,
    left_out: tuple[str, ...] = (),
) -> Draft:
    columns, unknown = dict(tables), []
    if described is not None:
        for table, names in tables.items():
            both, missing, _ = merged(names, _of_table(described, table))
            columns[table] = both
            unknown += [f"{table}.{one}" for one in missing]
    source = described.source if described is not None else ""
    source = source or f"the headers of {listed(tables)}"
    patients, placed = placed_tables({table: own.columns for table, own in columns.items()})
    proposals = {
        table: _fields(columns[table], placed[table], table == patients) for table in columns
    }
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", name) or "tables"
    dialects = {table: dict(own.dialect) for table, own in columns.items() if own.dialect}

    def write() -> str:
        text = package_text(stem, source, patients, placed, proposals, dialects, len(left_out))
        LinkedSchema.from_dict(parse_yaml(text.encode(), "draft"), "draft")  # it must be readable
        return text

    modelled = []
    for table, own in proposals.items():
        fields = [one for one in own if "dpsynth" in one.document]
        add_intervals([*fields, *_times(columns[table], placed[table], table == patients)])
        add_body_mass_index(fields)
        modelled += fields
    try:
        text = write()
    except SchemaError:
        without_intervals(modelled)
        text = write()
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
    )


def _fields(columns: Entries, own: Placed, is_patients: bool) -> list[Proposal]:
    """Propose the fields of a table; those with a place of their own have a name and a type."""
    fields = []
    for entry in columns.columns:
        if entry.name == own.key:
            fields.append(_plain(entry, "string"))
        elif not is_patients and entry.name == own.time:
            fields.append(_plain(entry, own.type))
        elif not is_patients and not own.once and entry.name == own.named:
            fields.append(_plain(entry, "string"))
        elif not is_patients and entry.name == own.value:
            fields.append(_plain(entry, "number"))
        elif not is_patients and entry.name == own.unit:
            fields.append(_dropped(entry, UNIT))
        elif not is_patients and own.once and entry.name != own.named:
            fields.append(_dropped(entry, "an event has a day and no value"))
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
        proposal.comments["format"] = FORMATS[kind]
    return proposal


def _dropped(entry: Entry, why: str) -> Proposal:
    proposal = Proposal({"name": entry.name, "type": "string", "dpsynth": {"role": "drop"}})
    proposal.comments["dpsynth.role"] = why
    return proposal


def _drop_keys(fields: list[Proposal]) -> None:
    """Drop the numbers of stays and visits: the patient's key is chosen by its place."""
    for one in fields:
        if one.document.get("dpsynth", {}).get("role") == "TODO":
            one.document["dpsynth"] = {"role": "drop"}
            one.comments["dpsynth.role"] = "a key is not modelled; it may be a foreign key"
