"""A made-up REDCap project with repeating instruments: its dictionary, its export, a package of it.

The export is one file: a row with an empty ``redcap_repeat_instrument`` has the fields of a record,
and a row with the name of a form has the fields of this form.
"""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

DICTIONARY = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",\
"Choices, Calculations, OR Slider Labels","Field Note",\
"Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",\
Identifier?,"Branching Logic (Show field only if...)","Required Field?"
record_id,demographics,,text,"Record ID",,,,,,,,
sex,demographics,,radio,Sex,"1, male | 2, female",,,,,,,y
pregnant,demographics,,yesno,Pregnant,,,,,,,"[sex] = '2'",
weight,demographics,,text,"Weight (kg)",,,number_1dp_comma_decimal,"30","250",,,
enrolled,demographics,,text,"Enrolled on",,,date_ymd,2020-01-01,2020-12-31,,,
med_name,medications,,dropdown,Medication,"1, aspirin | 2, metformin | 3, other",,,,,,,
med_dose,medications,,text,"Dose (mg)",,,integer,1,500,,"[med_name] <> '3'",
med_start,medications,,text,"Started on",,,date_ymd,2020-01-01,2022-12-31,,,
crp,labs,,text,"CRP (mg/L)",,,number_1dp_comma_decimal,0,500,,"[sex] = '1'",
fasting,labs,,yesno,Fasting,,,,,,,,
"""
PLACES = ("record_id", "redcap_repeat_instrument", "redcap_repeat_instance")
FORMS = {
    "demographics": ("sex", "pregnant", "weight", "enrolled"),
    "medications": ("med_name", "med_dose", "med_start"),
    "labs": ("crp", "fasting"),
}
HEADER = (*PLACES, *(name for form, own in FORMS.items() for name in (*own, f"{form}_complete")))
BASIS = "made for this test"


def records(patients: int, seed: int = 1) -> list[dict[str, str]]:
    """The rows of an export, one dictionary each; no cell of a patient depends on another."""
    rows: list[dict[str, str]] = []
    for number in range(1, patients + 1):
        draw = random.Random(f"{seed} {number}")
        key = {"record_id": str(number)}
        sex = draw.choice("12")
        rows.append(
            key
            | {
                "sex": sex,
                "pregnant": draw.choice("01") if sex == "2" else "",
                "weight": f"{draw.gauss(75, 12):.1f}".replace(".", ","),
                "enrolled": f"2020-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
                "demographics_complete": "2",
            }
        )
        for instance in range(1, draw.randint(0, 3) + 1):
            name = draw.choice("123")
            rows.append(
                key
                | dict(zip(PLACES[1:], ("medications", str(instance)), strict=True))
                | {
                    "med_name": name,
                    "med_dose": "" if name == "3" else str(5 * draw.randint(1, 40)),
                    "med_start": f"2021-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
                    "medications_complete": draw.choice("02"),
                }
            )
        for instance in range(1, draw.randint(0, 4) + 1):
            rows.append(
                key
                | dict(zip(PLACES[1:], ("labs", str(instance)), strict=True))
                | {
                    "crp": f"{draw.expovariate(0.1):.1f}".replace(".", ","),
                    "fasting": draw.choice("01"),
                    "labs_complete": "2",
                }
            )
    return rows


def export_text(rows: list[dict[str, str]], header: tuple[str, ...] = HEADER) -> str:
    """Write an export as REDCap does, with semicolons."""
    text = io.StringIO()
    writer = csv.DictWriter(text, header, delimiter=";", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_project(folder: Path, patients: int = 60, title: str = "") -> tuple[Path, Path]:
    """Write a dictionary and an export into a folder."""
    dictionary, export = folder / "dictionary.csv", folder / "export.csv"
    dictionary.write_text(DICTIONARY)
    export.write_text(title + export_text(records(patients)))
    return dictionary, export


def _bounded(name: str, type_: str, low: float | str, high: float | str, **own: Any) -> Any:
    bounds = {"minimum": low, "maximum": high}
    return {
        "name": name,
        "type": type_,
        "constraints": bounds,
        "dpsynth": own | {"bounds_basis": BASIS},
    }


def _listed(name: str, *codes: int) -> Any:
    own = {"bounds_basis": BASIS}
    return {"name": name, "type": "integer", "constraints": {"enum": [*codes]}, "dpsynth": own}


def _truth(name: str, **own: Any) -> Any:
    field = {"name": name, "type": "boolean", "trueValues": ["1"], "falseValues": ["0"]}
    return field | {"dpsynth": own}


def package(patients: int = 60, **dialect: Any) -> dict[str, Any]:
    """The document of a package that reads the export."""
    place: list[Any] = [{"name": name, "type": "string"} for name in PLACES[:2]]
    key = {"resource": "patients", "fields": ["record_id"]}
    rows = {"foreignKeys": [{"fields": ["record_id"], "reference": key}]}
    written = {"dialect": {"delimiter": ";", "decimal": ","} | dialect}
    number = {"value": 4, "basis": BASIS}

    def table(name: str, of: dict[str, Any], fields: list[Any], form: str, **own: Any) -> Any:
        where = {"redcap_repeat_instrument": form}
        extra = {"rows_where": where} | own | written
        return {"name": name, "schema": of | {"fields": place + fields}, "dpsynth": extra}

    return {
        "name": "registry",
        "resources": [
            table(
                "patients",
                {"primaryKey": "record_id"},
                [
                    _listed("sex", 1, 2),
                    _truth("pregnant", present_if="sex == 2"),
                    _bounded("weight", "number", 30, 250, step=0.1),
                    _bounded("enrolled", "date", "2020-01-01", "2020-12-31"),
                    _listed("demographics_complete", 0, 1, 2),
                ],
                "",
            ),
            table(
                "medications",
                rows,
                [
                    _listed("med_name", 1, 2, 3),
                    _bounded("med_dose", "integer", 1, 500, present_if="med_name != 3"),
                    {"name": "med_start", "type": "date"},
                    _listed("medications_complete", 0, 1, 2),
                ],
                "medications",
                time="med_start",
                origin="enrolled",
                max_rows=number,
            ),
            table(
                "labs",
                rows,
                [
                    {"name": "redcap_repeat_instance", "type": "integer"},
                    _bounded("crp", "number", 0, 500, step=0.1),
                    _truth("fasting"),
                ],
                "labs",
                order="redcap_repeat_instance",
                max_rows=number,
            ),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "person": {"name": "patient"},
            "population": {"value": patients, "basis": BASIS},
            "window": {"first": 0, "last": 730, "basis": BASIS},
        },
    }
