"""A draft asks what histories could keep by declaration: by names alone, in comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_any

HEADERS = {
    "patients.csv": "patient_id,sex,birth_date",
    "stays.csv": "patient_id,encounter_id,admission_date,discharge_date,ward",
    "drugs.csv": "patient_id,encounter_id,given_at,pump,total_dose",
    "vitals.csv": "patient_id,hour,pulse",
    "conditions.csv": "patient_id,date,condition",
    "visits.csv": "patient_id,visit_date,timepoint,ever_smoked",
    "labs.csv": "patient_id,day,test,value",
}
ROW = "Quokka-4711,1,2,3,4"
HOURS = "do weekdays or hours of rows matter? then in the field given_at: "
WEEKDAYS = "do weekdays or seasons of rows matter? then in the field "
INSIDE = "inside: {table: stays, length: discharge_date}"
STAYS = f"does each row lie within a row of stays? then: {INSIDE}"
QUESTIONS = {
    "patients": [],
    "stays": [f"{WEEKDAYS}admission_date: dpsynth: {{calendar: [weekday, month]}}"],
    "drugs": [
        f"{HOURS}dpsynth: {{calendar: [weekday, hour]}}",
        "does total_dose never fall from row to row of a patient?",
    ],
    "vitals": ["does each patient have a row for each hour? then: time: hour, schedule: {from: 0"],
    "conditions": [],
    "visits": [
        f"{WEEKDAYS}visit_date: dpsynth: {{calendar: [weekday, month]}}",
        "are rows due on days of a protocol? then: schedule: [0, 28, 84], and schedule_within: 7",
        STAYS,
        "does ever_smoked never fall from row to row of a patient? then in its field: dpsynth: {cu",
    ],
    "labs": [STAYS],
}


def draft(folder: Path, row: str = ROW) -> str:
    folder.mkdir()
    for name, header in HEADERS.items():
        (folder / name).write_text(f"{header}\n{row}\n")
    return draft_any(header=folder).text


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return draft(tmp_path_factory.mktemp("drafts") / "ward")


@pytest.mark.parametrize("table", QUESTIONS)
def test_a_table_is_asked_what_its_names_suggest(text: str, table: str) -> None:
    part = text.split(f"- name: {table}\n")[1].split("\n  - name: ")[0].split("\ndpsynth:\n")[0]
    questions = [line.strip() for line in part.splitlines() if "? then" in line]
    expected = QUESTIONS[table]
    assert len(questions) == len(expected)
    for line, words in zip(questions, expected, strict=True):
        assert line.startswith(f"# {words}")


def test_the_package_is_asked_too(text: str) -> None:
    foot = text.split("\ndpsynth:\n")[1]
    assert "# does one event imply another? then: implies: [{table: conditions, event: ONE" in foot
    assert (
        "# are most patients followed to the last day of the window? then, with end: last" in foot
    )


def test_an_origin_may_be_one_date_where_patients_have_a_birth_alone(text: str) -> None:
    assert text.count("where there is none, one date for all patients: origin: YYYY-MM-DD") == 4
    document = parse_yaml(text.encode(), "draft")
    own = {one["name"]: one.get("dpsynth", {}) for one in document["resources"]}
    assert own["visits"]["origin"] == "TODO"


def test_rows_that_name_their_stay_lie_in_it(text: str) -> None:
    assert text.count(f"{INSIDE}  # proposal: each row lies on a day of a stay") == 1
    document = parse_yaml(text.encode(), "draft")
    own = {one["name"]: one.get("dpsynth", {}) for one in document["resources"]}
    assert [name for name, one in own.items() if "inside" in one] == ["drugs"]


def test_no_row_is_read(text: str, tmp_path: Path) -> None:
    assert draft(tmp_path / "ward", row="Numbat-1,9,9,9,9") == text
