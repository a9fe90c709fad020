"""Each remedy that the check proposes is applied, as its text says, and the table checked again.

A remedy that is a line of the schema is read out of the message, its placeholders are filled with
what the office would look up, and it is merged into the document. A remedy about the source is
applied to the cells. The finding is then gone, and nothing worse has come in its place.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import dpsynth.inspection
from dpsynth import inspection
from dpsynth.inspection import CheckResult, Finding, Level, kept
from dpsynth.inspection.findings import KINDS, Cause
from dpsynth.inspection.values_file import schema_line
from dpsynth.schema import Schema

Cells = dict[str, list[Any]]
Document = dict[str, Any]
BASIS = {"bounds_basis": "protocol"}
ROWS = 60


@dataclass
class Row:
    """A table that has a finding, and what its remedy leaves to the office."""

    fields: list[Document]
    cells: Cells
    kind: str
    cause: str = ""
    fill: Mapping[str, str] = field(default_factory=dict)  # placeholders of the line
    source: Callable[[Cells], None] | None = None  # where the remedy is about the source
    own: Document = field(default_factory=dict)
    place: str = ""
    says: str = ""  # of a remedy about the source
    left: tuple[str, ...] = ()  # causes of kind `replaced` that a declaration leaves as a note
    milder: bool = False  # whether the finding stays, and is never serious


def column(name: str, kind: str, own: Document | None = None, **rules: Any) -> Document:
    found: Document = {"name": name, "type": kind, "dpsynth": BASIS | (own or {})}
    return found | ({"constraints": rules} if rules else {})


def document(row: Row) -> Document:
    rows = max(len(cells) for cells in row.cells.values())
    size = {"value": rows, "basis": "made for this test"}
    own = {"version": 1, "population": size, "rows": size} | row.own
    return copy.deepcopy({"fields": row.fields, "dpsynth": own})


def checked(declared: Document, cells: Cells) -> CheckResult:
    frame = pd.DataFrame({name: pd.Series(own, dtype=object) for name, own in cells.items()})
    return inspection.check(frame, Schema.from_dict(declared))


def merged(document: Any, line: Any) -> Any:
    """Merge a line into a document: mappings by key, other values replace."""
    if not (isinstance(document, dict) and isinstance(line, dict)):
        return line
    return document | {key: merged(document.get(key), value) for key, value in line.items()}


START = re.compile(r"\{?(dpsynth|missingValues|format|type|groupChar|trueValues): ")


def line_of(remedy: str, fill: Mapping[str, str]) -> tuple[bool, Document]:
    """Read the line of the schema out of a remedy: whether it is for the table, and the line."""
    text = remedy
    for placeholder, cell in fill.items():
        assert placeholder in text, (placeholder, text)
        text = text.replace(placeholder, cell)
    start = START.search(text)
    assert start is not None, text
    line = re.split(r"; |, or (?:with|system)", text[start.start() :])[0]
    for both in (" and falseValues:", ", falseValues:"):
        line = line.replace(both, "\nfalseValues:")
    return "end of the schema" in text, yaml.safe_load(line)


def applied(row: Row, declared: Document, remedy: str, place: str) -> tuple[Document, Cells]:
    """Do what a remedy says."""
    cells = copy.deepcopy(row.cells)
    if row.source is not None:
        assert row.says in remedy, remedy
        row.source(cells)
        return declared, cells
    whole, line = line_of(remedy, row.fill)
    if whole:
        return merged(declared, line), cells
    fields = [merged(one, line) if one["name"] == place else one for one in declared["fields"]]
    (own,) = [one for one in fields if one["name"] == place]
    if "in place of its own" in remedy:
        del own["format"]
    if "write its minimum and maximum" in remedy:
        own["constraints"] = {"minimum": "2015-01-01", "maximum": "2020-12-31"}
    return declared | {"fields": fields}, cells


def the_finding(check: CheckResult, row: Row) -> tuple[Finding, Cause | None]:
    found = [one for one in check.findings if one.kind == row.kind]
    found = [one for one in found if not row.place or one.place == row.place]
    assert found, [one.key for one in check.findings]
    causes = [one for one in found[0].causes if one.key == row.cause]
    assert bool(causes) == bool(row.cause), found[0].causes
    return found[0], causes[0] if causes else None


def is_left(one: Finding, finding: Finding, row: Row) -> bool:
    """Whether a finding stays after its remedy."""
    same = (one.place, one.kind) == (finding.place, finding.kind)
    return same and (not row.cause or any(cause.key == row.cause for cause in one.causes))


def texts(*cells: str, times: int = 1) -> list[Any]:
    every = [*cells] * times
    return (every * ROWS)[:ROWS]


def mapped(name: str, **cells: str) -> Callable[[Cells], None]:
    return each(name, lambda text: cells.get(text, text))


def each(name: str, change: Callable[[str], str]) -> Callable[[Cells], None]:
    def mend(cells: Cells) -> None:
        cells[name] = [None if text is None else change(text) for text in cells[name]]

    return mend


SMOKER = column("x", "string", enum=["ja", "nein", "früher"])
SITE = column("x", "string", enum=["007", "012", "120"])
ALIVE = {"name": "x", "type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]}
LAB = column("x", "number", {"step": 0.1, "ucum": "mg/dL"}, minimum=0.2, maximum=15)
CM = column("x", "number", {"step": 0.5, "ucum": "cm"}, minimum=100, maximum=220)
CRP = column("x", "number", {"step": 0.1}, minimum=0, maximum=400)
COUNT = column("x", "integer", minimum=0, maximum=90_000)
SEEN = column("x", "date", minimum="2015-01-01", maximum="2020-12-31")
WHEN = column("x", "datetime", minimum="2015-01-01", maximum="2020-12-31")
ADM = column("adm", "date", minimum="2015-01-01", maximum="2020-12-31")
DIS = column("x", "date", {"after": "adm", "longest": 90})
ICD9 = column("x", "string", {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}})
SEX = column("sex", "string", enum=["F", "M"])
KEY: Document = {"name": "key", "type": "string", "dpsynth": {"role": "unit"}}
PER_UNIT = {"max_rows": {"value": 2, "basis": "protocol"}}
LABELLED = column("x", "string", enum=["1", "2"]) | {
    "categories": [{"value": "1", "label": "Hombre"}, {"value": "2", "label": "Mujer"}]
}

TABLE: dict[str, Row] = {
    # cells of categories
    "missing word of categories": Row(
        [SMOKER], {"x": texts("ja", "nein", "k.A.")}, "unknown", "missing-word", {"WORD": "k.A."}
    ),
    "label": Row([LABELLED], {"x": texts("1", "2", "Mujer")}, "unknown", "label", left=("values",)),
    "case": Row([SMOKER], {"x": texts("ja", "NEIN", "Früher")}, "unknown", "case", left=("case",)),
    "case and label": Row(
        [LABELLED], {"x": texts("1", "2", "MUJER")}, "unknown", "label", left=("values",)
    ),
    "zeros": Row(
        [SITE], {"x": texts("007", "12", "120")}, "unknown", "zeros",
        source=mapped("x", **{"12": "012"}), says="let the source write the column as text",
    ),
    "zeros by a value map": Row(
        [SITE], {"x": texts("007", "12.0", "120")}, "unknown", "zeros",
        {'"CELL"': '"12.0"', '"CATEGORY"': '"012"'}, left=("values",),
    ),
    "dots": Row(
        [column("x", "string", enum=["I.1", "I.2"])], {"x": texts("I.1", "I2", "I.2")},
        "unknown", "dots", {'"CELL"': '"I2"', '"CATEGORY"': '"I.2"'}, left=("values",),
    ),
    "dots of codes": Row(
        [ICD9], {"x": texts("250.01", "4280")}, "unknown", "dots",
        source=mapped("x", **{"4280": "428.0"}), says="write codes with their dot",
        left=("rolled-up",),
    ),
    "code system": Row(
        [ICD9], {"x": texts("E11.9", "I50.0")}, "unknown", "code-system", left=("rolled-up",)
    ),
    "older code system": Row(
        [column("x", "string", {"codes": {"system": "ICD-10-GM", "rollup": "chapter"}})],
        {"x": texts("250.01", "428.0")}, "unknown", "code-system", left=("rolled-up",),
    ),
    "spelling": Row(
        [SMOKER], {"x": texts("ja", "nein", "frueher")}, "unknown", "spelling",
        {'"CELL"': '"frueher"', '"CATEGORY"': '"früher"'}, left=("values",),
    ),
    "typing": Row(
        [SMOKER], {"x": texts("ja", "nein", "frühhr")}, "unknown", "typing",
        {'"CELL"': '"frühhr"', '"CATEGORY"': '"früher"'}, left=("values",),
    ),
    "lost letters": Row(
        [SMOKER], {"x": texts("ja", "fr\ufffdher")}, "unknown", "lost-letters",
        source=mapped("x", **{"fr\ufffdher": "früher"}), says="export the table again in UTF-8",
    ),
    "encoding": Row(
        [SMOKER], {"x": texts("ja", "frÃ¼her")}, "unknown", "encoding",
        source=mapped("x", **{"frÃ¼her": "früher"}), says="dpsynth: {dialect: {encoding: utf-8}}",
        own={"dialect": {"encoding": "latin-1"}},
    ),
    "unknown": Row(
        [SMOKER], {"x": texts("ja", "nein", "manchmal")}, "unknown", milder=True
    ),
    # truth values
    "truth words": Row(
        [ALIVE], {"x": texts("Yes", "No", "ja", "nein")}, "unreadable", "truth-words",
        {'trueValues: ["WORD"]': 'trueValues: ["Yes", "ja"]',
         'falseValues: ["WORD"]': 'falseValues: ["No", "nein"]'},
    ),
    "Dutch truth words": Row(
        [ALIVE], {"x": texts("Yes", "No", "ja", "nee")}, "unreadable", "truth-words",
        {'trueValues: ["WORD"]': 'trueValues: ["Yes", "ja"]',
         'falseValues: ["WORD"]': 'falseValues: ["No", "nee"]'},
    ),
    "German truth words": Row(
        [ALIVE], {"x": texts("Yes", "No", "wahr", "falsch")}, "unreadable", "truth-words",
        {'trueValues: ["WORD"]': 'trueValues: ["Yes", "wahr"]',
         'falseValues: ["WORD"]': 'falseValues: ["No", "falsch"]'},
    ),
    "case of truth words": Row(
        [ALIVE], {"x": texts("Yes", "NO")}, "unreadable", "case", left=("case",)
    ),
    "missing word of truth values": Row(
        [ALIVE], {"x": texts("Yes", "No", "unknown")}, "unreadable", "missing-word",
        {"WORD": "unknown"},
    ),
    # numbers
    "missing word of numbers": Row(
        [CRP], {"x": texts("1.5", "2", "not done")}, "unreadable", "missing-word",
        {"WORD": "not done"},
    ),
    "decimal": Row([CRP], {"x": texts("1,5", "2,7", "12,25")}, "unreadable", "decimal",
                   left=("rounded",)),
    "one decimal": Row(
        [CRP], {"x": texts("1.5", "2,7")}, "unreadable", "decimal",
        source=mapped("x", **{"2,7": "2.7"}), says="let the source write them with '.'",
    ),
    "thousands": Row([COUNT], {"x": texts("5,000", "12,500")}, "unreadable", "thousands"),
    "thousands with blanks": Row([COUNT], {"x": texts("5 000", "900")}, "unreadable", "thousands"),
    "thousands of a comma": Row(
        [COUNT], {"x": texts("5.000", "900")}, "unreadable", "thousands",
        own={"dialect": {"decimal": ","}},
    ),
    "thousands of two signs": Row(
        [COUNT], {"x": texts("5,000", "12 500", "900")}, "unreadable", "thousands",
        source=mapped("x", **{"5,000": "5000", "12 500": "12500"}), says="5000, not 5,000",
    ),
    "limit of detection": Row(
        [CRP], {"x": texts("<5", "7", "30")}, "unreadable", "censored-low", {"LIMIT": "5"}
    ),
    "upper limit": Row(
        [CRP], {"x": texts(">200", "7", "30")}, "unreadable", "censored-high", {"LIMIT": "200"}
    ),
    "unit text": Row(
        [CM], {"x": texts("170 cm", "165", "180")}, "unreadable", "unit-text",
        source=mapped("x", **{"170 cm": "170"}), says="write the number alone",
    ),
    "fraction": Row(
        [COUNT], {"x": texts("12.5", "7", "30")}, "unreadable", "fraction", {"STEP": "0.5"}
    ),
    "several limits of detection": Row(
        [CRP], {"x": texts("<5", "<10", "30")}, "unreadable", "censored-low",
        {'"<LIMIT"': '["<5", "<10"]'},
    ),
    "unreadable": Row(
        [CRP], {"x": texts("1", "red")}, "unreadable",
        source=mapped("x", red="2"), says="compare the extract with the declared type",
    ),
    # outside the bounds
    "missing code": Row(
        [CM], {"x": texts("170", "165.5", "999")}, "clipped", "missing-code", {"CODE": "999"}
    ),
    "missing code of dates": Row(
        [SEEN], {"x": texts("2016-01-01", "9999-12-31")}, "clipped", "missing-code",
        {"CODE": "9999-12-31"},
    ),
    "other unit": Row(
        [CM, {"name": "u", "type": "string", "dpsynth": {"role": "drop"}}],
        {"x": texts("170", "165", "1.7"), "u": texts("cm", "cm", "m")}, "clipped", "unit",
        {"UNIT_COLUMN": "u", '"UNIT": FACTOR': '"cm": 1, "m": 100'}, left=("converted",),
    ),
    "clipped": Row(
        [CRP], {"x": texts("1", "401.5", "409", "433", "470")}, "clipped",
        source=lambda cells: cells.update(x=texts("1", "40.1")), says="compare the bounds",
    ),
    # dates
    "missing word of dates": Row(
        [SEEN], {"x": texts("2016-01-01", "00.00.0000")}, "unreadable", "missing-word",
        {"WORD": "00.00.0000"},
    ),
    "excel days": Row(
        [SEEN], {"x": texts("2016-01-01", "43500")}, "unreadable", "excel-days",
        source=mapped("x", **{"43500": "2019-02-04"}), says="let the source write dates as text",
    ),
    "second date format": Row(
        [SEEN], {"x": texts("2016-01-01", "13.02.2019")}, "unreadable", "date-format"
    ),
    "other date format": Row(
        [SEEN], {"x": texts("28.11.2016", "13.02.2019")}, "unreadable", "date-format"
    ),
    "second date format beside one": Row(
        [SEEN | {"format": "%m/%d/%Y",
                 "constraints": {"minimum": "01/01/2015", "maximum": "12/31/2020"}}],
        {"x": texts("01/28/2016", "13.02.2019")}, "unreadable", "date-format",
    ),
    "other date format than one": Row(
        [SEEN | {"format": "%m/%d/%Y",
                 "constraints": {"minimum": "01/01/2015", "maximum": "12/31/2020"}}],
        {"x": texts("28.11.2016", "13.02.2019")}, "unreadable", "date-format",
    ),
    "other format of times": Row(
        [column("x", "time", minimum="06:00", maximum="22:00")],
        {"x": texts("08.30", "21.15")}, "unreadable", "date-format",
    ),
    "order of dates": Row(
        [ADM, DIS], {"adm": texts("2016-02-01"), "x": texts("2016-02-04", "2016-01-31")},
        "clipped", "order", {"shortest: ...": "shortest: -1"},
    ),
    "long gap": Row(
        [ADM, DIS], {"adm": texts("2016-02-01"), "x": texts("2016-02-04", "2018-01-31")},
        "clipped", "long-gap", source=mapped("x", **{"2018-01-31": "2016-02-05"}),
        says="correct the dates in the source",
    ),
    # rows
    "absent": Row(
        [column("x", "string", enum=["F", "M"], required=True)], {"x": texts("F", "M", "")},
        "absent", source=mapped("x", **{"": "M"}), says="complete the extract",
    ),
    "broken": Row(
        [COUNT, COUNT | {"name": "y"}], {"x": texts("1", "5"), "y": texts("2", "3")}, "broken",
        source=mapped("x", **{"5": "3"}), says="correct these rows in the source",
        own={"rules": ["x <= y"]},
    ),
    "duplicates": Row(
        [KEY, SEX], {"key": ["20"] * 2 + [str(i) for i in range(9)], "sex": ["F"] * 11},
        "duplicates", own=PER_UNIT, source=lambda cells: [c.pop(0) for c in cells.values()][:0],
        says="remove rows",
    ),
    "repeated": Row(
        [KEY, {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}}, SEX],
        {"key": ["20"] * 2 + [str(i) for i in range(9)], "visit": ["1"] * 11,
         "sex": ["F", "M"] + ["F"] * 9},
        "repeated", own=PER_UNIT, source=lambda cells: [c.pop(0) for c in cells.values()][:0],
        says="remove rows",
    ),
    "keyless": Row(
        [KEY, SEX], {"key": [""] + [str(i) for i in range(9)], "sex": ["F"] * 10},
        "keyless", own=PER_UNIT, source=mapped("key", **{"": "20"}), says="complete the key",
    ),
    "many rows": Row(
        [KEY, COUNT], {"key": ["a"] * 3 + [str(i) for i in range(9)],
                       "x": [str(i) for i in range(12)]},
        "many-rows", own=PER_UNIT, source=None, says="a larger max_rows",
    ),
    "size": Row(
        [COUNT], {"x": texts("1", "2")}, "rows", says="correct the declared number",
        own={"rows": {"value": 10, "basis": "protocol"}},
    ),
    "size in units": Row(
        [KEY, COUNT], {"key": [str(i) for i in range(ROWS)], "x": texts("1", "2")}, "units",
        says="correct the declared number",
        own=PER_UNIT | {"population": {"value": 10, "basis": "protocol"}},
    ),
    # what is known without data
    "even hours": Row([WHEN], {"x": texts("2016-01-01T10:00:00")}, "schema"),
    # what a fit replaces
    kept.NO_BASE: Row(
        [ADM, DIS], {"adm": texts("2016-02-01", ""), "x": texts("2016-02-04", "2016-02-04")},
        "replaced", kept.NO_BASE, source=mapped("adm", **{"": "2016-02-01"}),
        says="complete adm in the source",
    ),
    kept.DERIVED: Row(
        [COUNT, COUNT | {"name": "y", "dpsynth": BASIS | {"derived": "x + 1"}}],
        {"x": texts("1", "5"), "y": texts("1", "6")}, "replaced", kept.DERIVED,
        source=lambda cells: cells.update(y=texts("2", "6")),
        says="correct the formula or the source",
    ),
    kept.COARSE: Row(
        [COUNT, column("y", "number", {"step": 0.001, "derived": "x / 8"}, minimum=0, maximum=9)],
        {"x": texts("1", "5", "7"), "y": texts("0.1", "0.6", "0.9")}, "replaced", kept.COARSE,
        {"step: ...": "step: 0.1"},
    ),
    kept.CONDITION: Row(
        [SEX, column("x", "integer", {"present_if": "sex == 'F'"}, minimum=0, maximum=9)],
        {"sex": texts("F", "M"), "x": texts("1", "5")}, "replaced", kept.CONDITION,
        source=mapped("x", **{"5": ""}), says="correct these rows in the source",
    ),
    kept.EMPTY: Row([SEX, COUNT], {"sex": texts("F", "M"), "x": texts("")}, "replaced"),
    kept.READER: Row(
        [SMOKER], {"x": texts("ja", "NULL")}, "replaced", kept.READER, {"WORD": "NULL"}
    ),
    kept.ZONE: Row(
        [WHEN], {"x": texts("2016-01-01T10:00:00+02:00")}, "replaced", kept.ZONE,
        source=mapped("x", **{"2016-01-01T10:00:00+02:00": "2016-01-01T10:00:00"}),
        says="local times without an offset",
    ),
    kept.TIME: Row(
        [SEEN], {"x": texts("2016-01-01 10:15")}, "replaced", kept.TIME,
        source=mapped("x", **{"2016-01-01 10:15": "2016-01-01"}), says="write the day alone",
    ),
    kept.LIMIT: Row(
        [column("x", "number", {"step": 0.1, "censored": {"low": "<5"}}, minimum=3, maximum=90)],
        {"x": texts("<5", "<3", "7")}, "replaced", kept.LIMIT,
        {"censored: ...": 'censored: {low: ["<3", "<5"]}'},
    ),
    kept.SINGLE: Row(
        [CRP], {"x": texts("3.4000000954", "7")}, "replaced", kept.SINGLE,
        source=mapped("x", **{"3.4000000954": "3.4"}), says="with the digits that were recorded",
    ),
    kept.ROUNDED: Row(
        [CRP], {"x": texts("3.45", "7")}, "replaced", kept.ROUNDED, {"step: ...": "step: 0.01"}
    ),
    "seconds": Row(
        [WHEN], {"x": texts("2016-01-01T10:00:31", "2016-01-01T10:00:00")}, "replaced",
        kept.ROUNDED, {"step: ...": "step: 1"},
    ),
    kept.GAP_UNIT: Row(
        [WHEN | {"name": "adm"},
         column("x", "datetime", {"after": "adm", "longest": 900, "unit": "h"})],
        {"adm": texts("2016-01-01T10:00:00"), "x": texts("2016-01-01T12:30:00")},
        "replaced", kept.GAP_UNIT, {"unit: ...": "unit: min"},
    ),
}  # fmt: skip
NOTHING = {
    kept.CONVERTED,
    kept.ROLLED,
    kept.MAPPED,
    kept.CASE,
    kept.BLANKS,
}  # nothing is to be done


@pytest.mark.parametrize("name", TABLE)
def test_a_remedy_mends_what_it_is_proposed_for(name: str) -> None:
    row = TABLE[name]
    declared = document(row)
    before = checked(declared, row.cells)
    finding, cause = the_finding(before, row)
    remedy = finding.remedy if cause is None else cause.remedy
    if row.kind == "schema":
        remedy = finding.message
    if row.kind in ("rows", "units", "many-rows"):
        assert row.says in remedy
        key = {"rows": "rows", "units": "population", "many-rows": "max_rows"}[row.kind]
        value = {"value": {"rows": ROWS, "units": ROWS, "many-rows": 3}[row.kind], "basis": "p"}
        after = checked(merged(declared, {"dpsynth": {key: value}}), row.cells)
    else:
        mended, cells = applied(row, declared, remedy, finding.place)
        after = checked(mended, cells)
    left = [one for one in after.findings if is_left(one, finding, row)]
    assert [one.level < finding.level for one in left] == ([True] if row.milder else [])
    ours = {one.key for one in before.findings}
    new = [one for one in after.findings if one.key not in ours and one.level > Level.NOTE]
    assert new == [], f"{remedy}: {[one.message for one in new]}"
    notes = {c.key for one in after.findings if one.kind == "replaced" for c in one.causes}
    assert notes <= {*row.left}


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.cause])
def test_the_line_of_the_file_of_values_mends_it_too(name: str) -> None:
    row = TABLE[name]
    declared = document(row)
    before = checked(declared, row.cells)
    finding, cause = the_finding(before, row)
    line = None if cause is None else schema_line(cause, dict(before.texts(finding) or {}))
    if line is None:
        return  # its remedy is no line with cells
    own = yaml.safe_load(line.replace(", falseValues:", "\nfalseValues:"))
    for word in ("trueValues", "falseValues"):  # beside those that are declared
        own |= {word: [*row.fields[0][word], *own[word]]} if word in own else {}
    fields = [merged(one, own) if one["name"] == finding.place else one for one in row.fields]
    after = checked(declared | {"fields": fields}, row.cells)
    assert not [one for one in after.findings if is_left(one, finding, row)], line


def keys_in(*calls: str) -> set[str]:
    """List the first argument of all calls of these names in the room: the keys of causes."""
    found = set()
    for path in Path(dpsynth.inspection.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                if node.func.id in calls and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return found


ELSEWHERE = {
    # test_records.py applies the remedies of lines that are no records
    *("short-lines", "long-lines", "quotes", "headers", "joined", "swallowed-lines"),
    *("several-lines", "blank-lines", "unlike-rows"),
    # test_keys.py applies those of keys
    *("written-differently", "words-as-keys", "damaged-keys", "crowd"),
}


def test_every_finding_and_every_cause_has_its_row() -> None:
    tried = {row.kind for row in TABLE.values()} | ELSEWHERE
    assert {*KINDS, "schema"} <= tried, {*KINDS} - tried
    causes = {row.cause for row in TABLE.values()} | NOTHING | {""}
    known = keys_in("Explanation", "Cause") | {*kept.CHANGES} - {kept.EMPTY}
    assert known | {"order", "long-gap"} <= causes, known - causes


@pytest.mark.parametrize("change", sorted(NOTHING))
def test_what_the_schema_declares_asks_for_nothing(change: str) -> None:
    assert kept._WORDS.get(change, ("", kept._NOTHING))[1] == kept._NOTHING
