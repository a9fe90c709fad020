"""REDCap projects with repeating instruments: from dictionary and header to a fitted package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

import dpsynth
from dpsynth import inspection
from dpsynth._util.strict_yaml import parse_yaml, yaml_text
from dpsynth.draft import draft_any
from dpsynth.errors import InputError, SchemaError, TableError
from dpsynth.schema import LinkedSchema

from ...support.command_line import Cli
from ...support.repeating_forms import (
    BASIS,
    DICTIONARY,
    HEADER,
    export_text,
    records,
    write_project,
)

FORMS = ("medications", "labs")
INSTRUMENT = "redcap_repeat_instrument"


def document_of(text: str) -> Any:
    return parse_yaml(text.encode(), "draft")


def drafted(folder: Path, header: tuple[str, ...] = HEADER, forms: tuple[str, ...] = FORMS) -> Any:
    dictionary, export = write_project(folder)
    export.write_text(export_text([], header))
    return draft_any(header=export, dictionary=dictionary, repeating=forms)


def columns(document: Any) -> dict[str, list[str]]:
    return {
        table["name"]: [one["name"] for one in table["schema"]["fields"]]
        for table in document["resources"]
    }


def own(document: Any, table: str) -> Any:
    return next(one["dpsynth"] for one in document["resources"] if one["name"] == table)


def test_each_form_that_repeats_is_a_table(tmp_path: Path) -> None:
    made = drafted(tmp_path)
    document = document_of(made.text)
    places = [*HEADER[:3]]
    assert columns(document) == {
        "patients": [*places, "sex", "pregnant", "weight", "enrolled", "demographics_complete"],
        "medications": [*places, "med_name", "med_dose", "med_start", "medications_complete"],
        "labs": [*places, "crp", "fasting", "labs_complete"],
    }
    assert document["dpsynth"]["patients"] == "patients"
    for table, form in (("patients", ""), ("medications", "medications"), ("labs", "labs")):
        assert own(document, table)["rows_where"] == {INSTRUMENT: form}
        assert own(document, table)["dialect"] == {"delimiter": ";"}
    assert own(document, "medications")["time"] == "med_start"
    assert own(document, "labs")["order"] == "redcap_repeat_instance"
    assert not made.only_in_header and not made.only_in_dictionary


def test_branching_logic(tmp_path: Path) -> None:
    """A condition stays where it names columns of its own table; else a note says why not."""
    text = drafted(tmp_path).text
    assert 'present_if: "sex == 2"' in text and 'present_if: "med_name != 3"' in text
    assert "its form shows it depending on sex, of another table" in text
    assert 'present_if: "sex == 1"' not in text
    assert "written with a decimal comma" in text


def test_no_row_is_read(tmp_path: Path) -> None:
    """Whatever stands in the rows, the draft is the same: even what is no row at all."""
    dictionary, export = write_project(tmp_path)
    how: Any = {"header": export, "dictionary": dictionary, "repeating": FORMS}
    text = draft_any(**how).text
    export.write_bytes(export.read_bytes().split(b"\n")[0] + b"\nzebrafish;\xff\xfe\0\n")
    assert draft_any(**how).text == text


@pytest.mark.parametrize("titled", [True, False])
def test_a_workbook(tmp_path: Path, titled: bool) -> None:
    (tmp_path / "dictionary.csv").write_text(DICTIONARY)
    book = openpyxl.Workbook()
    for row in [*([["Registry"], []] if titled else []), list(HEADER)]:
        book.active.append(row)
    book.save(tmp_path / "export.xlsx")
    made = draft_any(
        header=tmp_path / "export.xlsx",
        dictionary=tmp_path / "dictionary.csv",
        repeating=FORMS,
    )
    assert ("dialect: {header_row: 3}" in made.text) == titled
    assert "dialect" in own(document_of(made.text), "labs") or not titled


def test_a_longitudinal_project(tmp_path: Path) -> None:
    """The event of a record's fields is asked for; in other tables it is a column of each row."""
    header = (HEADER[0], "redcap_event_name", *HEADER[1:], "redcap_data_access_group")
    made = drafted(tmp_path, header)
    document = document_of(made.text)
    where = own(document, "patients")["rows_where"]
    assert where == {INSTRUMENT: "", "redcap_event_name": "TODO"}
    assert all("redcap_event_name" in names for names in columns(document).values())
    assert "labs.redcap_event_name" in made.open
    assert made.only_in_header == ("redcap_data_access_group",)
    assert "redcap_data_access_group" in columns(document)["patients"]
    with pytest.raises(SchemaError, match=r"rows_where\.redcap_event_name.*TODO"):
        LinkedSchema.from_dict(document).require_complete()


def test_a_form_that_is_called_patients(tmp_path: Path) -> None:
    dictionary, export = write_project(tmp_path)
    for path in (dictionary, export):
        path.write_text(path.read_text().replace("medications", "patients"))
    made = draft_any(header=export, dictionary=dictionary, repeating=("patients",))
    document = document_of(made.text)
    assert [*columns(document)] == ["records", "patients"]
    assert document["dpsynth"]["patients"] == "records"
    assert {"crp", "fasting"} < set(columns(document)["records"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dictionary": None}, "add its data dictionary with --from: it says which form"),
        ({"repeating": ()}, "name each with --repeating, .* forms are demographics, medications"),
        ({"repeating": ("lab",)}, "has no form lab .*did you mean 'labs'.*; its forms are"),
        ({"repeating": ("demographics", *FORMS)}, "every form repeats"),
        ({"header": None}, "--repeating is for the export of a REDCap project"),
    ],
)
def test_mistakes(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    dictionary, export = write_project(tmp_path)
    asked: Any = {"header": export, "dictionary": dictionary, "repeating": FORMS} | how
    with pytest.raises(InputError, match=message) as caught:
        draft_any(**asked)
    assert "\n" not in str(caught.value), "one sentence"


def test_other_exports(tmp_path: Path) -> None:
    dictionary, export = write_project(tmp_path)
    export.write_text(export.read_text().replace("record_id", "case", 1))
    how: Any = {"dictionary": dictionary, "repeating": FORMS}
    with pytest.raises(InputError, match="lacks record_id, the record ID of the dictionary"):
        draft_any(header=export, **how)
    export.write_text("record_id,sex\n1,2\n")
    for header in (export, tmp_path):
        with pytest.raises(InputError, match="--repeating is for the export of a REDCap"):
            draft_any(header=header, **how)
    assert "fields:" in draft_any(header=export, dictionary=dictionary).text


def completed(text: str, patients: int) -> Any:
    """The answers of a person to a draft of the project."""
    document = document_of(text)
    number = {"value": patients, "basis": BASIS}
    for table in document["resources"]:
        extra = table["dpsynth"]
        extra["dialect"]["decimal"] = ","
        for key, answer in (("max_rows", number | {"value": 4}), ("origin", "enrolled")):
            if key in extra:
                extra[key] = answer
        for field in table["schema"]["fields"]:
            said = field.get("dpsynth", {})
            if "bounds_basis" in said:
                said["bounds_basis"] = BASIS
            if said.get("ucum") == "TODO":
                del said["ucum"]
            if field["name"] == "pregnant":
                said["present_if"] = "sex == 2"
            if field["name"] == "med_dose":
                said["present_if"] = "med_name != 3"
    package = document["dpsynth"]
    del package["draft"]
    package["population"] = number
    package["window"] = {"first": 0, "last": 730, "basis": BASIS}
    return document


def test_from_the_export_to_synthetic_tables(tmp_path: Path, command_line: Cli) -> None:
    """The command drafts, checks and fits; REDCap's own columns are in no synthetic table."""
    patients = 200
    write_project(tmp_path, patients, title="Registry of 2024\n\n")
    ended = command_line(
        *("schema", "draft", "--from", "dictionary.csv", "--from-header", "export.csv"),
        *("--repeating", "medications", "--repeating", "labs", "-o", "mine.package.yaml"),
    )
    assert ended.code == 0, ended.err
    document = completed((tmp_path / "mine.package.yaml").read_text(), patients)
    assert own(document, "labs")["dialect"] == {"delimiter": ";", "header_row": 3, "decimal": ","}
    (tmp_path / "p.yaml").write_text(yaml_text(document))
    ended = command_line("schema", "check", "p.yaml", "export.csv")
    assert ended.code == 0, ended.err
    schema = LinkedSchema.load(tmp_path / "p.yaml")
    kinds = {one.kind for one in inspection.check(tmp_path / "export.csv", schema).findings}
    assert not kinds & {"unreadable", "unknown", "of-no-table", "strangers", "broken"}
    how = ("--epsilon", "8", "--delta", "1e-5", "--dataset", "registry")
    ended = command_line("fit", "p.yaml", "export.csv", *how, "-o", "run")
    assert ended.code == 0 and "model latent" in ended.out, ended.err
    made = dpsynth.sample(dpsynth.Run.load(tmp_path / "run"), seed=1)
    assert [*made] == [*schema.table_names]
    assert not any("redcap_repeat_instrument" in frame for frame in made.values())
    assert {"med_name", "med_dose", "medications_complete"} < {*made["medications"]}
    assert {"crp", "fasting", "labs_complete"} < {*made["labs"]}
    assert made["patients"]["weight"].between(30, 250).all()
    assert made["patients"].loc[made["patients"]["sex"] == 1, "pregnant"].isna().all()
    assert made["medications"].loc[made["medications"]["med_name"] == 3, "med_dose"].isna().all()


def test_python_takes_the_export_as_a_frame(tmp_path: Path) -> None:
    """A frame of text, and its mistakes, are those of the file."""
    document = completed(drafted(tmp_path).text, 60)
    schema = LinkedSchema.from_dict(document)
    frame = pd.DataFrame(records(60), dtype=object)
    found = inspection.check(frame, schema)
    assert found.read["labs"]["rows"] == sum("crp" in row for row in records(60))
    numbered = frame.assign(**{INSTRUMENT: range(len(frame))})
    with pytest.raises(TableError, match=INSTRUMENT):
        inspection.check(numbered, schema)
    train, _ = dpsynth.split(frame, schema, seed=1)
    assert inspection.check(train, schema).read["patients"]["rows"] == len(train["patients"])
