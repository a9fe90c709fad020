"""Drafts of exports as hospitals make them, in every format that a fit reads."""

from __future__ import annotations

import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_any
from dpsynth.draft.dictionary import condition
from dpsynth.draft.entry import Entry
from dpsynth.errors import InputError
from dpsynth.schema import Rule

from ..support.command_line import Cli
from ..support.messy_exports import dutch_workbook, german_folder, survey


def tables(text: str) -> dict[str, dict[str, Any]]:
    document: Any = parse_yaml(text.encode(), "draft")
    return {
        table["name"]: {one["name"]: one for one in table["schema"]["fields"]}
        for table in document["resources"]
    }


def role(field: dict[str, Any]) -> object:
    return field.get("dpsynth", {}).get("role")


def test_a_dutch_workbook(tmp_path: Path) -> None:
    made = draft_any(header=dutch_workbook(tmp_path / "epd.xlsx"))
    found = tables(made.text)
    assert set(found) == {"Patienten", "Opnames", "Lab"}
    patients, stays = found["Patienten"], found["Opnames"]
    dropped = [role(patients[one]) for one in ("BSN", "Achternaam", "Geboortedatum", "Postcode")]
    assert dropped == ["drop"] * 4 and role(stays["Arts"]) == "drop"
    assert stays["Ontslagdatum"]["dpsynth"]["after"] == "Opnamedatum"
    assert "series:" in made.text and "column: Bepaling" in made.text
    assert "dialect: {header_row: 3}" in made.text and "dialect: {header_row: 2}" in made.text
    assert any(one.startswith("Toelichting: ") for one in made.left_out)
    assert "Geheim" not in made.text + "".join(made.left_out)


def test_one_sheet_of_it(tmp_path: Path) -> None:
    path = dutch_workbook(tmp_path / "epd.xlsx")
    for how in ({"header": f"{path}#Opnames"}, {"header": path, "sheet": "Opnames"}):
        document: Any = parse_yaml(draft_any(**how).text.encode(), "draft")
        assert document["name"] == "epd" and document["fields"][0]["name"] == "Patiëntnummer"
    with pytest.raises(InputError, match="has no sheet with this name"):
        draft_any(header=path, sheet="Labor")


def test_a_workbook_with_one_table_and_a_legend(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for title, rows in {
        "Daten": [("Patienten-ID", "Alter"), ("P1", 3)],
        "Legende": [("Code", "Bedeutung"), (1, "Geheim")],
        "Notizen": [("Geheim",)],
    }.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    made = draft_any(header=tmp_path / "t.xlsx")
    document: Any = parse_yaml(made.text.encode(), "draft")
    assert [one["name"] for one in document["fields"]] == ["Patienten-ID", "Alter"]
    assert {one.split(":")[0] for one in made.left_out} == {"Legende", "Notizen"}


def test_a_german_ward(tmp_path: Path) -> None:
    made = draft_any(header=german_folder(tmp_path / "station"))
    assert set(tables(made.text)) == {"Patienten", "Faelle", "Labor"}
    assert "encoding: cp1252" in made.text
    reasons = {one.split(":")[0] for one in made.left_out if ": " in one}
    assert {"LIESMICH.txt", "Codes.csv"} <= reasons
    assert "Geheim" not in made.text + "".join(made.left_out)


def test_a_survey_of_spss_with_a_dictionary_of_redcap(tmp_path: Path) -> None:
    data, dictionary = survey(tmp_path)
    made = draft_any(header=data, dictionary=dictionary)
    assert made.only_in_header == () and made.only_in_dictionary == ("seen", "crp")
    assert "{value: 2, label: Complete}" in made.text and "base_complete" in made.proposed
    assert 'present_if: "sex == 2"' in made.text
    assert 'add decimal: "," to the dialect' in draft_any(dictionary=dictionary).text
    assert "gp" in made.dropped and "Geheim" not in made.text
    alone = draft_any(header=data)
    assert alone.open and "4711" not in alone.text


def test_branching_logic_becomes_a_rule() -> None:
    known = {
        "sex": Entry("sex", kind="category", values=(("1", "m"), ("2", "f"))),
        "risk___1": Entry("risk___1", kind="boolean"),
        "ward": Entry("ward", kind="category", values=(("a", ""), ("b", ""))),
    }
    text = "([sex] = '2' or [ward] <> \"b\") and [risk(1)] = '1'"
    rule = condition(text, known)
    assert rule == "(sex == 2 or ward != 'b') and risk___1 == true"
    Rule.parse(rule)
    for other in ("[event][x] = '1'", "[gone] = '1'", "sum([sex], 1) > '2'", "[sex] <> ''"):
        assert condition(other, known) == ""


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    folder = german_folder(tmp_path / "station")
    (folder / "Diagnosen.csv").write_text("Patientennummer;;ICD;ICD\nP1;x;J44;y\n")
    (folder / "Geheim.csv").write_text("P1;3.4.2021;12,5\n")
    with pytest.raises(InputError) as caught:
        draft_any(header=folder)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4 and "has 3 mistakes" in lines[0]
    assert "column 2 has no name" in lines[1] and "column 3 and column 4" in lines[2]
    assert "columns 2, 3 of the first line are a number" in lines[3]
    assert "12,5" not in str(caught.value) and "3.4.2021" not in str(caught.value)
    data, dictionary = survey(tmp_path)
    text = dictionary.read_text().replace("radio", "wheel").replace("\ngp,", "\nage,")
    dictionary.write_text(text)
    with pytest.raises(InputError) as caught:
        draft_any(header=data, dictionary=dictionary)
    assert len(str(caught.value).splitlines()) == 3


COLUMNS = {"patient_id": ["P1"], "age": [4711], "naam": ["Geheim"], "opnamedatum": ["2021-01-02"]}


def written(folder: Path, kind: str) -> str:
    """Write one table in a format, and return its name."""
    frame = pd.DataFrame(COLUMNS)
    if kind == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return str(folder / "t.parquet")
    if kind == "parts":
        (folder / "parts").mkdir()
        frame.to_parquet(folder / "parts" / "0.parquet")
        return str(folder / "parts")
    if kind == "xlsx":
        frame.to_excel(folder / "t.xlsx", index=False)
        return str(folder / "t.xlsx")
    if kind == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        return str(folder / "t.duckdb")
    with sqlite3.connect(folder / "t.sqlite") as connection:
        frame.to_sql("t", connection, index=False)
    connection.close()
    name = folder / "t.sqlite"
    return f"sqlite:///{name}#t" if kind == "url" else str(name)


@pytest.mark.parametrize("kind", ["parquet", "parts", "xlsx", "duckdb", "sqlite", "url"])
def test_every_format_that_keeps_names_apart(tmp_path: Path, kind: str) -> None:
    made = draft_any(header=written(tmp_path, kind))
    document: Any = parse_yaml(made.text.encode(), "draft")
    assert [one["name"] for one in document["fields"]] == list(COLUMNS)
    assert "4711" not in made.text and "Geheim" not in made.text


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_of_several_tables_is_a_package(tmp_path: Path, kind: str) -> None:
    name = written(tmp_path, kind)
    connect = duckdb.connect if kind == "duckdb" else sqlite3.connect
    connection = connect(name)  # type: ignore[operator]
    connection.execute("CREATE TABLE labs (patient_id TEXT, datum TEXT, test TEXT, value REAL)")
    connection.commit()
    connection.close()
    assert set(tables(draft_any(header=name).text)) == {"t", "labs"}


def test_a_workbook_is_read_no_further_than_its_headings(tmp_path: Path) -> None:
    """Rows of other types and texts change nothing, and damage below the headings is not seen."""
    texts = set()
    for rows in ([["P1", 3]], [["secret", "text"], [None, 7.5]], []):
        book = openpyxl.Workbook()
        for row in (["patient_id", "age"], *rows):
            book.active.append(row)
        book.save(tmp_path / "t.xlsx")
        texts.add(draft_any(header=tmp_path / "t.xlsx").text)
    assert len(texts) == 1
    whole, cut = tmp_path / "t.xlsx", tmp_path / "cut.xlsx"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(cut, "w") as target:
        for part in source.namelist():
            content = source.read(part)
            if part.endswith("sheet1.xml"):
                content = content[: content.index(b"</row>") + 6] + b" " * 2**18 + b"<row><c"
            target.writestr(part, content)
    assert draft_any(header=cut).open


def test_a_table_that_stands_below_and_to_the_right(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for place, cells in ((4, ("patient_id", "age")), (5, ("P1", 3))):
        for column, cell in enumerate(cells):
            book.active.cell(place, column + 3, cell)
    book.save(tmp_path / "t.xlsx")
    made = draft_any(header=tmp_path / "t.xlsx")
    assert "name: patient_id" in made.text and not made.left_out
    assert draft_any(header=tmp_path / "t.xlsx", header_row=4).proposed == made.proposed


def test_a_number_is_not_a_heading(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Geheim", 41, "F"])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="column 2 of the first line is a number") as caught:
        draft_any(header=tmp_path / "t.xlsx")
    assert "Geheim" not in str(caught.value) and "41" not in str(caught.value)


def test_the_command_takes_the_line_of_the_headings(command_line: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Smith,Hamburg\nq1,q2\n1,2\n")
    ended = command_line("schema", "draft", "--from-header", "t.csv", "--header-row", "2")
    assert ended.code == 0 and "name: q1" in ended.out and "Smith" not in ended.out
    assert "dialect: {header_row: 2}" in ended.out
    wrong = command_line("schema", "draft", "--from-header", "t.csv", "--header-row", "0")
    assert wrong.code == 2 and "--header-row" in wrong.err
