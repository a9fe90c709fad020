"""P06: a draft of a schema proposes nothing from rows, and nobody's confirmation is skipped.

A draft becomes a schema, and a schema is used without noise. If a draft took a bound, a category or
a number of rows from a table, the fit would publish it for free. So two tables with one header give
one draft, and the header of a statistics program is read without its rows.
"""

from __future__ import annotations

import csv
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pyreadstat
import pytest

from dpsynth.draft import draft_any, draft_schema
from dpsynth.draft.header import read_header
from dpsynth.draft.sheets import _shared
from dpsynth.errors import InputError, SchemaError
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


def test_no_byte_below_the_headings_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = "Registry of 2024\r\n\r\n"
    file = CountedFile((title + HEADER + ROWS[1]).encode())
    monkeypatch.setattr("dpsynth.draft.header._opened", lambda path: file)
    assert len(read_header(tmp_path / "t.csv").columns) == 4
    assert file.place == len(title + HEADER)


def test_a_row_below_a_title_is_not_taken_for_headings(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Registry of 2024\nSmith;Hamburg;Chirurgie\n")
    with pytest.raises(InputError) as caught:
        read_header(tmp_path / "t.csv")
    assert not any(one in str(caught.value) for one in ("Smith", "Hamburg", "Chirurgie"))


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(path: Path, rows: list[tuple[str | int, ...]]) -> Path:
    """Write a workbook as Excel does, whose cells share their texts."""
    texts = list(dict.fromkeys(cell for row in rows for cell in row if isinstance(cell, str)))
    cells = [
        "".join(
            f'<c t="s"><v>{texts.index(one)}</v></c>'
            if isinstance(one, str)
            else f"<c><v>{one}</v></c>"
            for one in row
        )
        for row in rows
    ]
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    data = "".join(f"<row>{row}</row>" for row in cells)
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets>'
        '<sheet name="Export" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": "<Relationships><Relationship "
        f'Id="r1" Type="{LINKS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}">{data}</worksheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{shared}</sst>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_rows_of_a_workbook_change_nothing(tmp_path: Path) -> None:
    """And of the texts that its cells share, none but those of the headings is kept."""
    drafts = set()
    for rows in ([("secret", 41)], [("Smith", "Hamburg"), (5, 7)], []):
        path = workbook(tmp_path / "t.xlsx", [("Registry of 2024",), ("patient_id", "age"), *rows])
        drafts.add(draft_schema(header=path).text)
    assert len(drafts) == 1
    path = workbook(tmp_path / "t.xlsx", [("Smith",), ("age", "Hamburg"), ("sex",)])
    with zipfile.ZipFile(path) as archive:
        assert _shared(archive, {1}) == {1: "age"}
        assert "Hamburg" in _shared(archive, {0, 1, 2, 3}).values()  # the broken version


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "sqlite"])
def test_rows_of_other_formats_change_nothing(tmp_path: Path, kind: str) -> None:
    """Not even the types that a writer inferred from the rows."""
    texts, types = set(), set()
    for place, frame in enumerate(
        (pd.DataFrame({"age": [41], "x": ["a"]}), pd.DataFrame({"age": [41.5, None], "x": [1, 2]}))
    ):
        (tmp_path / str(place)).mkdir()
        path = tmp_path / str(place) / f"t.{kind}"
        if kind == "parquet":
            frame.to_parquet(path)
        elif kind == "duckdb":
            with duckdb.connect(str(path)) as connection:
                connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        else:
            with closing(sqlite3.connect(path)) as connection:
                frame.to_sql("t", connection, index=False)
        texts.add(draft_schema(header=path).text)
        types.add(str(frame.dtypes.to_dict()))
    assert len(types) == 2 and len(texts) == 1


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
