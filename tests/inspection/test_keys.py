"""One patient under two keys, and many under one, in a table of its own as in linked ones.

Each remedy of a finding is applied, and the check then finds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.inspection import CheckResult
from dpsynth.inspection.keys import twin_keys
from dpsynth.schema import PrivacyUnit, Schema

from ..support.evaluated_office import call
from ..support.schema_fields import schema_field

PATIENTS = 200
SIZES = ("rows", "units")
BASIS = {"bounds_basis": "made for this test"}
Write = Callable[[int], str]


def schema_of(key: dict[str, Any] | None = None, missing: tuple[str, ...] = ("",)) -> Schema:
    number = {"value": 2 * PATIENTS, "basis": "made for this test"}
    facts = {"version": 1, "population": number, "rows": number}
    facts |= {"max_rows": {"value": 2, "basis": "made for this test"}}
    if key is not None:
        facts["key"] = key
    unit = {"name": "pid", "type": "string", "dpsynth": {"role": "unit"}}
    fields = [unit | {"missingValues": list(missing)}]
    fields.append(schema_field("age", "integer", BASIS, minimum=0, maximum=110))
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


def frame_of(*keys: str) -> pd.DataFrame:
    ages = np.random.default_rng(7).integers(18, 90, len(keys)).astype(str)
    return pd.DataFrame({"pid": keys, "age": ages}, dtype=object)


def twice(one: Write, other: Write) -> pd.DataFrame:
    return frame_of(*(write(i) for i in range(PATIENTS) for write in (one, other)))


def of_kind(found: CheckResult, kind: str) -> Any:
    return next((one for one in found.findings if one.kind == kind), None)


def plain(i: int) -> str:
    return str(i)


WRITTEN = {
    "case": (lambda i: f"P{i}", lambda i: f"p{i}", "key-case", {"case": True}),
    "zeros": (lambda i: f"{i:06}", plain, "key-zeros", {"leading_zeros": False}),
    "point": (plain, lambda i: f"{i}.0", "key-point", None),
    "comma": (plain, lambda i: f"{i},0", "key-point", None),
    "number": (lambda i: f"{i:06}", lambda i: f"{i}.0", "key-number", {"leading_zeros": False}),
    "blanks": (lambda i: f"P{i}", lambda i: f"P{i}  ", "key-blanks", {"trim": True}),
    "inner": (lambda i: f"P{i:04}", lambda i: f"P{i}", "key-inner-zeros", None),
    "wide": (plain, lambda i: f"{i}".translate({48 + k: 0xFF10 + k for k in range(10)}),
             "key-form", None),
    "several": (lambda i: f"P{i}.0", lambda i: f"p{i}", "key-several", None),
    "signs": (lambda i: f"P{i}", lambda i: f"P-{i}", "key-signs", None),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_one_patient_under_two_keys(name: str) -> None:
    one, other, cause, key = WRITTEN[name]
    table, loose = twice(one, other), {"trim": False} if name == "blanks" else None
    found = inspection.check(table, schema_of(loose))
    finding = of_kind(found, "written-differently")
    assert [each.key for each in finding.causes] == [cause]
    assert finding.count == finding.total == 2 * PATIENTS == finding.causes[0].cells
    assert finding.level.word == ("warning" if name == "signs" else "serious")
    assert "protected as two" in finding.message
    assert found.read["table"]["units"] == 2 * PATIENTS
    assert one(117) not in json.dumps(found.to_dict()) and one(117) in found.texts(finding)
    if key is not None and name != "number":
        assert str(next(iter(key))) in finding.causes[0].remedy
        mended = inspection.check(table, schema_of(key))
    else:  # "let the source write keys alike"
        assert "source" in finding.causes[0].remedy
        mended = inspection.check(twice(one, one), schema_of(key))
    assert mended.read["table"]["units"] == PATIENTS and mended.serious == ()
    now = of_kind(mended, "written-differently")
    assert now is None or (now.level.word, now.causes) == ("warning", ())  # they count as one


@pytest.mark.parametrize(
    "keys",
    [
        [f"{i}" for i in range(300)],
        [f"{i:04}" for i in range(300)],
        [f"{i}.0" for i in range(300)],
        [f"{i // 20}-{i % 20}" for i in range(300)],  # a ward and a bed: 1-11 is not 11-1
        [f"A{i}" for i in range(99)] + [f"B{i}" for i in range(99)],
        [f"{i}E{j}" for i in range(20) for j in range(20)],  # a ward, E, a number
    ],
)
def test_keys_that_are_written_alike(keys: list[str]) -> None:
    found = inspection.check(frame_of(*keys), schema_of())
    assert [one for one in found.findings if one.place == "table" and one.kind not in SIZES] == []


def test_few_are_no_serious_finding() -> None:
    keys = [f"{i:04}" for i in range(300)]
    found = inspection.check(frame_of(*keys, "7", "8"), schema_of())
    finding = of_kind(found, "written-differently")
    assert finding.level.word == "warning" and finding.count == 4


def test_declared_forms_are_not_two_keys() -> None:
    unit = PrivacyUnit("pid", 1, None, case=True)
    assert twin_keys({"1p": 1, "01p": 1}, unit, "there")[0].key == "key-zeros"
    assert twin_keys({"p1": 1, "p2": 1}, unit, "there") == ()


def test_words_for_a_missing_key() -> None:
    keys = [f"{i:04}" for i in range(300)] + ["NULL"] * 10 + ["n/a", "unknown", "-", "-"]
    found = inspection.check(frame_of(*keys), schema_of())
    finding = of_kind(found, "words-as-keys")
    assert finding.level.word == "warning" and finding.count == 14
    assert found.texts(finding) == {"NULL": 10, "n/a": 1, "unknown": 1, "-": 2}
    assert 'missingValues: ["", "WORD"]' in finding.remedy
    mended = inspection.check(
        frame_of(*keys), schema_of(missing=("", "NULL", "n/a", "unknown", "-"))
    )
    assert of_kind(mended, "words-as-keys") is None
    assert mended.read["table"] == {"rows": 314, "units": 300}
    for legal in ("0", "999", "no1"):
        found = inspection.check(frame_of(*(f"{i}" for i in range(1, 300)), legal), schema_of())
        assert of_kind(found, "words-as-keys") is None


@pytest.mark.parametrize("text", ["1.23457E+11", "1E+05", "1,2E+12", "3.4e+10"])
def test_keys_that_a_spreadsheet_has_damaged(text: str) -> None:
    keys = [f"{123456780000 + i}" for i in range(300)]
    found = inspection.check(frame_of(*keys, *[text] * 6), schema_of())
    finding = of_kind(found, "damaged-keys")
    assert finding.level.word == "serious" and finding.count == 6 and "E+11" in finding.message
    assert of_kind(inspection.check(frame_of(*keys), schema_of()), "damaged-keys") is None


def test_a_key_with_far_more_rows_than_count() -> None:
    keys = [f"{i:04}" for i in range(300)] + ["0007"] * 250
    found = inspection.check(frame_of(*keys), schema_of())
    finding = of_kind(found, "crowd")
    assert finding.level.word == "warning" and "between 100 and 999" in finding.message
    assert found.texts(finding) == {"0007": 251}
    mended = inspection.check(frame_of(*keys), schema_of(missing=("", "0007")))
    assert of_kind(mended, "crowd") is None


def test_both_outputs_and_the_file_of_values(tmp_path: Path, capsys: Any) -> None:
    schema_of().save(tmp_path / "s.schema.yaml")
    twice(lambda i: f"P{i}", lambda i: f"p{i}").to_csv(tmp_path / "t.csv", index=False)
    ask = ["schema", "check", str(tmp_path / "s.schema.yaml"), str(tmp_path / "t.csv")]
    assert call(*ask) == 3
    text = capsys.readouterr().out
    assert "dpsynth: {key: {case: true}}" in text and "P117" not in text
    assert call(*ask, "--json", "--show-values", str(tmp_path / "values.yaml")) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["serious"] == ["table:written-differently"] and "P117" not in str(document)
    assert "P117" in (tmp_path / "values.yaml").read_text()
