"""REDCap dictionaries, files of SPSS, SAS and Stata, and workbooks from strangers."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pyreadstat
import pytest

from dpsynth.draft import draft_schema
from dpsynth.draft.drafts import read_entries
from dpsynth.draft.entry import Entry
from dpsynth.errors import InputError

from ..support.hospital_dictionary import write_workbook

REDCAP = (
    '"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",'
    '"Choices, Calculations, OR Slider Labels","Field Note",'
    '"Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",'
    "Identifier?\n"
    "record_id,base,,text,Record ID,,,,,,\n"
    "full_name,base,,text,Name,,,,,,y\n"
    "age,base,,text,Age (years),,,integer,18,99,\n"
    'sex,base,,radio,<b>Sex</b>,"1, Male | 2, Female",,,,,\n'
    'risk,base,,checkbox,Risks,"1, Smoking | -9, Other",,,,,\n'
    "diab,base,,yesno,Diabetes,,,,,,\n"
    "seen,base,,text,Seen on,,,date_dmy,2020-01-01,2021-12-31,\n"
    "pain_now,base,,slider,Pain,0 | 5 | 10,,,0,10,\n"
    "info,base,,descriptive,Read this,,,,,,\n"
    "story,base,,notes,Story,,,,,,\n"
)


def entries(path: Path) -> dict[str, Entry]:
    return {column.name: column for column in read_entries(path, None, "utf-8").columns}


def test_redcap(tmp_path: Path) -> None:
    path = tmp_path / "redcap.csv"
    path.write_text(REDCAP)
    columns = entries(path)
    assert "info" not in columns and {"risk___1", "risk____9"} <= set(columns)
    assert (
        columns["sex"].values == (("1", "Male"), ("2", "Female")) and columns["sex"].label == "Sex"
    )
    assert (columns["age"].minimum, columns["age"].maximum) == ("18", "99")
    draft = draft_schema(dictionary=path)
    assert draft.dropped == ("full_name", "story") and draft.open == ("record_id",)
    assert "minimum: 2020-01-01" not in draft.text and '"2020-01-01"' in draft.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Field Type", "Kind", "not a complete REDCap data dictionary"),
        ("radio", "wheel", "row 5: the field type is not one of REDCap's"),
        ("sex,base", "age,base", "row 4 and row 5 have the same name, age"),
    ],
)
def test_bad_redcap_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "redcap.csv"
    path.write_text(REDCAP.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        draft_schema(dictionary=path)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [4711.0, 5222.0, -9.0],
            "sex": [1.0, 2.0, 2.0],
            "ward": ["secretward", "b", "c"],
            "admitted": pd.to_datetime(["2020-01-01"] * 3).date,
        }
    )


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta"])
def test_statistics_files_give_labels_and_no_row(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"other{suffix}"
    labels = {"sex": {1: "male", 2: "female"}}
    if suffix == ".dta":
        pyreadstat.write_dta(table(), str(path), variable_value_labels=labels)
    else:
        pyreadstat.write_sav(
            table(),
            str(path),
            variable_value_labels=labels | {"age": {-9: "unknown"}},
            column_labels={"age": "Age in years"},
            missing_ranges={"age": [-9]},
            compress=suffix == ".zsav",
        )
    asked = []
    for reader in ("read_sav", "read_dta"):
        real = getattr(pyreadstat, reader)

        def spied(*arguments: object, _real: object = real, **options: object) -> object:
            asked.append(options)
            return _real(*arguments, **options)  # type: ignore[operator]

        monkeypatch.setattr(pyreadstat, reader, spied)
    draft = draft_schema(dictionary=path)
    assert asked == [{"metadataonly": True} | ({} if suffix == ".dta" else {"user_missing": True})]
    columns = entries(path)
    assert columns["sex"].values == (("1", "male"), ("2", "female"))
    assert columns["admitted"].kind == "date" and columns["ward"].kind == "text"
    if suffix != ".dta":
        assert columns["age"].reasons == (("unknown", ("-9",)),)
        assert columns["age"].label == "Age in years" and not columns["age"].missing
    assert not any(cell in draft.text for cell in ("secretward", "4711", "5222"))


@pytest.mark.parametrize("suffix", [".sav", ".sas7bdat", ".dta"])
def test_damaged_statistics_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(b"$FL2 and nothing more" * 9)
    with pytest.raises(InputError, match="cannot be read as a file of S"):
        draft_schema(dictionary=path)
    path.unlink()
    with pytest.raises(InputError, match="does not exist; correct the path"):
        draft_schema(dictionary=path)


# workbooks ---------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        draft_schema(dictionary=path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_part(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def test_a_formula_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "d.xlsx")
    book = openpyxl.load_workbook(path)
    book["Felder"]["F8"] = "=1+1"
    book.save(path)
    assert "sheet Felder, cell F8: a formula is not computed" in refused(path)


def test_bombs_macros_and_entities_are_refused(tmp_path: Path) -> None:
    bomb = with_part(write_workbook(tmp_path / "a.xlsx"), "xl/media/x.xml", bytes(65 * 2**20))
    assert bomb.stat().st_size < 200_000 and "unpacks to more than 64 MB" in refused(bomb)
    macros = with_part(write_workbook(tmp_path / "b.xlsx"), "xl/vbaProject.bin", b"x")
    assert "has macros" in refused(macros)
    laughs = b'<!DOCTYPE a [<!ENTITY b "ha">]><a>&b;</a>'
    entities = with_part(write_workbook(tmp_path / "c.xlsx"), "xl/more.xml", laughs)
    assert "declares XML entities" in refused(entities)
    many = write_workbook(tmp_path / "d.xlsx")
    with zipfile.ZipFile(many, "a") as archive:
        for number in range(2001):
            archive.writestr(f"xl/p{number}.xml", b"")
    assert "unpacks to more than" in refused(many)


def test_other_bad_workbooks(tmp_path: Path) -> None:
    path = tmp_path / "d.xlsx"
    path.write_bytes(b"PK\x03\x04 no archive")
    assert "is damaged" in refused(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    assert "locked by a password or in an old format" in refused(path)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("readme.txt", "hello")
    path.write_bytes(content.getvalue())
    assert "cannot be read as a workbook" in refused(path)
    write_workbook(path)
    with pytest.raises(InputError, match="has no sheet 'x'; it has Deckblatt, Felder"):
        draft_schema(dictionary=path, sheet="x")
    with pytest.raises(InputError, match="no heading for the names"):
        draft_schema(dictionary=path, sheet="Deckblatt")
