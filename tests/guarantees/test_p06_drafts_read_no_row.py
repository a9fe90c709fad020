"""P06: a draft of a schema proposes nothing from rows, and nobody's confirmation is skipped.

A draft becomes a schema, and a schema is used without noise. If a draft took a bound, a category or
a number of rows from a table, the fit would publish it for free. So two tables with one header give
one draft, and the header of a statistics program is read without its rows.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from dpsynth.draft import draft_any, draft_schema
from dpsynth.draft.header import read_header
from dpsynth.errors import SchemaError
from dpsynth.schema import Schema

from ..support.sas_files import DOUBLE, write_catalog, write_sas
from ..support.schema_fields import schema_field

HEADER = "patient_id;age;sex;hba1c_%\n"
ROWS = (
    "1;41;F;5,9\n",
    "1;41;F;5,9\n2;119;secret;19,9\n3;7;M;\n",
    '"open quote;\n',
    "\udce4;1;2;3\n",
)


def draft_of(path: Path) -> str:
    return draft_schema(header=path, delimiter=";").text


def draft_that_looks(path: Path) -> str:
    """The broken version: it takes the categories from the rows."""
    with path.open(errors="replace", newline="") as file:
        found = sorted({cell for row in csv.reader(file, delimiter=";") for cell in row})
    return draft_of(path) + str(found)


def differ(draft: Callable[[Path], str], folder: Path) -> bool:
    """Tell whether two tables with one header give different drafts."""
    texts = set()
    for rows in ROWS:
        path = folder / "t.csv"
        path.write_bytes((HEADER + rows).encode("utf-8", "surrogateescape"))
        texts.add(draft(path))
    return len(texts) > 1


def test_rows_change_nothing(tmp_path: Path) -> None:
    assert differ(draft_that_looks, tmp_path)
    assert not differ(draft_of, tmp_path)


def test_rows_change_no_dialect_that_is_found(tmp_path: Path) -> None:
    """Delimiter and encoding are those of the first line, whatever the rows are written in."""

    def folder_of(path: Path) -> str:
        (path.parent / "labs.csv").write_text("patient_id;day;test;value\n")
        return draft_any(header=path.parent).text

    def encoding_of_rows(path: Path) -> str:
        """The broken version: it looks for the encoding in the whole file."""
        try:
            path.read_bytes().decode()
        except UnicodeDecodeError:
            return "cp1252"
        return "utf-8"

    assert differ(encoding_of_rows, tmp_path)
    assert not differ(lambda path: draft_schema(header=path).text, tmp_path)
    assert not differ(folder_of, tmp_path)


class CountedFile:
    """A file that counts the bytes that were asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def read(self, size: int) -> bytes:
        start = self.place
        self.place = len(self.content) if size < 0 else min(len(self.content), start + size)
        return self.content[start : self.place]

    def __enter__(self) -> CountedFile:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def test_no_byte_of_a_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (HEADER + ROWS[1]).encode()
    file = CountedFile(content)
    monkeypatch.setattr("dpsynth.draft.header._opened", lambda path: file)
    assert len(read_header(tmp_path / "t.csv", ";").columns) == 4
    assert file.place == len(HEADER)
    file.place = 0
    assert len(read_header(tmp_path / "t.csv").columns) == 4 and file.place == len(HEADER)
    whole = CountedFile(content)
    whole.read(-1).splitlines()  # the broken version
    assert whole.place > len(HEADER)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_rows_of_statistics_files_change_nothing(tmp_path: Path, suffix: str) -> None:
    """Not even their number, which the header of such a file states."""
    texts = set()
    for ages in ([41.0], [41.0, 119.0, 7.0]):
        path = tmp_path / f"t{suffix}"
        write = pyreadstat.write_sav if suffix == ".sav" else pyreadstat.write_dta
        write(pd.DataFrame({"age": ages, "ward": ["a"] * len(ages)}), str(path))
        texts.add(draft_schema(dictionary=path).text)
    assert len(texts) == 1


def test_rows_of_sas_files_with_a_catalogue_change_nothing(tmp_path: Path) -> None:
    """Labels come from the catalogue alone, also those that no row has."""
    catalog = write_catalog(tmp_path / "formats.sas7bcat", {"SEXF": {1.0: "male", 2.0: "female"}})
    texts = set()
    for sexes in ([1.0], [1.0, 2.0, 3.0]):
        path = tmp_path / "t.sas7bdat"
        write_sas(path, [("sex", DOUBLE, "SEXF.")], [(one,) for one in sexes])
        texts.add(draft_schema(dictionary=path, catalog=catalog).text)
    assert len(texts) == 1
    assert "enum: [1, 2]" in texts.pop()


def test_a_proposal_is_not_taken_for_a_declared_bound() -> None:
    field = schema_field(
        "age", "integer", "proposal: age, 0 to 120 a: confirm", minimum=0, maximum=120
    )
    size = {"value": 900, "basis": "annual report"}
    table = {"version": 1, "population": size, "rows": size}
    with pytest.raises(SchemaError, match="is a proposal"):
        Schema.from_dict({"fields": [field], "dpsynth": table})
    with pytest.raises(SchemaError, match="is a proposal"):
        Schema.from_dict({"fields": [field], "dpsynth": table | {"draft": True}}).require_complete()
    confirmed = field | {"dpsynth": {"bounds_basis": "admission form, field 3"}}
    Schema.from_dict({"fields": [confirmed], "dpsynth": table})
