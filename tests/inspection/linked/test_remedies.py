"""What a check proposes for linked tables: only what a resource, or a test, can declare."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.errors import SchemaError
from dpsynth.inspection import CheckResult, Finding, together
from dpsynth.schema import LinkedSchema

from ...support.clean_ward import tables, ward
from ...support.command_line import Cli


def with_hdl(cells: list[str], rows: int = 40) -> CheckResult:
    """Check the ward with other results of one test."""
    broken = tables()
    places = broken["labs"].index[broken["labs"]["test"] == "hdl"][:rows]
    broken["labs"].loc[places, "value"] = [cells[n % len(cells)] for n in range(len(places))]
    return inspection.check(broken, LinkedSchema.from_dict(ward()))


def words_of(found: CheckResult, place: str) -> str:
    return "\n".join(line for one in found.findings if one.place == place for line in one.lines())


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["<5"], "a test cannot declare limits of detection"),
        ([">150"], "a test cannot declare limits of detection"),
        (["k.A."], 'add the word to the test: missingValues: ["", "WORD"]'),
        (["45,5"], "set in resource labs: dpsynth: {dialect: {decimal"),
        (["45 mg"], "declare the unit of the test: ucum"),
    ],
)
def test_a_test_gets_remedies_that_it_can_have(cells: list[str], words: str) -> None:
    text = words_of(with_hdl(cells, 180), "labs.hdl")
    assert words in text
    for key in ("censored", "unit_from", "end of the schema", "the column: dpsynth"):
        assert key not in text


def test_results_in_another_unit_need_a_conversion() -> None:
    """1 mmol/L is 38.67 mg/dL: below the bounds, and back within them after the conversion."""
    text = words_of(with_hdl(["1.2", "1.4", "1.9"]), "labs.hdl")
    assert "a test has one unit: convert results of another one in the source" in text
    assert "unit_from" not in text


def test_results_in_words_need_another_type() -> None:
    text = words_of(with_hdl(["schwach reaktiv", "stark reaktiv"], 180), "labs.hdl")
    assert "if its results are words and not numbers" in text and "reaktiv" not in text
    few = words_of(with_hdl(["schwach reaktiv"], 20), "labs.hdl")
    assert few and "if its results are words" not in few


def test_other_categories_of_a_test_are_kept_by_a_key_of_the_test() -> None:
    broken, document = tables(), ward()
    labs = document["resources"][1]
    next(f for f in labs["schema"]["fields"] if f["name"] == "value")["type"] = "string"
    tests = labs["dpsynth"]["series"]["tests"]
    tests["hdl"]["type"] = "number"
    tests["smoke"] = {"enum": ["yes", "no"], "bounds_basis": "questionnaire"}
    text = words_of(inspection.check(broken, LinkedSchema.from_dict(document)), "labs.smoke")
    assert "to keep the rest, add to the test: on_unknown: other" in text and "{on_unk" not in text


def test_the_decimal_sign_of_a_wide_table_is_declared_in_its_resource() -> None:
    broken = tables()
    broken["visits"]["sbp"] = broken["visits"]["sbp"] + ",5"
    document = ward()
    next(f for f in document["resources"][3]["schema"]["fields"] if f["name"] == "sbp")["type"] = (
        "number"
    )
    found = inspection.check(broken, LinkedSchema.from_dict(document))
    assert "set in resource visits: dpsynth: {dialect: {decimal" in words_of(found, "visits.sbp")


@pytest.mark.parametrize("key", ["censored", "unit_from", "values", "missing", "role"])
def test_a_schema_says_what_to_do_in_place_of_a_key_that_a_test_lacks(key: str) -> None:
    document: Any = copy.deepcopy(ward())
    document["resources"][1]["dpsynth"]["series"]["tests"]["hdl"][key] = {"low": 5}
    with pytest.raises(SchemaError) as caught:
        LinkedSchema.from_dict(document)
    [problem] = caught.value.problems
    assert problem.place == f"resources[1].dpsynth.series.tests.hdl.{key}"
    assert "a test of a long table cannot declare it: " in problem.message


def many_tests(number: int, cell: str) -> tuple[dict[str, pd.DataFrame], LinkedSchema]:
    """A ward with many tests, each with some cells of a kind."""
    document, made, rng = ward(), tables(), np.random.default_rng(1)
    tests = document["resources"][1]["dpsynth"]["series"]["tests"]
    rows = []
    for test in range(number):
        tests[f"t{test:02}"] = {"minimum": 0, "maximum": 99, "step": 1, "bounds_basis": "x"}
        for patient in range(60):
            value = cell if patient < 6 + test % 3 else str(rng.integers(99))
            rows.append([f"00{100 + patient}", "9", f"t{test:02}", value, "no"])
    extra = pd.DataFrame(rows, columns=made["labs"].columns, dtype=object)
    made["labs"] = pd.concat([made["labs"], extra], ignore_index=True)
    return made, LinkedSchema.from_dict(document)


def test_findings_of_many_tests_that_say_the_same_are_shown_as_one() -> None:
    made, schema = many_tests(30, "<5")
    found = inspection.check(made, schema)
    assert len([one for one in found.findings if one.kind == "unreadable"]) == 30
    [one] = [one for one in together(found.findings, schema) if one.kind == "unreadable"]
    assert one.place == "labs" and one.count == sum(6 + n % 3 for n in range(30))
    assert "210 cells of 30 tests are unreadable, 10.0 % to 13.3 % of those of a test" in (
        one.message
    )
    assert "t00, t01" in one.message and "and 10 more" in one.message
    assert one.causes[0].cells == 210


def test_two_tests_and_other_columns_stay_apart() -> None:
    made, schema = many_tests(2, "<5")
    found = inspection.check(made, schema)
    assert together(found.findings, schema) == list(found.findings)
    wide = [Finding(f"visits.{n}", "unreadable", found.findings[0].level, "x") for n in "abcd"]
    assert together(wide, schema) == wide


def test_one_cell_is_in_the_singular() -> None:
    assert "1 cell holds a limit of detection" in words_of(with_hdl(["<5"], 1), "labs.hdl")


def test_a_run_that_is_not_there_is_no_schema(command_line: Cli) -> None:
    ended = command_line("evaluate", "run/", "x.csv", "--synthetic", "y.csv", "-o", "internal")
    assert ended.code == 2 and "run/ is not a run folder: it does not exist" in ended.err
