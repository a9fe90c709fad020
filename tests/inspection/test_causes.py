"""Each kind of cause is found where it is, is not claimed elsewhere, and never names a cell."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.inspection import Finding
from dpsynth.inspection.findings import REPLACED
from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}
RNG = np.random.default_rng(1)
CLEAN = 200


def column(
    name: str, kind: str, extra: dict[str, Any] | None = None, **rules: Any
) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": kind, "dpsynth": BASIS | (extra or {})}
    return field | ({"constraints": rules} if rules else {})


COLUMNS = {
    "smoker": column("smoker", "string", enum=["ja", "nein", "früher"]),
    "stage": column("stage", "string", enum=["I.1", "I.2", "II.1"]),
    "site": column("site", "string", enum=["007", "012", "120"]),
    "ward": column("ward", "string", enum=["cardiology", "surgery", "medicine"]),
    "alive": {"name": "alive", "type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]},
    "code": column("code", "string", {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}}),
    "height": column("height", "number", {"ucum": "cm"}, minimum=100, maximum=220),
    "crea": column("crea", "number", {"ucum": "mg/dL"}, minimum=0.2, maximum=15),
    "crp": column("crp", "number", minimum=0, maximum=400),
    "count": column("count", "integer", minimum=0, maximum=90000),
    "seen": column("seen", "date", minimum="2015-01-01", maximum="2020-12-31"),
    "income": column("income", "number", minimum=0, maximum=100000),
}
DAYS = pd.date_range("2015-03-01", periods=CLEAN, freq="9D").strftime("%Y-%m-%d").tolist()
GOOD: dict[str, list[str]] = {
    "smoker": ["ja", "nein"] * 100,
    "stage": ["I.1", "II.1"] * 100,
    "site": ["007", "012"] * 100,
    "ward": ["surgery", "medicine"] * 100,
    "alive": ["Yes", "No"] * 100,
    "code": ["250.01", "428.0"] * 100,
    "height": [f"{x:.1f}" for x in RNG.normal(170, 9, CLEAN)],
    "crea": [f"{x:.2f}" for x in RNG.lognormal(0, 0.2, CLEAN)],
    "crp": [f"{x:.1f}" for x in RNG.lognormal(2, 1, CLEAN).clip(0, 399)],
    "count": [str(x) for x in RNG.integers(5000, 9000, CLEAN)],
    "seen": DAYS,
    "income": [f"{x:.0f}" for x in RNG.lognormal(10, 0.5, CLEAN).clip(0, 99999)],
}


def found(name: str, bad: list[str], good: list[str] | None = None) -> list[Finding]:
    """Check one column of good cells and bad ones; what is taken and replaced is left out."""
    number = {"value": 100, "basis": "made for this test"}
    schema = Schema.from_dict(
        {
            "fields": [COLUMNS[name]],
            "dpsynth": {"version": 1, "population": number, "rows": number},
        }
    )
    cells = (GOOD[name] if good is None else good) + bad
    checked = inspection.check(pd.DataFrame({name: pd.Series(cells, dtype=object)}), schema)
    findings = [one for one in checked.findings if one.place == name and one.kind != REPLACED]
    shown = json.dumps(checked.to_dict()) + "".join(line for f in findings for line in f.lines())
    for text in bad:  # no cell is shown
        if len(text) > 3 and not text.isdigit() and text != "unknown":
            assert text not in shown
    return findings


CAUSES: list[tuple[str, list[str], str, str]] = [
    ("smoker", ["Ja", "NEIN"] * 20, "case", "case: false"),
    ("smoker", ["frueher", "fruher"] * 9, "spelling", "values:"),
    ("smoker", ["frÃ¼her"] * 9, "encoding", "encoding: utf-8"),
    ("smoker", ["fr\ufffdher"] * 9, "lost-letters", "export the table again"),
    ("smoker", ["k.A.", "unbekannt", "-"] * 9, "missing-word", "missingValues"),
    ("stage", ["I1", "II1"] * 9, "dots", "values:"),
    ("site", ["7", "12.0"] * 9, "zeros", "as text"),
    ("ward", ["surgry", "medcine"] * 9, "typing", "values:"),
    ("alive", ["ja", "nein"] * 9, "truth-words", "trueValues"),
    ("alive", ["YES"] * 9, "case", "case: false"),
    ("alive", ["n/a.", "unknown"] * 9, "missing-word", "missingValues"),
    ("code", ["25001", "4280"] * 9, "dots", "dot"),
    ("code", ["E11.9", "I50.0"] * 9, "code-system", "ICD-10"),
    ("code", ["unbekannt"] * 9, "missing-word", "missingValues"),
    ("height", [f"{x:.2f}" for x in RNG.normal(1.7, 0.09, 20)], "unit", "unit_from"),
    ("height", ["999"] * 9, "missing-code", "coding manual"),
    ("height", ["-9"] * 9 + ["99.5"], "missing-code", "coding manual"),
    ("height", ["170,5", "165,0"] * 9, "decimal", "let the source write them with '.'"),
    ("height", ["170 cm", "165.5cm"] * 9, "unit-text", "ucum"),
    ("height", ["not done"] * 9, "missing-word", "missingValues"),
    ("crea", [f"{x:.0f}" for x in RNG.normal(88, 9, 20)], "unit", "unit_from"),
    ("crp", ["<5", "< 0.3", "<=5"] * 9, "censored-low", 'low: "<LIMIT"'),
    ("crp", [">200", "≥ 300"] * 9, "censored-high", 'high: ">LIMIT"'),
    ("count", ["12,000", "7,500"] * 9, "thousands", "without it"),
    ("count", ["12 000", "7'500"] * 9, "thousands", "without it"),
    ("count", ["12.5", "7.25"] * 9, "fraction", "type: number"),
    ("seen", ["13.02.2019", "28.11.2018"] * 9, "date-format", "formats:"),
    ("seen", ["02/13/2019", "11/28/2018"] * 9, "date-format", '"%m/%d/%Y"'),
    ("seen", ["03/04/2019", "05/06/2018"] * 9, "date-format", "the day or the month comes first"),
    ("seen", ["13.02.2019 08:30"] * 9, "date-format", "%H:%M"),
    ("seen", ["43500", "43210"] * 9, "excel-days", "as text"),
    ("seen", ["00.00.0000", "unknown"] * 9, "missing-word", "missingValues"),
    ("seen", ["9999-12-31"] * 9, "missing-code", "coding manual"),
]


def test_a_letter_in_the_place_of_a_digit_is_no_unit() -> None:
    [finding] = found("height", ["17o", "17O"] * 9)
    assert finding.causes == ()


@pytest.mark.parametrize(("name", "bad", "cause", "hint"), CAUSES)
def test_a_cause_is_found_with_what_to_do(name: str, bad: list[str], cause: str, hint: str) -> None:
    findings = found(name, bad)
    assert len(findings) == 1
    causes = findings[0].causes
    assert causes and causes[0].key == cause, causes
    assert causes[0].cells == len([one for one in bad if one != "99.5"])
    assert hint in causes[0].remedy
    assert findings[0].count == len(bad)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_clean_column_has_no_finding(name: str) -> None:
    assert found(name, []) == []
    assert found(name, ["", "NA"] * 50) == []  # missing cells are declared


OTHERS: list[tuple[str, list[str], str]] = [
    ("smoker", ["sometimes", "rarely"] * 9, "another category"),
    ("site", ["700", "121"] * 9, "other codes"),
    ("ward", ["urology", "ear"] * 9, "other wards"),
    ("code", ["zzz", "QQ"] * 9, "no codes at all"),
    ("crp", ["high", "positive"] * 9, "words"),
    ("height", [f"{x:.1f}" for x in np.linspace(221, 260, 40)], "a tail behind the bound"),
    ("income", [f"{x:.0f}" for x in 1e5 * RNG.pareto(3, 60) + 1e5], "a long tail"),
    ("height", ["99", "98", "97", "96", "99.5", "95"] * 3, "small children, of whom a few have 99"),
    ("count", ["-3", "-4", "-2", "-5"] * 5, "negative numbers"),
    ("seen", ["2021-02-03", "2022-01-01", "1912-01-01"] * 9, "dates outside the period"),
    ("seen", ["soon", "32.13.2019"] * 9, "no dates"),
]


@pytest.mark.parametrize(("name", "bad", "what"), OTHERS, ids=[other[2] for other in OTHERS])
def test_no_cause_is_claimed_without_reason(name: str, bad: list[str], what: str) -> None:
    (finding,) = found(name, bad)
    assert finding.causes == () and finding.remedy, finding.causes


def test_cells_are_divided_among_causes() -> None:
    (finding,) = found("smoker", ["Ja"] * 30 + ["k.A."] * 20 + ["sometimes"] * 10)
    assert [(cause.key, cause.cells) for cause in finding.causes] == [
        ("case", 30),
        ("missing-word", 20),
    ]
    assert finding.unexplained == 10
    assert any("10 cells: no likely cause found" in line for line in finding.lines())


def test_7_5_decides_what_1_250_is() -> None:
    (finding,) = found("income", ["1,250"] * 9 + ["7,5"] * 9)
    assert [cause.key for cause in finding.causes] == ["decimal"]
    (finding,) = found("income", ["1,250"] * 18)
    assert [cause.key for cause in finding.causes] == ["thousands"]


def test_a_column_in_one_other_format_gets_that_format() -> None:
    (finding,) = found("seen", ["13.02.2019", "28.11.2018"] * 50, good=[])
    assert finding.causes[0].remedy == 'set in the column: format: "%d.%m.%Y"'


def test_all_heights_in_metres() -> None:
    (finding,) = found("height", ["1.75", "1.62", "1.81"] * 30, good=[])
    assert finding.causes[0].key == "unit" and "x100" in finding.causes[0].message
    assert finding.level.word == "serious"
