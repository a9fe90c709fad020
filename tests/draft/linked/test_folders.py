"""The folders that hospitals have: files of several dialects, and files that are no tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_any
from dpsynth.errors import InputError
from dpsynth.schema import LinkedSchema, table_name
from dpsynth.tables import linked_files

from ...support.command_line import Cli

FILES = {
    "Patienten.csv": "patient_id;Größe_cm;Todesdatum;index_datum\r\n".encode("cp1252"),
    "Fälle 2015.csv": b"\xef\xbb\xbfencounter_id,patient_id,admission_datetime,"
    b"discharge_datetime\n",
    "labor.txt": b"patient_id|zeitpunkt|code|wert|einheit\n",
    "rezepte.tsv": b"patient_id\tatc\tstart_date\tend_date\n",
    "allergien.csv": b"patient_id;allergie;datum\n",  # a table without rows
}
OTHERS = {
    "LIESMICH.txt": b"Bitte nicht weitergeben\n",
    "diagnosen.csv": b"encounter_id;icd\n",
    "codes.csv": b"code,label\n",
    "handbuch.pdf": b"%PDF",
    ".DS_Store": b"\0\0\0\1Bud1",
    "._Patienten.csv": b"\0\5\26\7",
    "~$Patienten.csv": b"\0",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "auszug"
    place.mkdir()
    for name, content in (FILES | OTHERS).items():
        (place / name).write_bytes(content)
    return place


def resources(text: str) -> dict[str, Any]:
    document = parse_yaml(text.encode(), "draft")
    assert isinstance(document, dict)
    return {one["name"]: one for one in document["resources"]}


def test_each_file_has_the_dialect_of_its_header(folder: Path) -> None:
    tables = resources(draft_any(header=folder).text)
    dialects = {name: one.get("dpsynth", {}).get("dialect") for name, one in tables.items()}
    assert dialects == {
        "Patienten": {"delimiter": ";", "encoding": "cp1252"},
        "Faelle-2015": None,
        "labor": {"delimiter": "|"},
        "rezepte": {"delimiter": "\t"},
        "allergien": {"delimiter": ";"},
    }
    assert tables["Patienten"]["schema"]["fields"][1]["name"] == "Größe_cm"


def test_files_that_are_no_tables_are_left_out_by_name(folder: Path) -> None:
    made = draft_any(header=folder)
    reasons = dict(one.split(": ", 1) for one in made.left_out)
    assert set(reasons) == {"LIESMICH.txt", "diagnosen.csv", "codes.csv", "handbuch.pdf"}
    assert "names one column only" in reasons["LIESMICH.txt"]
    assert "if encounter_id leads to a patient by table Faelle-2015" in reasons["diagnosen.csv"]
    assert "not a text file or another table" in reasons["handbuch.pdf"]


def test_a_draft_does_not_name_them(folder: Path) -> None:
    """It becomes a schema, which is public; files of a hospital may name patients."""
    (folder / "Mustermann_Erika_1950.pdf").write_text("")
    made = draft_any(header=folder)
    names = [one.split(": ")[0] for one in made.left_out]
    assert "Mustermann_Erika_1950.pdf" in names and len(names) == 5
    assert "# Left out, and named on the screen: 5 files." in made.text
    assert not [name for name in names if name in made.text] and "Mustermann" not in made.text


def test_dates_with_their_ends_and_units_of_values_are_proposed(folder: Path) -> None:
    tables = resources(draft_any(header=folder).text)
    fields = {
        name: {one["name"]: one for one in table["schema"]["fields"]}
        for name, table in tables.items()
    }
    stay = fields["Faelle-2015"]
    assert stay["admission_datetime"]["type"] == stay["discharge_datetime"]["type"] == "datetime"
    assert stay["discharge_datetime"]["dpsynth"]["after"] == "admission_datetime"
    assert fields["rezepte"]["end_date"]["dpsynth"] == {"role": "drop"}, "an event has one day"
    assert tables["rezepte"]["dpsynth"]["once"] == "atc"
    assert fields["labor"]["einheit"]["dpsynth"] == {"role": "drop"}
    assert fields["labor"]["zeitpunkt"]["type"] == "datetime"


def test_the_table_of_patients_is_never_left_out(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("id,patient_id,visit_date\n")
    (tmp_path / "labs.csv").write_text("patient_id,day,test,value\n")
    (tmp_path / "patients.csv").write_text("ID;sex\n")
    document = parse_yaml(draft_any(header=tmp_path).text.encode(), "draft")
    assert isinstance(document, dict) and document["dpsynth"]["patients"] == "patients"
    tables = {one["name"]: one for one in document["resources"]}
    assert tables["patients"]["schema"]["primaryKey"] == "ID"
    [key] = tables["visits"]["schema"]["foreignKeys"]
    assert key == {
        "fields": ["patient_id"],
        "reference": {"resource": "patients", "fields": ["ID"]},
    }
    (tmp_path / "patients.csv").write_text("kennzeichen;sex\n")
    with pytest.raises(InputError, match="table patients has no column .* such as patient_id"):
        draft_any(header=tmp_path)


def test_a_first_line_that_is_a_row_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("patient_id,sex\n")
    (tmp_path / "labs.csv").write_text("patient_id,day,test,value\n")
    (tmp_path / "contacts.csv").write_text("Quokka,Mallee\n")
    made = draft_any(header=tmp_path)
    assert [one.split(":")[0] for one in made.left_out] == ["contacts.csv"]
    assert "Quokka" not in made.text and "Mallee" not in str(made.left_out)


def test_dates_of_other_names_are_proposed(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("patient_id,sex\n")
    (tmp_path / "labs.csv").write_text("patient_id,collected_at,test,value\n")
    (tmp_path / "drugs.csv").write_text("patient_id,drug,start,stop\n")
    tables = resources(draft_any(header=tmp_path).text)
    assert tables["labs"]["dpsynth"]["time"] == "collected_at"
    assert tables["drugs"]["dpsynth"]["time"] == "start"
    assert tables["drugs"]["dpsynth"]["once"] == "drug"


def test_an_origin_is_no_date_of_death(folder: Path) -> None:
    text = draft_any(header=folder).text
    assert "origin: index_datum  # proposal: the date of patients" in text
    assert "origin: Todesdatum" not in text and "origin: TODO" not in text


def test_rows_end_with_death(folder: Path) -> None:
    text = draft_any(header=folder).text
    assert "  end: Todesdatum  # proposal: rows end with it" in text
    [patients] = [one for name, one in resources(text).items() if name == "Patienten"]
    [died] = [one for one in patients["schema"]["fields"] if one["name"] == "Todesdatum"]
    assert died["dpsynth"]["after"] == "index_datum" and died["dpsynth"]["unit"] == "d"


def test_drafted_tables_are_found_again_by_their_names(folder: Path) -> None:
    text = draft_any(header=folder).text
    schema = LinkedSchema.from_dict(dict(parse_yaml(text.encode(), "draft")))  # type: ignore[call-overload]
    files = linked_files(folder, schema)
    assert {Path(str(path)).name for path in files.values()} == set(FILES)


def test_a_declared_dialect_holds_for_all_files(folder: Path) -> None:
    with pytest.raises(InputError, match="Fälle 2015.csv.*the header has no ';', but it has ','"):
        draft_any(header=folder, delimiter=";")


def test_too_few_tables_say_what_was_not_used(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("patient,age\n")
    (tmp_path / "labs.jsonl").write_bytes(b"{}")
    with pytest.raises(InputError, match=r"has 1 file with .* Not used: labs.jsonl: it is not a"):
        draft_any(header=tmp_path)


def test_the_command_names_what_it_left_out(folder: Path, command_line: Cli) -> None:
    ended = command_line("schema", "draft", "--from-header", folder, "-o", "mine.package.yaml")
    assert ended.code == 0 and "left out codes.csv: no column looks like" in ended.err
    again = command_line("schema", "draft", "--from-header", folder, "--json")
    assert len(again.json["left_out"]) == 4


def test_names_of_files_become_names_of_tables() -> None:
    assert table_name("a\u0308rzte") == "aerzte"  # a letter and its dots, as macOS writes them
    assert table_name("...") == table_name("患者") == "table"


def test_the_last_contact_ends_follow_up_before_death_does(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("patient_id,index_date,last_contact,date_of_death\n")
    (tmp_path / "labs.csv").write_text("patient_id,collected_at,test,value\n")
    text = draft_any(header=tmp_path).text
    assert "  end: last_contact  # proposal: rows end with it" in text
    fields = {one["name"]: one for one in resources(text)["patients"]["schema"]["fields"]}
    assert fields["last_contact"]["dpsynth"]["after"] == "index_date"
    assert "after" not in fields["date_of_death"]["dpsynth"]
    assert resources(text)["labs"]["dpsynth"]["origin"] == "index_date"
