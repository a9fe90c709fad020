"""REDCap projects with repeating instruments: tables that share one export, by its header alone.

A row of such an export with an empty ``redcap_repeat_instrument`` has the fields of a record; a row
with the name of a form has the fields of this form. The data dictionary says which form has each
field, and does not say which forms repeat. Rows would say it, and are private: so a person does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsynth._util.messages import did_you_mean, listed, plain
from dpsynth.draft.drafts import merged
from dpsynth.draft.entry import CATEGORY, KEY, Entries, Entry
from dpsynth.errors import InputError

INSTRUMENT, INSTANCE = "redcap_repeat_instrument", "redcap_repeat_instance"
EVENT = "redcap_event_name"
PATIENTS, RECORDS = "patients", "records"
_STAMP = "_timestamp"  # behind the name of a form: when a survey was sent
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class SharedTables:
    """The tables of an export.

    Attributes:
        key: the column of the record, in each of them.
        columns: of each table, by its name; that of patients comes first.
        rows_where: which rows of the export are those of a table.
        only_in_header: columns that the dictionary does not describe.
        only_in_dictionary: described columns that the export does not have.
    """

    key: str
    columns: Mapping[str, Entries]
    rows_where: Mapping[str, Mapping[str, str]]
    only_in_header: tuple[str, ...]
    only_in_dictionary: tuple[str, ...]


def is_repeating(header: Entries) -> bool:
    """Tell whether an export is of a project with repeating instruments."""
    return any(column.name == INSTRUMENT for column in header.columns)


def shared_tables(
    header: Entries, described: Entries | None, repeating: Sequence[str]
) -> SharedTables:
    """Divide the columns of an export among patients and forms that repeat.

    Args:
        header: of the export.
        described: its data dictionary.
        repeating: the forms of which a record may have several.

    Raises:
        InputError: forms are not known, or it is not said which of them repeat.
    """
    every = () if described is None else (*described.columns, *described.also)
    forms = list(dict.fromkeys(entry.form for entry in every if entry.form))
    if described is None or not forms:
        raise InputError(
            f"the {header.source} is of a REDCap project with repeating instruments; add its data "
            "dictionary with --from: it says which form has each column"
        )
    if not repeating:
        raise InputError(
            f"the {header.source} is of a REDCap project with repeating instruments, and the "
            "dictionary does not say which they are (REDCap shows them under Project Setup): name "
            f"each with --repeating, such as --repeating {plain(forms[-1])}; the forms are "
            f"{listed(forms)}"
        )
    for form in repeating:
        if form not in forms:
            raise InputError(
                f"--repeating: the dictionary has no form {plain(form)}"
                f"{did_you_mean(form, forms)}; its forms are {listed(forms)}"
            )
    if set(forms) <= set(repeating):
        raise InputError(
            "--repeating: every form repeats, so no column is left that a record has once; leave "
            "out a form of which a record has one"
        )
    both, missing, unused = merged(header, described)
    key = described.columns[0].name
    if key not in {column.name for column in both.columns}:
        raise InputError(
            f"the {header.source} lacks {plain(key)}, the record ID of the dictionary: is it of "
            "another project? If not, export the record ID too"
        )
    places = {key, INSTRUMENT, INSTANCE, EVENT}
    patients = PATIENTS if PATIENTS not in repeating else RECORDS
    tables: dict[str, list[Entry]] = {patients: [], **{form: [] for form in repeating}}
    for entry in both.columns:
        if entry.name in places:
            for table, own in tables.items():
                own.append(_place(entry, is_patients=table == patients))
            continue
        form = entry.form or entry.name.removesuffix(_STAMP)
        tables[form if form in repeating else patients].append(entry)
    names = {entry.name for entry in both.columns}
    where = {table: {INSTRUMENT: "" if table == patients else table} for table in tables}
    if EVENT in names:
        where[patients][EVENT] = "TODO"
    return SharedTables(
        key,
        {table: replace(both, columns=_within(own, names)) for table, own in tables.items()},
        where,
        tuple(name for name in missing if name not in places),
        unused,
    )


def _place(entry: Entry, *, is_patients: bool) -> Entry:
    """Return what is known of a column that all tables have."""
    if entry.name == INSTANCE:
        return replace(entry, kind=KEY, remark="the number of a row among those of its form")
    if entry.name == EVENT and not is_patients:
        remark = "the events in which the form is filled in, such as month_1_arm_1; or drop it"
        return replace(entry, kind=CATEGORY, remark=remark)
    return replace(entry, remark="" if entry.name in (INSTRUMENT, EVENT) else entry.remark)


def _within(columns: Sequence[Entry], names: set[str]) -> tuple[Entry, ...]:
    """Leave out conditions that name a column of another table: a rule cannot."""
    own = {column.name for column in columns}
    found = []
    for column in columns:
        others = sorted({*_NAME.findall(column.condition)} & names - own)
        if others:
            remark = f"its form shows it depending on {listed(others)}, of another table"
            column = replace(column, condition="", remark=remark)
        found.append(column)
    return tuple(found)
