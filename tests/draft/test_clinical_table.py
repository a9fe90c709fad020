"""The shipped table of clinical variables: codes, ranges and names are consistent."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from dpsynth.draft import find, variables
from dpsynth.draft.clinical import LANGUAGES, Variable, _rows
from dpsynth.draft.names import spellings
from dpsynth.draft.units import is_unit
from dpsynth.schema import Schema

from ..support.schema_fields import schema_field


def luhn(digits: str) -> int:
    """Compute the check digit of a LOINC code (Luhn)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return -total % 10


def test_loinc_codes_have_the_right_check_digit() -> None:
    assert luhn("4548") == 4 and luhn("4549") != 4  # a slip is seen
    for row in _rows():
        if row["loinc"]:
            number, _, check = row["loinc"].partition("-")
            assert luhn(number) == int(check), row["variable"]


def test_a_name_means_one_variable() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for row in _rows():
        for language in LANGUAGES:
            for name in row[language].split("|"):
                for spelling in spellings(name) - {""}:
                    meanings[spelling].add(row["variable"])
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_it_is_of_the_promised_size() -> None:
    assert len(variables()) >= 150
    named = [row for row in _rows() if row["en"]]
    by_stems = [one for one in variables() if one.type in ("key", "drop")]
    assert len(named) + len(by_stems) == len(variables())  # in the first row of each
    for language in LANGUAGES:
        share = 0.9 if language in ("de", "fr", "es") else 0.5
        assert sum(bool(row[language]) for row in named) >= share * len(named), language


def test_the_guide_counts_it_as_it_is() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/schema.md").read_text().split())
    ranges = sum(one.minimum is not None for known in variables() for one in known.ranges)
    codes = {row["loinc"] for row in _rows()} - {""}
    sentence = f"has {len(variables())} variables with {ranges} ranges in UCUM units, and "
    assert f"{sentence}{len(codes)} LOINC codes" in page


@pytest.mark.parametrize("variable", variables(), ids=lambda one: one.name)
def test_ranges_are_bounds_that_a_schema_takes(variable: Variable) -> None:
    units = [one.ucum for one in variable.ranges]
    assert len(set(units)) == len(units)
    for one in variable.ranges:
        if one.minimum is None:
            continue
        assert one.maximum is not None and one.basis and one.step is not None
        assert one.minimum < one.maximum
        extra = {"bounds_basis": "the table", "ucum": one.ucum or None}
        if one.type == "number":
            extra["step"] = one.step  # type: ignore[assignment]
        field = schema_field("x", one.type, extra, minimum=one.minimum, maximum=one.maximum)
        size = {"value": 100, "basis": "report"}
        table = {"version": 1, "population": size, "rows": size}
        assert Schema.from_dict({"fields": [field], "dpsynth": table}).column("x").maximum
        assert not one.ucum or is_unit(one.ucum, one.ucum)


@pytest.mark.parametrize(
    ("name", "variable", "unit"),
    [
        ("age", "age", None),
        ("ALTER", "age", None),
        ("âge", "age", None),
        ("Edad", "age", None),
        ("systolisch", "systolic blood pressure", None),
        ("RR_sys", "systolic blood pressure", None),
        ("créatinine", "creatinine", None),
        ("Creatinina", "creatinine", None),
        ("kreatinin_umol_l", "creatinine", "umol/L"),
        ("hba1c_%", "haemoglobin A1c", "%"),
        ("HbA1c [mmol/mol]", "haemoglobin A1c", "mmol/mol"),
        ("Größe", "body height", None),
        ("grosse_cm", "body height", "cm"),
        ("gewichtkg", "body weight", "kg"),
        ("leukos_G_l", "leukocytes", "10*9/L"),
        ("lab_crp_max", "C-reactive protein", None),
        ("patNr", "patient key", None),
        ("fallnummer", "encounter key", None),
    ],
)
def test_names_are_found(name: str, variable: str, unit: str | None) -> None:
    match = find(name)
    assert match is not None and (match.variable.name, match.unit) == (variable, unit)


@pytest.mark.parametrize("name", ["v17", "crp_date", "lab_name", "", "%", "creatinin_index", "m"])
def test_other_names_are_not(name: str) -> None:
    assert find(name) is None


def test_a_range_belongs_to_its_unit() -> None:
    glucose = find("glucose")
    assert glucose is not None
    milligrams, millimoles = (
        glucose.variable.range_in("mg/dl"),
        glucose.variable.range_in("mmol/l"),
    )
    assert milligrams is not None and millimoles is not None
    assert milligrams.maximum == 2000 and millimoles.maximum == 111
    assert glucose.variable.range_in(None) is None  # never guessed
    assert glucose.variable.range_in("g/l") is None
