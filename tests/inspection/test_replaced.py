"""The check counts what a fit will not use of a table, or will replace, and shows no cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.inspection import Finding, kept
from dpsynth.inspection.column_check import ColumnCheck
from dpsynth.inspection.findings import REPLACED
from dpsynth.schema import Schema

from ..support.clinic import clinic_schema, clinic_tables

BASIS = {"bounds_basis": "protocol"}
Fields = list[dict[str, Any]]


def schema_of(*fields: dict[str, Any], **own: Any) -> Schema:
    size = {"value": 20, "basis": "protocol"}
    declared = [field | {"dpsynth": BASIS | field.get("dpsynth", {})} for field in fields]
    extra = {"version": 1, "population": size, "rows": size} | own
    return Schema.from_dict({"fields": declared, "dpsynth": extra})


def field(name: str, kind: str, own: dict[str, Any] | None = None, **rules: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "dpsynth": own or {}} | (
        {"constraints": rules} if rules else {}
    )


def found(schema: Schema, **cells: list[Any]) -> dict[str, Finding]:
    """Check a table of text, and return what a fit replaces, by place."""
    frame = pd.DataFrame({name: pd.Series(own, dtype=object) for name, own in cells.items()})
    checked = inspection.check(frame, schema)
    shown = json.dumps(checked.to_dict())
    for column in frame:
        for text in set(frame[column].dropna()):
            assert len(text) < 6 or text not in shown, "a cell is shown"
    return {one.place: one for one in checked.findings if one.kind == REPLACED}


DAY = {"minimum": "2020-01-01", "maximum": "2022-12-31"}
ADM = field("adm", "date", **DAY)
DIS = field("dis", "date", {"after": "adm", "longest": 90})
SEEN = field("seen", "datetime", **DAY)
NUMBER = field("x", "number", {"step": 0.1}, minimum=0, maximum=10)
SEX = field("sex", "string", enum=["F", "M"])
ICD = field("icd", "string", {"codes": {"system": "ICD-10-GM", "rollup": "chapter"}})
CRP = field("crp", "number", {"censored": {"low": "<5"}, "step": 0.1}, minimum=5, maximum=300)
HEIGHT = field(
    "height",
    "number",
    {"step": 0.5, "unit_from": {"column": "unit", "cm": 1, "m": 100}},
    minimum=100,
    maximum=220,
)
UNIT = {"name": "unit", "type": "string", "dpsynth": {"role": "drop"}}
SETS = {"separator": ",", "most": 3}
DIAGNOSES = field(
    "dx", "string", {"codes": {"system": "ICD-10-GM", "rollup": "chapter", "several": SETS}}
)
CASES: dict[str, tuple[Fields, dict[str, list[Any]], str, str, int, str]] = {
    # fields, cells, place, cause, cells, level
    kept.NO_BASE: (
        [ADM, DIS],
        {"adm": ["2020-05-01", "", "", ""], "dis": ["2020-05-04", "2020-05-04", "", "2021-01-01"]},
        "dis", kept.NO_BASE, 2, "warning",
    ),
    kept.READER: ([SEX], {"sex": ["F", "NA", "null", ""]}, "sex", kept.READER, 2, "note"),
    kept.ZONE: (
        [SEEN],
        {"seen": ["2021-01-01T10:00:00+02:00", "2021-01-01T10:00:00Z", "2021-01-01T10:00", ""]},
        "seen", kept.ZONE, 2, "warning",
    ),
    kept.TIME: (
        [ADM], {"adm": ["2021-01-01 10:15", "2021-01-01", "2021-01-01T00:00:00"]},
        "adm", kept.TIME, 1, "warning",
    ),
    "seconds": (
        [SEEN],
        {"seen": ["2021-01-01T10:00:00", "2021-01-01T10:00:31", "2021-01-01T10:00:00.5"]},
        "seen", kept.ROUNDED, 2, "note",
    ),
    kept.SINGLE: (
        [NUMBER], {"x": ["3.4000000954", "3.4", "0.1000000015", "7"]},
        "x", kept.SINGLE, 2, "note",
    ),
    kept.ROUNDED: ([NUMBER], {"x": ["3.45", "3.4", "0.123"]}, "x", kept.ROUNDED, 2, "note"),
    kept.LIMIT: ([CRP], {"crp": ["<5", "<4", "12"]}, "crp", kept.LIMIT, 1, "warning"),
    kept.CONVERTED: (
        [HEIGHT, UNIT], {"height": ["1.7", "170"], "unit": ["m", "cm"]},
        "height", kept.CONVERTED, 1, "note",
    ),
    kept.ROLLED: (
        [ICD], {"icd": ["E11.9", "I10", "endocrine", ""]}, "icd", kept.ROLLED, 2, "note",
    ),
    "rolled up in sets": (
        [DIAGNOSES], {"dx": ["E11.9,I10", "endocrine,circulatory", ""]},
        "dx", kept.ROLLED, 1, "note",
    ),
    kept.MAPPED: (
        [field("sex", "string", {"values": {"w": "F"}}, enum=["F", "M"])],
        {"sex": ["F", "w", "w", "M"]}, "sex", kept.MAPPED, 2, "note",
    ),
    kept.CASE: (
        [field("sex", "string", {"case": False}, enum=["F", "M"])],
        {"sex": ["F", "f", "m", "M"]}, "sex", kept.CASE, 2, "note",
    ),
    kept.BLANKS: ([SEX], {"sex": ["F ", " M", "M"]}, "sex", kept.BLANKS, 2, "note"),
    "gap in years": (
        [ADM, field("born", "date", {"before": "adm", "longest": 110, "unit": "a"})],
        {"adm": ["2020-05-01"] * 2, "born": ["1980-05-04", "1950-01-01"]},
        "born", kept.GAP_UNIT, 2, "note",
    ),
    "gap in hours": (
        [SEEN, field("left", "datetime", {"after": "seen", "longest": 90, "unit": "h"})],
        {
            "seen": ["2020-05-01T10:00:00"] * 2,
            "left": ["2020-05-01T12:00:00", "2020-05-01T12:30:00"],
        },
        "left", kept.GAP_UNIT, 1, "note",
    ),
    kept.CONDITION: (
        [SEX, field("weeks", "integer", {"present_if": "sex == 'F'"}, minimum=0, maximum=45)],
        {"sex": ["F", "M", "M"], "weeks": ["30", "31", ""]},
        "weeks", kept.CONDITION, 1, "warning",
    ),
    kept.DERIVED: (
        [
            field("icu", "integer", minimum=0, maximum=30),
            field("ward", "integer", minimum=0, maximum=30),
            field("los", "integer", {"derived": "icu + ward"}, minimum=0, maximum=60),
        ],
        {"icu": ["1", "2", "3"], "ward": ["4", "5", "6"], "los": ["5", "12", ""]},
        "los", kept.DERIVED, 1, "warning",
    ),
    kept.COARSE: (
        [
            field("icu", "integer", minimum=0, maximum=30),
            field("part", "number", {"derived": "icu / 8", "step": 0.001}, minimum=0, maximum=9),
        ],
        {"icu": ["1", "5", "16"], "part": ["0.1", "0.6", "2"]},
        "part", kept.COARSE, 2, "warning",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_replaced_is_counted(case: str) -> None:
    fields, cells, place, cause, count, level = CASES[case]
    findings = found(schema_of(*fields), **cells)
    assert [one for one in findings if one not in (place, "table")] == []
    finding = findings[place]
    assert [(one.key, one.cells) for one in finding.causes] == [(cause, count)]
    filled = [text for text in cells[place] if text]
    assert (finding.count, finding.total) == (count, len(filled))
    assert finding.level.word == level
    assert all(one.remedy for one in finding.causes) and finding.lines()


def test_every_change_has_its_case() -> None:
    tried = {cause for _, _, _, cause, _, _ in CASES.values()}
    assert tried == {*kept.CHANGES} - {kept.EMPTY}


def test_the_broken_version_that_trusts_the_kinds_of_cells_sees_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, a cell that its codec takes was never looked at again."""
    monkeypatch.setattr(kept.Replaced, "add", lambda *_, **__: None)
    fields, cells, place, *_ = CASES[kept.NO_BASE]
    assert place not in found(schema_of(*fields), **cells)


def test_cells_that_come_back_have_no_finding() -> None:
    clean: dict[str, list[Any]] = {
        "adm": ["2020-05-01", "", "2021-12-31"],
        "dis": ["2020-05-01", "", "2022-01-31"],
        "x": ["1", "2.5", "9.90"],
        "sex": ["F", "", "M"],
        "crp": ["<5", "7.1", ""],
        "los": ["5", "", "60"],
    }
    los = field("los", "integer", minimum=0, maximum=60)
    assert found(schema_of(ADM, DIS, NUMBER, SEX, CRP, los), **clean) == {}


def test_a_column_without_a_value_is_named_once() -> None:
    findings = found(schema_of(SEX, NUMBER), sex=["", None, ""], x=["1", "2", "3"])
    assert findings["sex"].level.word == "warning" and "holds no value" in findings["sex"].message
    required = schema_of(field("sex", "string", enum=["F", "M"], required=True), NUMBER)
    assert "sex" not in found(required, sex=["", None, ""], x=["1", "2", "3"])  # it is `absent`


def test_columns_that_nobody_declared_are_told_by_their_places() -> None:
    """Not by their names: the first line of a file without a header is somebody's."""
    cells = {"sex": ["F", "M"], "remark": ["secret text", ""], "bed": ["12", "13"]}
    finding = found(schema_of(SEX), **cells)["table"]
    assert finding.message.endswith("does not read them: column 2, column 3")
    assert "remark" not in finding.message and "bed" not in finding.message
    assert (finding.level.word, finding.count) == ("note", 2)


def test_rows_beyond_max_rows_are_counted() -> None:
    unit = {"name": "pid", "type": "string", "dpsynth": {"role": "unit"}}
    schema = schema_of(unit, SEX, max_rows={"value": 2, "basis": "protocol"})
    keys = ["a"] * 5 + [f"p{i}" for i in range(15)]
    frame = pd.DataFrame({"pid": keys, "sex": ["F", "M"] * 10})
    (finding,) = [
        one for one in inspection.check(frame, schema).findings if one.kind == "many-rows"
    ]
    assert "15.0 % (3 of 20 rows), do not count" in finding.message
    assert finding.level.word == "note"


def test_a_source_without_the_derived_column_is_checked_as_before() -> None:
    fields, cells, *_ = CASES[kept.DERIVED]
    some = {name: own for name, own in cells.items() if name != "los"}
    assert found(schema_of(*fields), **some) == {}


def test_a_derived_column_of_the_wrong_kind_refuses_no_table() -> None:
    fields, cells, *_ = CASES[kept.DERIVED]
    frame = pd.DataFrame(cells)
    frame["los"] = pd.Series([5.0, 12.0, 9.0], dtype="float32")  # which no fit reads
    findings = {one.place: one for one in inspection.check(frame, schema_of(*fields)).findings}
    assert set(findings) <= {"table", "los"}  # the table is smaller than declared
    assert (findings["los"].level.word, findings["los"].causes) == ("note", ())
    assert "could not be compared" in findings["los"].message


def test_linked_tables_say_it_too() -> None:
    schema, tables = clinic_schema(), dict(clinic_tables())
    before = inspection.check(tables, schema)
    assert "labs.time" not in {one.place for one in before.findings}
    labs = tables["labs"].astype(object).where(tables["labs"].notna(), None)
    name = schema.children[1].series
    assert name is not None
    values = labs[name.value].astype(str).to_numpy(dtype=object)
    values[:20] = [text + "00000001" if "." in text else text for text in values[:20]]
    tables["labs"] = labs.assign(**{name.value: values, "remark": "x"})
    places = {one.place: one for one in inspection.check(tables, schema).findings}
    assert places["labs"].kind == REPLACED and places["labs"].message.endswith(
        "does not read it: column 5"
    )
    assert [one for one in places.values() if one.kind == REPLACED and one.place != "labs"]


def test_counts_follow_how_often_a_cell_is_there() -> None:
    column = schema_of(NUMBER).column("x")
    cells = pd.Series(["3.45", "3.4"], dtype=object)
    weighted, plain = ColumnCheck(column, "."), ColumnCheck(column, ".")
    weighted.add(cells, numbers=np.array([7, 2]))
    plain.add(pd.Series(["3.45"] * 7 + ["3.4"] * 2, dtype=object))
    assert weighted.findings() == plain.findings()
    assert weighted.findings()[0].count == 7


def test_a_computed_column_that_cannot_be_compared_is_named(tmp_path: Path) -> None:
    schema = schema_of(
        field("a", "integer", minimum=0, maximum=30),
        field("b", "integer", {"derived": "a + 1"}, minimum=0, maximum=60),
        field("c", "integer", {"derived": "a + 2"}, minimum=0, maximum=60),
    )
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [[2], [3], [4]], "c": [3, 4, 9]})
    frame.to_parquet(tmp_path / "t.parquet")
    findings = {one.place: one for one in inspection.check(tmp_path / "t.parquet", schema).findings}
    assert "could not be compared" in findings["b"].message
    assert [one.key for one in findings["c"].causes] == [kept.DERIVED]
    plain = frame.assign(b=[2, 3, 4])
    plain.to_parquet(tmp_path / "t.parquet")
    places = {one.place for one in inspection.check(tmp_path / "t.parquet", schema).findings}
    assert "b" not in places and "c" in places
