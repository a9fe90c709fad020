"""What a check of linked tables finds: each flaw is named, with its place, and no cell is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.errors import InputError, NoRowsError
from dpsynth.inspection import CheckResult, check_accepted
from dpsynth.inspection.linked_findings import LINKED_KINDS
from dpsynth.schema import LinkedSchema
from dpsynth.tables import OptOut

from ...support.clean_ward import tables, ward
from .test_declarations import KINDS

Tables = dict[str, pd.DataFrame]
SCHEMA = LinkedSchema.from_dict(ward())
CELL = "Quokka-4711"


def check(broken: Tables, schema: LinkedSchema = SCHEMA, **how: Any) -> CheckResult:
    return inspection.check(broken, schema, **how)


def shown(found: CheckResult) -> str:
    lines = [line for one in found.findings for line in one.lines()]
    return "\n".join(lines) + json.dumps(found.to_dict()) + repr(found)


def put(broken: Tables, table: str, column: str, cell: str, rows: int) -> None:
    broken[table].loc[broken[table].index[:rows], column] = cell


def more(broken: Tables, table: str, rows: list[list[str]]) -> None:
    extra = pd.DataFrame(rows, columns=broken[table].columns, dtype=object)
    broken[table] = pd.concat([broken[table], extra], ignore_index=True)


def strangers(broken: Tables) -> None:
    put(broken, "labs", "id", CELL, 20)


def all_strangers(broken: Tables) -> None:
    broken["labs"]["id"] = [f"{CELL}{n}" for n in range(len(broken["labs"]))]


def lost_zeros(broken: Tables) -> None:
    broken["visits"]["id"] = broken["visits"]["id"].str.lstrip("0")


def lost_zeros_as_floats(broken: Tables) -> None:
    broken["visits"]["id"] = broken["visits"]["id"].str.lstrip("0") + ".0"


def unknown_keys(broken: Tables) -> None:
    put(broken, "visits", "id", "unbekannt", 40)


def keyless(broken: Tables) -> None:
    put(broken, "labs", "id", "", 40)


def twice(broken: Tables) -> None:
    more(broken, "patients", [broken["patients"].iloc[0].tolist()])


def two_under_one_key(broken: Tables) -> None:
    put(broken, "patients", "id", "a1", 1)
    put(broken, "labs", "id", "A1", 4)
    put(broken, "events", "id", "a1 ", 1)
    for name in ("visits", "orders"):
        put(broken, name, "id", "a1", 3)


def other_case(broken: Tables) -> None:
    broken["patients"]["id"] = "p" + broken["patients"]["id"]
    for name in ("labs", "events", "visits", "orders"):
        broken[name]["id"] = "P" + broken[name]["id"]


def no_origin(broken: Tables) -> None:
    put(broken, "patients", "index", "", 10)


def early(broken: Tables) -> None:
    put(broken, "labs", "days", "-3651", 40)


def late(broken: Tables) -> None:
    put(broken, "labs", "days", "2001", 40)


def after_the_window(broken: Tables) -> None:
    put(broken, "labs", "days", "3655", 40)


def no_day(broken: Tables) -> None:
    put(broken, "labs", "days", "", 40)


def bad_dates(broken: Tables) -> None:
    dates = pd.to_datetime(broken["visits"]["date"])
    broken["visits"]["date"] = dates.dt.strftime("%d.%m.%Y").astype(object)


def many_rows(broken: Tables) -> None:
    keys = broken["patients"]["id"][:40]
    more(broken, "labs", [[key, str(n), "hdl", "50", ""] for key in keys for n in range(9)])


def crowd(broken: Tables) -> None:
    key = broken["patients"]["id"][0]
    more(broken, "orders", [[key, str(n), "0", "x"] for n in range(10_000)])


def other_tests(broken: Tables) -> None:
    put(broken, "labs", "test", CELL, 30)


def other_events(broken: Tables) -> None:
    put(broken, "events", "event", CELL, 30)


def no_test(broken: Tables) -> None:
    put(broken, "labs", "test", "", 30)


def again(broken: Tables) -> None:
    broken["events"] = pd.concat([broken["events"]] * 2, ignore_index=True)


def long_gaps(broken: Tables) -> None:
    last = broken["visits"].index[broken["visits"]["visit"] == "2"][:20]
    broken["visits"].loc[last, "date"] = "2006-12-01"


def unlinked(broken: Tables) -> None:
    put(broken, "orders", "visit", "77", 20)


def clipped_test(broken: Tables) -> None:
    put(broken, "labs", "value", "201", 40)


def bad_value(broken: Tables) -> None:
    put(broken, "labs", "value", CELL, 40)


def broken_rule(broken: Tables) -> None:
    broken["visits"].loc[broken["visits"]["visit"] == "0", "date"] = "2003-12-01"


def nobody_has_rows(broken: Tables) -> None:
    broken["orders"] = broken["orders"][:0]


CASES: list[tuple[Callable[[Tables], None], str, str, str]] = [
    (strangers, "labs:strangers", "serious", "have a key that no patient of table patients has"),
    (all_strangers, "labs:strangers", "serious", "a fit stops, because the keys do not fit"),
    (lost_zeros, "visits:strangers", "serious", "dpsynth: {key: {leading_zeros: false}}"),
    (lost_zeros_as_floats, "visits:strangers", "serious", "let the source write keys as text"),
    (unknown_keys, "visits:strangers", "serious", "hold a word for a missing key"),
    (keyless, "labs:keyless", "serious", "have no key; a fit leaves them out"),
    (twice, "patients:twice", "serious", "(1 of 60 keys) stand in several rows"),
    (other_case, "labs:strangers", "serious", "dpsynth: {key: {case: true}}"),
    (no_origin, "patients.index:no-origin", "serious", "(10 of 60 patients) have no origin"),
    (early, "labs.days:early", "serious", "lie before the window, day -3,650; a fit moves them"),
    (late, "labs.days:late", "serious", "lie after the end of their patient's follow-up (end), 0"),
    (after_the_window, "labs.days:late", "serious", "a row after death or after the last contact"),
    (no_day, "labs.days:timeless", "serious", "(40 of 240 rows) have no day; a fit leaves these"),
    (bad_dates, "visits.date:unreadable", "serious", "%d.%m.%Y"),
    (many_rows, "labs:many-rows", "serious", "(40 of 60 patients) have more than 8 rows of one"),
    (crowd, "orders:crowd", "warning", "the largest number of rows is between 10,000 and 99,999"),
    (other_tests, "labs.test:unknown", "note", "(30 of 240 rows) name a test that is not declared"),
    (other_events, "events.event:unknown", "warning", "declare each event that you need in"),
    (no_test, "labs.test:absent", "serious", "(30 of 240 rows) name no test; a fit leaves"),
    (again, "events:again", "serious", "(60 of 60 events) of a patient stand in several rows"),
    (long_gaps, "visits.date:long-gap", "serious", "are longer than 400 days"),
    (unlinked, "orders.id, visit:unlinked", "warning", "point to a row that table visits does not"),
    (clipped_test, "labs.hdl:clipped", "serious", "are outside the bounds"),
    (bad_value, "labs.hdl:unreadable", "serious", "are unreadable"),
    (broken_rule, "each(visits).date >= patients.index:broken", "serious", "of 60 patients) break"),
    (nobody_has_rows, "orders:no-rows", "warning", "(60 of 60 patients) have no row in this table"),
    (
        nobody_has_rows,
        "orders:no-rows",
        "warning",
        "that nobody fills, leave it out of the schema",
    ),
]


def test_tables_without_a_flaw_have_no_finding() -> None:
    found = check(tables())
    assert found.findings == () and found.level is None and found.serious == ()
    assert set(found.cells) >= {"patients.sex", "labs.hdl", "labs.smoke", "visits.sbp"}


@pytest.mark.parametrize(("flaw", "key", "level", "words"), CASES)
def test_each_flaw_is_found(
    flaw: Callable[[Tables], None], key: str, level: str, words: str
) -> None:
    broken = tables()
    flaw(broken)
    found = check(broken)
    one = next(one for one in found.findings if one.key == key)
    assert one.level.word == level and words in "\n".join(one.lines())
    assert CELL not in shown(found)
    assert ("00100" in shown(found)) is False
    check_accepted([one.key for one in found.findings], SCHEMA)


def test_every_kind_has_a_flaw() -> None:
    known = {key.rpartition(":")[2] for _, key, _, _ in CASES}
    elsewhere = {"varying", "not-last", "of-no-table", *KINDS}
    assert set(LINKED_KINDS) - known == elsewhere


def test_a_table_that_repeats_its_patients() -> None:
    document = ward()
    document["resources"][0]["dpsynth"] = {"repeated": True}
    schema, broken = LinkedSchema.from_dict(document), tables()
    broken["patients"] = pd.concat([broken["patients"]] * 2, ignore_index=True)
    assert check(broken, schema).findings == ()
    broken["patients"].loc[60:89, "sex"] = "M"
    [one] = check(broken, schema).findings
    assert one.key == "patients:varying" and "(15 of 60 patients)" in one.message


def test_two_patients_under_one_key_of_different_tables() -> None:
    document, broken = ward(), tables()
    document["dpsynth"]["key"] = {"case": True}
    two_under_one_key(broken)
    found = check(broken, LinkedSchema.from_dict(document))
    one, unlike = sorted(found.findings, key=lambda one: one.kind == "unlike-rows")
    assert unlike.key == "patients:unlike-rows" and unlike.level.word == "warning"  # "a1" alone
    assert one.key == "patients:written-differently" and one.level.word == "warning"
    assert "1.7 % (1 of 60 keys) are written in several ways" in one.message
    assert "if they are two patients under one key" in one.remedy and "case: false" in one.remedy


def test_a_row_of_another_patient_is_no_row_of_hers() -> None:
    document = ward()
    document["resources"][4]["schema"]["foreignKeys"][1] = {
        "fields": ["visit"],
        "reference": {"resource": "visits", "fields": ["visit"]},
    }
    found = check(tables(), LinkedSchema.from_dict(document))
    assert [one.key for one in found.findings] == ["orders.visit:unlinked"]
    assert "that belongs to another patient" in found.findings[0].message


def test_keys_of_rows_are_compared_as_the_patients_are() -> None:
    document, broken = ward(), tables()
    document["dpsynth"]["key"] = {"leading_zeros": False}
    lost_zeros(broken)
    [one] = check(broken, LinkedSchema.from_dict(document)).findings
    assert one.key == "patients:written-differently"


def test_who_opted_out_is_in_no_figure() -> None:
    broken = tables()
    put(broken, "labs", "days", "-9999", 4)  # of the first patient
    put(broken, "patients", "end", "nonsense", 1)
    assert check(broken).findings != ()
    gone = OptOut.of([broken["patients"]["id"][0]], SCHEMA.patients)
    assert check(broken, opt_out=gone).findings == ()


def test_a_fit_needs_patients() -> None:
    broken = tables()
    broken["patients"] = broken["patients"][:0]
    with pytest.raises(NoRowsError):
        check(broken)


def test_values_and_keys_are_for_the_file_alone() -> None:
    broken = tables()
    strangers(broken)
    crowd(broken)
    found = check(broken)
    texts = {one.key: found.texts(one) for one in found.findings}
    assert texts["labs:strangers"] == {CELL: 20}
    assert texts["orders:crowd"] == {"00100": 10_003}
    assert CELL not in shown(found)


def test_what_can_be_accepted() -> None:
    for entry in ("lab:strangers", "labs:strangeers", "hdl:clipped", "labs.hdl"):
        with pytest.raises(InputError, match="accept"):
            check_accepted([entry], SCHEMA)


@pytest.mark.long
def test_tables_of_several_chunks_have_no_finding_either() -> None:
    clean, size = tables(), 200
    for name, frame in clean.items():
        parts = []
        for number in range(size):
            part = frame.copy()
            part["id"] = part["id"] + f"-{number}"
            parts.append(part)
        clean[name] = pd.concat(parts, ignore_index=True)
    assert [one.kind for one in check(clean).findings] == ["units"]
