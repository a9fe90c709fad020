"""The names of a table's columns, from wherever its format keeps them; no row is read.

Text files and sheets have headings above the rows. Files of SPSS, SAS and Stata describe their
columns in a header. Parquet files and databases keep the names apart from the rows; their types are
not used, because a program may have inferred them from rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpsynth._util.messages import plain, shown
from dpsynth.draft.entry import Entries
from dpsynth.draft.header import (
    find_headings,
    header_problems,
    name_problems,
    named,
    read_header,
    refuse,
)
from dpsynth.draft.sheets import sheet_names, sheet_rows
from dpsynth.draft.statistics_file import read_statistics_file
from dpsynth.errors import InputError
from dpsynth.schema import Schema
from dpsynth.tables import Reference, open_reference
from dpsynth.tables.formats import DICTIONARY, FIRST_LINE, FORMATS, NAMES, suffixes


def read_table_header(
    path: str | Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    row: int | None = None,
    sheet: str | None = None,
) -> Entries:
    """Read the column names of a table of any format that keeps them apart from its rows.

    Args:
        path: a table as a fit takes it: a file, a sheet or table in one, or a table of a database.
        delimiter: of a text file, as in `read_header`.
        encoding: of a text file, as in `read_header`.
        row: with the headings, of a text file or sheet, as in `read_header`.
        sheet: of a workbook; None for the only one with headings.

    Raises:
        InputError: it cannot be read, or its names cannot be those of columns.
    """
    reference = Reference.of(path)
    how = reference.format.draft
    if sheet is not None:
        if reference.part is not None or reference.format is not FORMATS["excel"]:
            raise InputError(f"{reference.place} has no sheets to choose from; leave out --sheet")
        reference = replace(reference, part=sheet)
    if row is not None and not reference.format.titled:
        raise InputError(f"{reference.place} has no lines above its names; leave out --header-row")
    if how == FIRST_LINE:
        assert reference.path is not None
        return read_header(reference.path, delimiter, encoding, row)
    if how == DICTIONARY:
        assert reference.path is not None
        return read_statistics_file(reference.path)
    if how != NAMES:
        raise InputError(
            f"{reference.place}: a draft reads names of columns where they stand apart from the "
            f"rows ({listed_formats()}); describe the columns in a data dictionary (--from)"
        )
    if reference.format is FORMATS["excel"]:
        return _sheet_header(reference, row)
    names = open_reference(reference, (), Schema.from_dict(_EMPTY)).header
    refuse(reference.place, name_problems(names))
    return named(f"columns of {reference.title}", names)


_EMPTY = {
    "fields": [{"name": "x", "type": "boolean"}],
    "dpsynth": {"version": 1, "draft": True},
}


def listed_formats() -> str:
    """List the suffixes of files of which a draft reads the names of columns."""
    return ", ".join(one for how in (FIRST_LINE, NAMES, DICTIONARY) for one in suffixes(how))


def _sheet_header(reference: Reference, row: int | None) -> Entries:
    """Read the names of the sheet that is named, or of the only one that has headings."""
    path = reference.path
    assert path is not None
    titles = [reference.part] if reference.part else sheet_names(path)
    found: dict[str, tuple[int, list[str]]] = {}
    problems: list[InputError] = []
    for title in titles:
        place = str(path) if len(titles) == 1 else f"sheet {plain(title)}"
        try:
            rows = enumerate(sheet_rows(path, title), 1)
            number, names = find_headings(rows, place, row, lone=True)
            while names and not names[0]:
                names = names[1:]  # the table stands to the right
            refuse(place, header_problems(names))
            found[title] = number, names
        except InputError as error:
            problems.append(error)
    if len(found) > 1:
        raise InputError(
            f"{path} has {len(found)} sheets with headings; name one with --sheet, such as --sheet "
            f"{shown(next(iter(found)))}"
        )
    if not found and len(problems) == 1:
        raise problems[0]
    if not found:
        raise InputError(f"{path} has no sheet with headings:", items=problems)
    [(title, (number, names))] = found.items()
    source = path.name if len(titles) == 1 and not reference.part else f"sheet {plain(title)}"
    return named(f"headings of {source}", names, row=number)
