"""A check counts what contradicts a declaration of histories, and shows no cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.inspection import Finding, Level, check_accepted
from dpsynth.schema import LinkedSchema

from ...support.declared_tables import PATIENTS, declared, tables, vitals

Tables = dict[str, pd.DataFrame]
SCHEMA = LinkedSchema.from_dict(declared())


def outside(made: Tables) -> None:
    made["drugs"]["day"] = (made["drugs"]["day"].astype(int) + 70).astype(str)


def a_few_outside(made: Tables) -> None:
    made["drugs"].loc[:1, "day"] = "90"


def off_schedule(made: Tables) -> None:
    made["visits"].loc[made["visits"].index[:30], "date"] = "2004-04-05"


def missed(made: Tables) -> None:
    made["visits"] = made["visits"].groupby("id").head(1)


def not_implied(made: Tables) -> None:
    made["events"] = made["events"][made["events"]["event"] != "chd"]


def back(made: Tables) -> None:
    made["visits"]["smoked"] = ["true", "false"] * (len(made["visits"]) // 2)


CASES: dict[str, tuple[Callable[[Tables], None], str, Level, str]] = {
    "outside": (
        outside,
        "drugs.day:outside",
        Level.SERIOUS,
        "lie on no day of a row of stays of their patient",
    ),
    "a few outside": (
        a_few_outside,
        "drugs.day:outside",
        Level.WARNING,
        "(2 of 80 rows) lie on no day of a row of stays of their patient",
    ),
    "off the schedule": (
        off_schedule,
        "visits.date:off-schedule",
        Level.SERIOUS,
        "lie more than 20 days off each due day of the schedule",
    ),
    "missed": (
        missed,
        "visits:not-exactly",
        Level.SERIOUS,
        "(40 of 40 patients) do not have one row for each due day up to the end of follow-up",
    ),
    "not implied": (
        not_implied,
        "events:not-implied",
        Level.SERIOUS,
        "(14 of 14 patients) with mi do not have chd on that day or before",
    ),
    "back": (
        back,
        "visits.smoked:falls",
        Level.SERIOUS,
        "with several values have one that is lower than one before",
    ),
}


KINDS = {key.rpartition(":")[2] for _, key, _, _ in CASES.values()} | {"few-last"}


def test_tables_that_keep_all_are_clean() -> None:
    assert inspection.check(tables(), SCHEMA).findings == ()


@pytest.mark.parametrize("case", CASES)
def test_what_contradicts_a_declaration_is_counted(case: str) -> None:
    change, key, level, words = CASES[case]
    made = tables()
    change(made)
    found = inspection.check(made, SCHEMA)
    [finding] = [one for one in found.findings if one.key == key]
    assert finding.level is level and words in finding.message
    assert "dpsynth never draws it" in finding.remedy
    text = json.dumps(found.to_dict()) + "".join(finding.lines())
    assert "p0" not in text and "2004-04-05" not in text
    check_accepted([key], SCHEMA)


def test_an_invalid_length_decides_nothing_after_its_start() -> None:
    made = tables()
    outside(made)
    made["stays"]["los"] = "unknown"
    keys = [one.key for one in inspection.check(made, SCHEMA).findings]
    assert "stays.los:unreadable" in keys and "drugs.day:outside" not in keys


def test_the_last_day_is_for_many() -> None:
    def few(followed: str, patients: int) -> list[Finding]:
        made = tables()
        made["patients"].loc[: patients - 1, "followed"] = followed
        found = inspection.check(made, SCHEMA).findings
        return [one for one in found if one.kind == "few-last"]

    [finding] = few("999", PATIENTS)
    assert finding.key == "patients.followed:few-last" and finding.level is Level.WARNING
    assert f"({PATIENTS} of {PATIENTS} patients) are followed to a day before" in finding.message
    assert few("999", PATIENTS - 1) == [] and few("1000", PATIENTS) == []
    check_accepted([finding.key], SCHEMA)


def without(key: str) -> LinkedSchema:
    """The schema without a key, wherever it stands."""
    document = declared()
    document["dpsynth"].pop(key, None)
    for resource in document["resources"]:
        own = resource.get("dpsynth", {})
        own.pop(key, None)
        if key == "rows" and "schedule" in own:
            own["max_rows"] = {"value": 3, "basis": "protocol"}
        for field in resource["schema"]["fields"]:
            field.get("dpsynth", {}).pop(key, None)
    return LinkedSchema.from_dict(document)


@pytest.mark.parametrize("case", CASES)
def test_the_remedy_mends_it(case: str) -> None:
    change, key, _, _ = CASES[case]
    made = tables()
    change(made)
    [finding] = [one for one in inspection.check(made, SCHEMA).findings if one.key == key]
    [named] = re.findall(r"remove (\w+) from the schema", finding.remedy)
    assert key not in [one.key for one in inspection.check(made, without(named)).findings]


def test_a_grid_that_patients_fill_is_clean() -> None:
    keys = [f"p{number}" for number in range(PATIENTS)]
    made = {
        "patients": pd.DataFrame({"id": keys, "age": "50"}, dtype=object),
        "vitals": pd.DataFrame(
            [(key, str(hour), "70") for key in keys for hour in range(24)],
            columns=["id", "hour", "rate"],
            dtype=object,
        ),
    }
    schema = LinkedSchema.from_dict(vitals())
    assert inspection.check(made, schema).findings == ()
    made["vitals"] = made["vitals"][made["vitals"]["hour"] != "7"]
    [finding] = inspection.check(made, schema).findings
    assert finding.key == "vitals:not-exactly"
    assert "do not have one row for each due day" in finding.message


def test_a_schema_without_declarations_is_checked_as_before() -> None:
    document = declared()
    for resource in document["resources"]:
        for key in ("inside", "schedule", "schedule_within", "rows"):
            resource.get("dpsynth", {}).pop(key, None)
        for field in resource["schema"]["fields"]:
            field.get("dpsynth", {}).pop("cumulative", None)
    document["resources"][5]["dpsynth"]["max_rows"] = {"value": 3, "basis": "protocol"}
    for key in ("implies", "last_day"):
        del document["dpsynth"][key]
    made = tables()
    for change in (outside, not_implied, back):
        change(made)
    assert inspection.check(made, LinkedSchema.from_dict(document)).findings == ()
