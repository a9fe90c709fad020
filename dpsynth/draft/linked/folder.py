"""The tables of a folder, from the first lines of its text files; what is no table is left out.

A hospital's folder holds other files too: notes, lists of codes, a dictionary. None of them stops a
draft. Each is named with the reason, so that nobody misses a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.messages import listed
from dpsynth.draft.entry import Entries, Entry
from dpsynth.draft.header import SUFFIXES, read_header
from dpsynth.draft.linked.columns import is_patients, patient_keys
from dpsynth.errors import InputError, printable
from dpsynth.files import cannot_read
from dpsynth.schema import table_name
from dpsynth.schema.linked.table_names import HIDDEN


@dataclass(frozen=True)
class FolderTables:
    """What a folder holds.

    Attributes:
        tables: the columns of each table, by its name.
        left_out: for each other file its name, and why it is no table of the draft.
    """

    tables: Mapping[str, Entries]
    left_out: tuple[str, ...]


def read_folder(folder: Path, delimiter: str | None, encoding: str | None) -> FolderTables:
    """Read the header of each text file of a folder.

    Args:
        folder: the files; hidden ones do not count.
        delimiter: between the cells of every file; None for what each header shows.
        encoding: of every file; None for UTF-8, or cp1252 where a header is not UTF-8.

    Raises:
        InputError: a file cannot be read, two have one name, or fewer than two are tables.
    """
    found: dict[str, tuple[str, Entries]] = {}
    left_out: list[str] = []
    try:
        paths = sorted(one for one in folder.iterdir() if not one.name.startswith(HIDDEN))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {cannot_read(error)}") from None
    for path in paths:
        suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default=None)
        shown = printable(path.name)
        if suffix is None or not path.is_file():
            left_out.append(f"{shown}: it is not a text file ({', '.join(SUFFIXES)})")
            continue
        try:
            entries = read_header(path, delimiter, encoding)
        except InputError as error:
            raise InputError(
                f"{error}. If the file is not a table, move it out of the folder"
            ) from None
        if len(entries.columns) < 2:
            left_out.append(f"{shown}: its first line names one column only; a table has two")
            continue
        name = table_name(path.name[: -len(suffix)])
        twin = next((one for one in found if one.lower() == name.lower()), None)
        if twin is not None:
            raise InputError(
                f"{folder} has two files for table {name}: {listed([found[twin][0], path.name])}; "
                "keep one of them, or rename one"
            )
        found[name] = path.name, entries
    tables = {name: entries for name, (_, entries) in found.items()}
    for name, why in _without_key({name: own.columns for name, own in tables.items()}).items():
        left_out.append(f"{printable(found[name][0])}: {why}")
        del tables[name]
    if len(tables) < 2:
        raise InputError(
            f"{folder} has {len(tables)} text files with a header ({', '.join(SUFFIXES)}) that are "
            "tables; linked tables are two or more, each in a file with its name. "
            + (f"Not used: {'; '.join(left_out)}. " if left_out else "")
            + "Of other kinds of files, describe the columns in a dictionary (--from)"
        )
    return FolderTables(tables, tuple(left_out))


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
