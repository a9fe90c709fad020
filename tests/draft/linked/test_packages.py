"""Drafts of packages: what headers and dictionaries let dpsynth propose, and what stays TODO."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_any
from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import LinkedSchema

HEADERS = {
    "patients.csv": "patient,sex,admitted,discharged,fallnummer",
    "labs.csv.gz": "patient,day,test,value,fasting",
    "conditions.tsv": "patient\tday\tcondition",
    "visits.csv": "patient,visit_date,weight,ward,encounter_id",
    "notes.csv": "patient,score",
}
ROW = "Quokka-4711,2001-02-03,9,9,9"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "ward"
    place.mkdir()
    for name, header in HEADERS.items():
        content = f"{header}\n{ROW}\n".encode()
        (place / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (place / "README.md").write_text("no table")
    return place


def parsed(text: str) -> dict[str, Any]:
    document = parse_yaml(text.encode(), "draft")
    assert isinstance(document, dict)
    return document


def own(document: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("dpsynth", {}) for one in document["resources"]}


def test_keys_times_and_kinds_are_proposed(folder: Path) -> None:
    made = draft_any(header=folder)
    document = parsed(made.text)
    assert document["name"] == "ward" and document["dpsynth"]["patients"] == "patients"
    assert document["dpsynth"]["draft"] is True
    assert [one["name"] for one in document["resources"]][0] == "patients"
    assert document["resources"][0]["schema"]["primaryKey"] == "patient"
    tables = own(document)
    assert tables["labs"]["time"] == "day"
    assert tables["labs"]["series"] == {"column": "test", "value": "value", "tests": "TODO"}
    assert tables["conditions"] == {
        "time": "day",
        "once": "condition",
        "dialect": {"delimiter": "\t"},
    }
    assert tables["visits"]["time"] == "visit_date" and tables["visits"]["origin"] == "TODO"
    assert tables["notes"]["time"] == "TODO"
    assert all("max_rows" in tables[name] for name in ("labs", "visits", "notes"))
    assert "labs.fasting" in made.open and "visits.encounter_id" in made.dropped
    assert "such as admitted" in made.text and "Quokka" not in made.text


def test_a_draft_is_a_schema_with_gaps_and_no_mistake(folder: Path) -> None:
    schema = LinkedSchema.from_dict(parsed(draft_any(header=folder).text))
    assert schema.draft and schema.patients.column("discharged").interval is not None
    with pytest.raises(SchemaError, match="this is a draft") as caught:
        schema.require_complete()
    places = [problem.place for problem in caught.value.problems]
    for place in ("dpsynth.window.first", "dpsynth.population.value"):
        assert place in places
    assert any(place.endswith("dpsynth.origin") for place in places)
    assert any(place.endswith("dpsynth.series.tests") for place in places)
    lines = {problem.place: problem.message for problem in caught.value.problems}
    assert len(lines) == len(places) < 25  # one line for each kind of gap
    words = "fill it, or remove the key: resources[2], resources[3], resources[4]"
    assert lines["dpsynth.max_rows.value"].endswith(words)
    assert "resources[0].sex" in lines["constraints.enum"]


def test_a_draft_that_is_filled_in_is_a_schema(folder: Path) -> None:
    for name in ("visits.csv", "notes.csv", "conditions.tsv"):
        (folder / name).unlink()
    (folder / "patients.csv").write_text("patient,age\n")
    (folder / "labs.csv.gz").write_bytes(gzip.compress(b"patient,day,test,value\n"))
    text = draft_any(header=folder).text
    for open_part, filled in (
        ("population: {value: TODO, basis: TODO}", "population: {value: 900, basis: report}"),
        ("{first: TODO, last: TODO, basis: TODO}", "{first: 0, last: 99, basis: protocol}"),
        ("tests: TODO", "tests: {hdl: {minimum: 5, maximum: 200, bounds_basis: range}}"),
        ("max_rows: {value: TODO, basis: TODO}", "max_rows: {value: 9, basis: protocol}"),
        ("  draft: true ", "  "),
        ("proposal: age", "confirmed by A. B.: age"),
    ):
        assert text.count(open_part) == 1
        text = text.replace(open_part, filled)
    schema = LinkedSchema.from_dict(parsed(text))
    schema.require_complete()
    assert schema.child("labs").kind == "long" and schema.child("labs").key == "patient"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"patients.csv": "patient,age"}, "has 1 file with names of columns"),
        ({"patients.csv": "a,b", "labs.csv": "c,d"}, "no column that looks like the patient's key"),
        ({"labs.csv": "id,a", "Labs.tsv": "id\tb"}, "two files for table Labs|labs"),
        ({"a.csv": "id,a", "b.csv": ""}, "b.csv has no header.* If the file is not a table, move"),
    ],
)
def test_what_cannot_be_drafted(tmp_path: Path, headers: dict[str, str], message: str) -> None:
    for name, header in headers.items():
        (tmp_path / name).write_text(header + "\n")
    with pytest.raises(InputError, match=message):
        draft_any(header=tmp_path)


def test_keys_of_other_names_and_tables_of_other_languages(tmp_path: Path) -> None:
    (tmp_path / "stammdaten.csv").write_text("patientennummer,geschlecht\n")
    (tmp_path / "labor.csv").write_text("pid,datum,untersuchung,ergebnis\n")
    document = parsed(draft_any(header=tmp_path).text)
    assert document["dpsynth"]["patients"] == "stammdaten"
    [key] = document["resources"][1]["schema"]["foreignKeys"]
    assert key["fields"] == ["pid"] and key["reference"]["fields"] == ["patientennummer"]
    assert own(document)["labor"]["series"]["column"] == "untersuchung"


def test_a_dictionary_describes_the_columns_of_each_table(tmp_path: Path, folder: Path) -> None:
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text(
        "Table,Variable,Type,Values,Min,Max,Unit\n"
        "patients,patient,string,,,,\n"
        "patients,sex,,F=female; M=male,,,\n"
        "visits,patient,string,,,,\n"
        "visits,visit_date,date,,2010-01-01,2014-12-31,\n"
        "visits,weight,number,,30,250,kg\n"
    )
    alone = parsed(draft_any(dictionary=dictionary).text)
    assert [one["name"] for one in alone["resources"]] == ["patients", "visits"]
    weight = alone["resources"][1]["schema"]["fields"][2]
    assert weight["constraints"] == {"minimum": 30, "maximum": 250}
    both = draft_any(header=folder, dictionary=dictionary)
    document = parsed(both.text)
    sex = document["resources"][0]["schema"]["fields"][1]
    assert sex["constraints"] == {"enum": ["F", "M"]}
    assert "visits.ward" in both.only_in_header and "patients.sex" not in both.only_in_header


SHEETS = {
    "About": [["Extract of the clinic"], ["See the protocol"]],
    "patients": [
        ["Data of patients"],
        ["Variable", "Type", "Values"],
        ["patient", "string", ""],
        ["sex", "", "F=female; M=male"],
    ],
    "Lab values": [
        ["Name", "Type", "Min", "Max"],
        ["patient", "string", "", ""],
        ["day", "integer", "", ""],
        ["test", "string", "", ""],
        ["value", "number", "0", "500"],
    ],
    "visits": [
        ["Variable", "Type", "Min", "Max", "Unit"],
        ["patient", "string", "", "", ""],
        ["visit_date", "date", "2010-01-01", "2014-12-31", ""],
        ["weight", "number", "30", "250", "kg"],
    ],
}


def workbook(path: Path, sheets: dict[str, list[list[str]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_has_a_sheet_for_each_table(tmp_path: Path, folder: Path) -> None:
    dictionary = workbook(tmp_path / "clinic.xlsx", SHEETS)
    document = parsed(draft_any(dictionary=dictionary).text)
    names = [one["name"] for one in document["resources"]]
    assert names == ["patients", "Lab-values", "visits"]
    assert document["dpsynth"]["patients"] == "patients"
    weight = document["resources"][2]["schema"]["fields"][2]
    assert weight["constraints"] == {"minimum": 30, "maximum": 250}
    assert own(document)["Lab-values"]["series"]["column"] == "test"
    both = draft_any(header=folder, dictionary=dictionary)
    resources = {one["name"]: one for one in parsed(both.text)["resources"]}
    sex = resources["patients"]["schema"]["fields"][1]
    assert sex["constraints"] == {"enum": ["F", "M"]}
    assert "visits.weight" not in both.only_in_header
    one = draft_any(dictionary=dictionary, sheet="visits").text
    assert "resources" not in one and "weight" in one


@pytest.mark.parametrize(
    "second",
    [
        [["Variable", "Values"], ["sex", "F=female"], ["sex", "M=male"]],  # a list of codes
        [["Variable", "Label"], ["sex", "Sex of the patient"]],  # nothing new
        [["Variable", "Type"], ["score", "integer"]],  # no common key
    ],
)
def test_a_second_sheet_may_be_no_table(tmp_path: Path, second: list[list[str]]) -> None:
    sheets = {"patients": SHEETS["patients"], "more": second}
    text = draft_any(dictionary=workbook(tmp_path / "clinic.xlsx", sheets)).text
    assert "resources" not in text and "sex" in text and "score" not in text


def test_one_table_is_drafted_as_before(tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("patient,age\n")
    text = draft_any(header=tmp_path / "ward.csv").text
    assert "fields:" in text and "resources" not in text
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text("Table,Variable,Type\nward,patient,string\nward,age,integer\n")
    assert "resources" not in draft_any(dictionary=dictionary).text


def test_a_stay_counts_from_the_time_of_its_row(tmp_path: Path) -> None:
    """The time is where something starts, and the date where it ends is an interval after it."""
    place = tmp_path / "klinik"
    place.mkdir()
    (place / "patienten.csv").write_text("PatientenNr;Geschlecht;Dialysebeginn\n")
    (place / "aufenthalte.csv").write_text("PatientenNr;Entlassung;Aufnahme;Abteilung\n")
    made = draft_any(header=place, delimiter=";")
    stays = parsed(made.text)["resources"][1]
    assert stays["dpsynth"]["time"] == "Aufnahme"
    left = next(one for one in stays["schema"]["fields"] if one["name"] == "Entlassung")
    assert left["dpsynth"]["after"] == "Aufnahme" and left["dpsynth"]["longest"] == "TODO"
    assert 'add decimal: "," if numbers are written 3,5' in made.text
