"""Labels in place of codes, dates in the wrong order, and what is said about another file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table
from dpsynth.tables.checks import check_names

from ..support.declared_cells import field, schema_of
from ..support.related_columns import ADMITTED, DISCHARGED, document

SEX = field("string", {"enum": ["1", "2", "9"]})
SEX |= {"categories": [{"value": "1", "label": "Hombre"}, {"value": "2", "label": "Mujer"}]}
GRADE = field("integer", {"enum": [1, 2]})
GRADE |= {"categories": [{"value": 1, "label": "leve"}, {"value": 2, "label": "grave"}]}


def test_labels_in_place_of_codes_get_their_value_map() -> None:
    cells = {"sex": ["1", "2", "Mujer", "Hombre"] * 9, "grade": ["1", "2", "leve", "grave"] * 9}
    check = inspection.check(pd.DataFrame(cells), schema_of(sex=SEX, grade=GRADE)).findings
    causes = {one.place: one.causes for one in check if one.place != "table"}
    assert [one.key for one in causes["sex"]] == ["label"] == [one.key for one in causes["grade"]]
    assert 'dpsynth: {values: {"Hombre": "1", "Mujer": "2"}}' in causes["sex"][0].remedy
    other = schema_of(sex=SEX)
    upper = inspection.check(pd.DataFrame({"sex": ["1", "MUJER"] * 9}), other).findings
    assert (
        "{case: false, values:" in next(one for one in upper if one.place == "sex").causes[0].remedy
    )
    values = {"Hombre": "1", "Mujer": "2"}
    mended = {**SEX, "dpsynth": SEX["dpsynth"] | {"case": False, "values": values}}
    frame = pd.DataFrame({"sex": ["1", "MUJER", "hombre"] * 9})
    left = [
        one for one in inspection.check(frame, schema_of(sex=mended)).findings if one.place == "sex"
    ]
    assert [(one.kind, one.level.word) for one in left] == [("replaced", "note")]


def test_a_label_that_two_categories_have_explains_nothing() -> None:
    same = {"categories": [{"value": "1", "label": "Mujer"}, {"value": "2", "label": "mujer"}]}
    check = inspection.check(
        pd.DataFrame({"sex": ["1", "Mujer"] * 9}), schema_of(sex=SEX | same)
    ).findings
    assert next(one for one in check if one.place == "sex").causes == ()


@pytest.mark.parametrize(("policy", "advised"), [("missing", True), ("other", False), ("9", False)])
def test_other_is_advised_where_unknown_cells_are_not_collected(policy: str, advised: bool) -> None:
    schema = schema_of(sex={**SEX, "dpsynth": SEX["dpsynth"] | {"on_unknown": policy}})
    check = inspection.check(
        pd.DataFrame({"sex": ["1", "indeterminado", "otra"] * 9}), schema
    ).findings
    (finding,) = [one for one in check if one.place == "sex"]
    assert ("{on_unknown: other}" in finding.remedy) == advised and finding.causes == ()


@pytest.mark.parametrize("shortest", [0, 2])
def test_dates_in_the_wrong_order_name_the_other_date(shortest: int) -> None:
    later = {**DISCHARGED, "dpsynth": DISCHARGED["dpsynth"] | {"shortest": shortest}}
    schema = Schema.from_dict(document(ADMITTED, later))
    day = ["2012-01-05"] * 9
    after = ["2012-01-01"] * 3 + ["2012-01-08"] * 5 + ["2013-01-01"]
    frame = pd.DataFrame({"patient": list("abcdefghi"), "admitted": day, "discharged": after})
    (finding,) = [
        one for one in inspection.check(frame, schema).findings if one.place == "discharged"
    ]
    first = "lie less than 2 days after admitted" if shortest else "lie before admitted"
    messages = [(cause.cells, cause.message) for cause in finding.causes]
    assert messages == [(3, first), (1, "lie more than 90 days after admitted")]
    assert "shortest" in finding.causes[0].remedy and "longest" in finding.causes[1].remedy


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [("{:%d/%m/%Y} 14h05", "%d/%m/%Y %Hh%M"), ("{:%d.%m.%Y}, 14:05", "%d.%m.%Y, %H:%M")],
)
def test_the_dates_of_a_gap_are_explained_as_dates(cells: str, pattern: str) -> None:
    """Not as the whole numbers that they are coded as; also beyond the bounds of the other date."""
    schema = Schema.from_dict(document(ADMITTED, DISCHARGED))
    days = pd.date_range("2014-12-23", periods=12)
    frame = pd.DataFrame(
        {
            "patient": list("abcdefghijkl"),
            "admitted": [f"{day:%Y-%m-%d}" for day in days[:9]] + ["2014-12-31"] * 3,
            "discharged": [cells.format(day) for day in days + pd.Timedelta(3, "D")],
        }
    )
    (finding,) = [
        one for one in inspection.check(frame, schema).findings if one.place == "discharged"
    ]
    (cause,) = finding.causes
    assert cause.cells == 12 and "12 different values" in finding.message
    assert cause.remedy == f'set in the column: format: "{pattern}"'
    frame["discharged"] = frame["admitted"]
    frame["admitted"] = "soon"
    findings = {one.place: one for one in inspection.check(frame, schema).findings}
    assert findings["discharged"].remedy.startswith("it is counted from admitted, which cannot be")
    assert "different value" not in findings["discharged"].message
    frame["discharged"] = frame["admitted"] = "soon"
    findings = {one.place: one for one in inspection.check(frame, schema).findings}
    assert findings["discharged"].remedy == "compare the extract with the declared type, date"


def test_a_misspelt_name_is_pointed_at_and_not_quoted() -> None:
    with pytest.raises(TableError) as refused:
        check_names(["edad", "sexo", "creatinia", "peso"], ["edad", "creatinina", "peso"], "t.csv")
    assert "did you mean: column 3 is spelt like creatinina?" in str(refused.value)
    assert "creatinia " not in str(refused.value) and "sexo" not in str(refused.value)


@pytest.mark.parametrize(
    "written, difference",
    [
        ("CREATININA", "upper and lower case"),
        (" creatinina ", "blanks around it"),
        ("creatini\u200bna", "characters that cannot be seen"),
        ("\ufeffCreatinina", "characters that cannot be seen"),
        ("creat_inina", "signs between its words"),
    ],
)
def test_a_name_that_is_written_otherwise_is_told_and_not_quoted(
    written: str, difference: str
) -> None:
    needed = ["edad", "creatinina", "peso"]
    with pytest.raises(TableError) as refused:
        check_names(["edad", "sexo", written, "peso"], needed, "t.csv")
    assert "column 3 is creatinina except for" in str(refused.value)
    assert difference in str(refused.value)
    assert written.strip() == "creatinina" or written not in str(refused.value)
    assert "exactly as the table has them" in str(refused.value)


def test_a_header_in_capitals_is_not_taken_for_another_file() -> None:
    needed = ["edad", "sexo", "talla", "peso"]
    with pytest.raises(TableError) as refused:
        check_names([name.upper() for name in needed], needed, "t.csv")
    assert "right file" not in str(refused.value)
    assert str(refused.value).count("except for upper and lower case") == 4
    check_names([name.upper() for name in needed], [name.upper() for name in needed], "t.csv")


def test_another_file_is_taken_for_that_and_not_quoted() -> None:
    with pytest.raises(TableError) as refused:
        check_names(["Hospital de la Ría", "", ""], ["edad", "sexo", "talla", "peso"], "t.csv")
    assert "0 of 4 are there: is this the right file" in str(refused.value)
    assert "Hospital" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("declared", ["latin-1", "cp1252", "utf-8"])
def test_two_bytes_a_letter_are_recognised(encoding: str, declared: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("grade\n1\n2\n".encode(encoding))
    document = schema_of(grade=GRADE).to_dict()
    document["dpsynth"]["dialect"] = {"encoding": declared}
    with pytest.raises(TableError, match=f"encoding: {encoding}}}"):
        pd.concat(open_table(tmp_path / "t.csv", Schema.from_dict(document)).chunks())


def test_a_format_is_counted_in_all_values_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments differ from cell to cell, so most of them are beyond those that are tried."""
    monkeypatch.setattr("dpsynth.inspection.causes.MAX_TRIED", 60)
    monkeypatch.setattr("dpsynth.inspection.causes.MAX_TEXTS", 200)
    moments = pd.date_range("2015-01-13", periods=300, freq="31h")
    cells = [*moments.strftime("%d/%m/%Y %H:%M"), *moments.strftime("%d.%m.%Y %H:%M")]
    seen = field("datetime", {"minimum": "2010-01-01T00:00:00", "maximum": "2020-01-01T00:00:00"})
    check = inspection.check(
        pd.DataFrame({"seen": cells}), schema_of(seen=seen | {"format": "%d.%m.%Y %H:%M"})
    )
    [found] = [one for one in check.findings if one.key == "seen:unreadable"]
    assert (found.count, found.causes[0].cells, found.unseen) == (300, 200, 100)
    text = "\n".join(found.lines())
    assert '200 cells are dates in the format "%d/%m/%Y %H:%M"' in text
    assert "100 cells: not compared, as there are too many different values" in text
    assert "no likely cause found" not in text
