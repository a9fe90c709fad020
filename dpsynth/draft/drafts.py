"""A draft of a schema: from a header, a dictionary, or the header of another program's file.

Nothing here reads a row of the table. The draft is complete as a document, and no fit accepts it: a
person confirms each proposal and fills each ``TODO`` first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import counted
from dpsynth._util.messages import plain
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft.clinical_edits import clinical_rules
from dpsynth.draft.dictionary import (
    is_redcap,
    read_dictionary,
    read_redcap,
    read_text_sheets,
    read_workbook,
)
from dpsynth.draft.entry import Entries, Entry
from dpsynth.draft.intervals import (
    add_body_mass_index,
    add_hints,
    add_intervals,
    add_length_of_stay,
    drop_encounter_keys,
    orders,
    without_intervals,
)
from dpsynth.draft.proposal import Proposal, propose
from dpsynth.draft.statistics_file import read_statistics_file
from dpsynth.draft.table_header import read_table_header
from dpsynth.draft.yaml_text import comment, field_lines, flow
from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.tables.formats import DICTIONARY, FIRST_LINE, FORMATS, GZIP, format_by, suffixes

MAX_COLUMNS = 4096
WORKBOOK = FORMATS["excel"].suffixes[0]
_HEAD = """\
# A draft of `dpsynth schema draft`, made from: {source}
# No row of the table was read. Before you use this schema:
#   1. Replace each TODO. A number or list comes from a document, never from the data.
#   2. Check each proposal. Then write your own source in bounds_basis, or write
#      "confirmed by NAME" in the place of the word "proposal".
#   3. Which columns are outcomes: what models will predict, or readers will compare between groups?
#      Give each of them `role: target`. A table may have several, anywhere, or none.
#   4. Remove `draft: true` at the end, and run `dpsynth schema check`.
"""
_FOOT = """\
dpsynth:
  version: 1
  draft: true  # remove it when no TODO and no proposal is left
  population: {value: TODO, basis: TODO}  # how many patients, two digits, from a report
  rows: {value: TODO, basis: TODO}  # how many rows, two digits, from a report
  max_rows: {value: TODO, basis: TODO}  # rows of a patient that count; without role unit: remove
"""


@dataclass(frozen=True)
class Draft:
    """A draft of a schema.

    Attributes:
        text: YAML with comments.
        proposed: columns whose every part is proposed.
        open: columns with a TODO.
        dropped: columns with role drop.
        only_in_header: columns of the header that the dictionary does not describe.
        only_in_dictionary: described columns that the header does not have.
        catalog: name of the SAS format catalogue that the value labels are from; None without one.
        left_out: files of a folder or sheets that are no table of the draft, each with the reason.
        unused_headings: of the dictionary, whose cells were not used.
    """

    text: str
    proposed: tuple[str, ...]
    open: tuple[str, ...]
    dropped: tuple[str, ...]
    only_in_header: tuple[str, ...] = ()
    only_in_dictionary: tuple[str, ...] = ()
    catalog: str | None = None
    left_out: tuple[str, ...] = ()
    unused_headings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Count what is proposed and what is open."""
        return short_repr(
            self,
            counted(len(self.proposed), "column") + " proposed",
            f"{len(self.open)} open",
            f"{len(self.dropped)} dropped",
        )


def draft_schema(
    *,
    header: str | Path | None = None,
    dictionary: str | Path | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    catalog: str | Path | None = None,
    header_row: int | None = None,
) -> Draft:
    """Draft a schema without reading a row.

    Args:
        header: a table as a fit takes it, of which the names of the columns are read.
        dictionary: a data dictionary (CSV or .xlsx), also of REDCap, or a file of SPSS, SAS or
            Stata. With a header too, the columns are those of the header, in its order.
        delimiter: between the cells of a text file; of the header if both are given. None for
            what the header shows.
        encoding: of a text file; None for UTF-8, and for the header what its first line shows.
        sheet: of a workbook; None for the first that is a dictionary, or the only one with
            headings. It is that of the dictionary if both are given.
        catalog: format catalogue (``.sas7bcat``) with the value labels of a SAS file; None for
            the one beside it that has its name or is ``formats.sas7bcat``.
        header_row: number of the line with the headings, from 1; None for the first that is not a
            title.

    Raises:
        InputError: nothing is given, or a document cannot be read; it says what to do.
    """
    names = None
    if header is not None:
        own = sheet if dictionary is None else None
        names = read_table_header(header, delimiter, encoding, header_row, own)
    described = None
    if dictionary is not None:
        sign = delimiter if header is None else None
        place = None if catalog is None else path_of(catalog)
        described = read_entries(path_of(dictionary), sign, encoding, sheet, place)
    elif catalog is not None:
        raise InputError("name the SAS file of the format catalogue with --from")
    if names is None and described is None:
        raise InputError("give a table with --from-header, a data dictionary with --from, or both")
    entries, only_header, only_dictionary = merged(names, described)
    if len(entries.columns) > MAX_COLUMNS:
        raise InputError(f"{entries.source}: more than {MAX_COLUMNS} columns are not read")
    source = entries.source if described is None else described.source
    proposals = [checked_proposal(entry, source) for entry in entries.columns]
    stem = stem_of(header if header is not None else str(dictionary))
    name = re.sub(r"[^A-Za-z0-9._-]", "-", stem) or "table"

    def write() -> str:
        return _text(name, entries, proposals)

    schema = _settle(proposals, write)
    return Draft(
        write() + rule_lines(schema),
        tuple(_names(proposals, lambda one: not one.is_open and not one.is_dropped)),
        tuple(_names(proposals, lambda one: one.is_open)),
        tuple(_names(proposals, lambda one: one.is_dropped)),
        only_header,
        only_dictionary,
        None if described is None else described.catalog,
        unused_headings=() if described is None else described.unused,
    )


def stem_of(source: str | Path) -> str:
    """Return the name of a draft: that of the file, or of the table of a database."""
    from dpsynth.tables import is_url

    name, sign, part = str(source).partition("#")
    table = part.removeprefix("@").rpartition(".")[2] if sign and not part.startswith("@") else part
    if is_url(str(source)):
        return Path(table.removeprefix("@")).name.split(".")[0] or "table"
    return Path(source if Path(source).exists() else name).name.split(".")[0]


def read_entries(
    path: Path,
    delimiter: str | None,
    encoding: str | None,
    sheet: str | None = None,
    catalog: Path | None = None,
    *,
    several: bool = False,
) -> Entries:
    """Read a dictionary by its suffix and, for text and workbooks, by its headings.

    With ``several``, the sheets of a workbook may describe a table each.

    Raises:
        InputError: as the reader of its kind.
    """
    suffix = path.suffix.lower()
    texts = [one for one in suffixes(FIRST_LINE) if not one.endswith(GZIP)]
    known = (*texts, WORKBOOK, *suffixes(DICTIONARY))
    if suffix not in known:
        old = "; save it as .xlsx" if suffix in (".xls", ".xlsm", ".xlsb", ".ods") else ""
        raise InputError(f"{path} is not a dictionary that can be read: {', '.join(known)}{old}")
    if sheet is not None and suffix != WORKBOOK:
        raise InputError(f"{path} has no sheets; leave out --sheet")
    if format_by(suffix).draft == DICTIONARY:
        return read_statistics_file(path, catalog)
    if catalog is not None:
        raise InputError(f"{path} is not a .sas7bdat file; leave out --catalog")
    if suffix == WORKBOOK:
        sheets = read_workbook(path, sheet)
    else:
        sign = delimiter or format_by(suffix).delimiter or None
        sheets = read_text_sheets(path, sign, encoding or "utf-8")
    for one in sheets:
        if is_redcap(one):
            return read_redcap(one, path)
    return read_dictionary(sheets, path, several=several)


def merged(
    names: Entries | None, described: Entries | None
) -> tuple[Entries, tuple[str, ...], tuple[str, ...]]:
    """Take the columns of the header, each with what the dictionary says about it."""
    if names is None or described is None:
        only = names or described
        assert only is not None
        return only, (), ()
    both = (*described.columns, *described.also)
    known = {entry.name: entry for entry in both}
    folded: dict[str, list[Entry]] = {}
    for entry in both:
        folded.setdefault(entry.name.casefold(), []).append(entry)
    columns: list[Entry] = []
    missing: list[str] = []
    used: set[str] = set()
    for column in names.columns:
        near = folded.get(column.name.casefold(), [])
        found = known.get(column.name) or (near[0] if len(near) == 1 else None)
        if found is None:
            missing.append(column.name)
            columns.append(replace(column, remark="the dictionary does not describe this column"))
        else:
            used.add(found.name)
            columns.append(replace(found, name=column.name))
    source = f"{described.source}, and the {names.source}"
    unused = tuple(one.name for one in described.columns if one.name not in used)
    return replace(names, source=source, columns=tuple(columns)), tuple(missing), unused


def checked_proposal(entry: Entry, source: str) -> Proposal:
    """Propose a field that the schema reader takes; what it refuses becomes a TODO."""
    proposal = propose(entry, source)
    problem = _problem(proposal.document)
    if problem is None:
        return proposal
    unbounded = propose(replace(entry, minimum="", maximum=""), source)
    if (entry.minimum or entry.maximum) and _problem(unbounded.document) is None:
        unbounded.notes.append(f"the bounds of the document cannot be used: {problem}")
        return unbounded
    bare = replace(
        entry,
        values=(),
        minimum="",
        maximum="",
        missing=(),
        reasons=(),
        format=None,
        label="",
        unit="",
    )
    proposal = propose(bare, source)
    proposal.notes.append(f"what the document says about it cannot be used: {problem}")
    problem = _problem(proposal.document)
    if problem is not None:
        raise InputError(f"{source}: column {plain(entry.name)} cannot be drafted: {problem}")
    return proposal


def _problem(document: dict[str, Any]) -> str | None:
    """Return what the schema reader says about a field of a draft."""
    other = {"name": f"{document['name']}_", "type": "boolean"}
    whole = {"fields": [document, other], "dpsynth": {"version": 1, "draft": True}}
    try:
        Schema.from_dict(whole)
    except SchemaError as error:
        return error.problems[0].message
    return None


def rule_lines(schema: Schema | LinkedSchema) -> str:
    """Ask for rules that public lists suggest, as comments at the end of a draft."""
    return "".join(
        f"  {comment(f'if your documents say so ({one.reason}): rules: [{flow(one.text)}]')}\n"
        for one in clinical_rules(schema)
    )


def _settle(proposals: list[Proposal], write: Callable[[], str]) -> Schema:
    """Add intervals, as keys if the schema reader takes the whole draft with them.

    Raises:
        SchemaError: it takes the draft in neither form, such as one that drops every column.
    """
    add_intervals(proposals)
    add_body_mass_index(proposals)
    add_length_of_stay(proposals)
    drop_encounter_keys(proposals)
    add_hints(proposals)
    try:
        return Schema.from_dict(parse_yaml(write().encode(), "draft"), "draft")
    except SchemaError:
        without_intervals(proposals)
        return Schema.from_dict(parse_yaml(write().encode(), "draft"), "draft")


def _names(proposals: list[Proposal], wanted: Callable[[Proposal], bool]) -> list[str]:
    return [str(proposal.document["name"]) for proposal in proposals if wanted(proposal)]


def _text(name: str, entries: Entries, proposals: list[Proposal]) -> str:
    lines = [_HEAD.format(source=comment(entries.source)[2:]).rstrip()]
    lines += [
        "$schema: https://datapackage.org/profiles/2.0/tableschema.json",
        f"name: {flow(name)}",
    ]
    lines.append("fields:")
    for proposal in proposals:
        lines += field_lines(proposal)
    lines.append(_FOOT.rstrip())
    if entries.dialect:
        dialect = flow(dict(entries.dialect))
        hint = comment('add decimal: "," if numbers are written 3,5')
        lines.append(f"  dialect: {dialect}  {hint}")
    else:
        example = 'if needed: dialect: {delimiter: ";", decimal: ",", encoding: cp1252}'
        lines.append(f"  {comment(example)}")
    lines.append(f"  {comment('if each value of the unit is a patient: person: {name: patient}')}")
    for order in orders(proposals):
        lines.append(f"  {comment(f'if each row keeps it: rules: [{{{order}}}]')}")
    return "\n".join(lines) + "\n"
