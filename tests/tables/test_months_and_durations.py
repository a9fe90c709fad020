"""Columns of types yearmonth and duration: declared, read, fitted, drawn, published and judged."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth import inspection
from dpsynth.assessment import Candidate, evaluate
from dpsynth.bundle import release, verify
from dpsynth.draft import draft_schema
from dpsynth.draft.entry import Entry
from dpsynth.draft.proposal import propose
from dpsynth.encoding import Codec, check_table, typed_frames
from dpsynth.errors import InputError, SchemaError, TableError
from dpsynth.schema import LinkedSchema, Schema, contradictions
from dpsynth.schema.types import TYPES
from dpsynth.stats import StatisticsRequest
from dpsynth.tables import open_table, write_table

ROWS = 400
BASIS = {"bounds_basis": "made for this test"}
MONTH = {
    "type": "yearmonth",
    "constraints": {"minimum": "2015-03", "maximum": "2019-12"},
    "dpsynth": BASIS,
}
STAY = {
    "type": "duration",
    "constraints": {"minimum": "PT0S", "maximum": "P10D"},
    "dpsynth": BASIS | {"step": 3600},
}


def schema_of(*rules: str, month: Any = None, stay: Any = None, **more: Any) -> Schema:
    counted = {"value": ROWS, "basis": "made for this test"}
    columns = [
        {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
        {"name": "month"} | MONTH | (month or {}),
        {"name": "stay"} | STAY | (stay or {}),
        *({"name": name} | field for name, field in more.items()),
    ]
    facts = {"version": 1, "population": counted, "rows": counted, "rules": list(rules)}
    facts["max_rows"] = {"value": 1, "basis": "made for this test"}
    return Schema.from_dict({"fields": columns, "dpsynth": facts})


def drawn(schema: Schema, name: str, texts: list[str]) -> list[Any]:
    usual = {"month": "2015-03", "stay": "PT1H"}
    frame = pd.DataFrame({"key": map(str, range(len(texts)))} | usual | {name: texts})
    cells = Codec(schema).read(frame)[1][name]
    return cells.astype(object).where(cells.notna(), None).tolist()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("yearmonth", "2015-03", 542),
        ("yearmonth", "1969-12", -1),
        ("yearmonth", "2015-03-31", 542),
        ("yearmonth", "2015-03-31T23:59", 542),
        ("yearmonth", "2015-13", math.nan),
        ("yearmonth", "2015-3", math.nan),
        ("yearmonth", "03/2015", math.nan),
        ("yearmonth", "201503", math.nan),
        ("duration", "PT36H", 129_600),
        ("duration", "P1DT12H", 129_600),
        ("duration", "P2W", 1_209_600),
        ("duration", "-PT90M", -5_400),
        ("duration", "PT1M30.6S", 91),
        ("duration", "36:00", 129_600),
        ("duration", "36:00:05", 129_605),
        ("duration", "1 day, 2:03:04", 93_784),
        ("duration", "2 days 01:00", 176_400),
        ("duration", "2d 01:00", 176_400),
        ("duration", "P1M", math.nan),
        ("duration", "P1Y", math.nan),
        ("duration", "P", math.nan),
        ("duration", "PT", math.nan),
        ("duration", "P1DT", math.nan),
        ("duration", "12", math.nan),
        ("duration", "12:60", math.nan),
        ("duration", "\u0661:00", math.nan),
        ("duration", f"P{'9' * 9}W", math.nan),
        ("duration", "9" * 5_000 + ":00", math.nan),
    ],
)
def test_one_text_has_one_value(name: str, text: str, value: float) -> None:
    read = TYPES[name].read
    assert read is not None
    np.testing.assert_equal(read(text, None), float(value))


@pytest.mark.parametrize("name", [name for name, kind in TYPES.items() if kind.is_spelled])
def test_what_is_written_is_read_again_and_matches_the_spelling(name: str) -> None:
    import re

    kind = TYPES[name]
    assert kind.read is not None and kind.write is not None
    for value in (0.0, 1.0, 59.0, 86_399.0):
        text = kind.write(value)
        assert kind.read(text, None) == value and re.fullmatch(kind.spelling, text)
        assert kind.value(kind.bound(value)) == value and kind.text(value)


def test_a_format_reads_months_and_writes_bounds() -> None:
    limits = {"minimum": "03/2015", "maximum": "12/2019"}
    schema = schema_of(month={"format": "%m/%Y", "constraints": limits})
    assert schema.column("month").minimum == date(2015, 3, 1)
    assert schema.to_dict()["fields"][1]["constraints"] == limits
    assert drawn(schema, "month", ["11/2018", "2018-11", "x"])[:2] == [date_cell(2018, 11)] * 2
    formats = schema_of(month={"dpsynth": BASIS | {"formats": ["%m/%Y", "%b %Y", "default"]}})
    texts = ["11/2018", "Nov 2018", "2018-11", "2018-11-30"]
    assert drawn(formats, "month", texts) == [date_cell(2018, 11)] * 4


def date_cell(year: int, month: int) -> pd.Timestamp:
    return pd.Timestamp(year, month, 1)


def test_documents_come_back() -> None:
    schema = schema_of('month >= "2016-01"')
    assert Schema.from_dict(schema.to_dict()) == schema
    month, stay = schema.to_table_schema()["fields"]
    assert month["type"] == "yearmonth" and stay["type"] == "duration"
    assert month["constraints"] == MONTH["constraints"]
    assert stay["constraints"] == STAY["constraints"]
    assert schema.column("stay").maximum == timedelta(days=10)


@pytest.mark.parametrize(
    ("month", "message"),
    [
        ({"format": "%d/%Y"}, "is not a format of years and months, such as '%m/%Y'"),
        ({"constraints": {"minimum": "2015-03-15", "maximum": "2019-12"}}, "has no day"),
        ({"constraints": {"minimum": 201503, "maximum": "2019-12"}}, "a yearmonth like '2015-03'"),
        ({"constraints": {"minimum": "2019-12", "maximum": "2015-03"}}, "maximum is below minimum"),
        ({"constraints": {"enum": ["2015-03"]}}, "type yearmonth has bounds"),
        ({"dpsynth": BASIS | {"calendar": "weekday"}}, "a year and month has no weekday"),
        ({"dpsynth": BASIS | {"calendar": "hour"}}, "a year and month has no hour"),
        ({"dpsynth": {"after": "day", "longest": 9}}, "an interval is of type date or datetime"),
    ],
)
def test_mistakes_of_months_are_named(month: dict[str, Any], message: str) -> None:
    day = {"type": "date", "constraints": {"minimum": "2015-03-01", "maximum": "2019-12-31"}}
    with pytest.raises(SchemaError, match=message):
        schema_of(month=month, day=day | {"dpsynth": BASIS})


@pytest.mark.parametrize(
    ("stay", "message"),
    [
        ({"format": "%H:%M"}, "is not read: durations are written like P1DT12H or 36:00"),
        (
            {"constraints": {"minimum": 0, "maximum": "P10D"}},
            "in quotes, like 'P1DT12H'",
        ),
        ({"constraints": {"minimum": "PT0S", "maximum": "P1M"}}, "a duration in quotes"),
        ({"constraints": {"minimum": "PT0S"}}, "maximum: is missing"),
        ({"groupChar": ","}, "only a number with bounds has thousands"),
        ({"dpsynth": BASIS | {"censored": {"low": 5}}}, "limits of detection"),
        ({"dpsynth": BASIS | {"unit_from": {"column": "key", "h": 1}}}, "numbers with bounds"),
    ],
)
def test_mistakes_of_durations_are_named(stay: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        schema_of(stay=stay)


def test_cells_are_rounded_to_the_step_and_moved_to_the_bounds() -> None:
    texts = ["PT5H", "5:29", "P20D", "", "5 h"]
    assert drawn(schema_of(), "stay", texts) == [18_000, 18_000, 864_000, None, None]
    months = ["2014-01", "2015-04", "2025-01", "", "April 2015"]
    expected = [date_cell(2015, 3), date_cell(2015, 4), date_cell(2019, 12), None, None]
    assert drawn(schema_of(), "month", months) == expected
    mapped = schema_of(stay={"dpsynth": BASIS | {"values": {"outpatient": "PT0S"}}})
    assert drawn(mapped, "stay", ["outpatient", "PT1H"]) == [0, 3_600]


def test_rules_compare_them_with_their_own_kind() -> None:
    schema = schema_of('stay <= "PT36H"', '"2016-01" <= month')
    frame = pd.DataFrame(
        {
            "stay": pd.array([129_600, 129_660, None], dtype="Int64"),
            "month": pd.to_datetime(["2015-12-01", "2016-01-01", None]),
        }
    )
    assert [rule.holds(frame).tolist() for rule in schema.rules] == [
        [True, False, True],
        [False, True, True],
    ]
    for rule, message in (
        ("stay <= 36", "compares duration with number"),
        ('stay <= "36 h"', "write durations like 'P1DT12H'"),
        ('month >= "March"', "write dates like"),
        ("month >= stay", "compares date with duration"),
        ('age <= "PT36H"', "compares number with text"),
    ):
        age = {"type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "dpsynth": BASIS}
        with pytest.raises(SchemaError, match=message):
            schema_of(rule, age=age)
    day = {"type": "date", "constraints": {"minimum": "2015-03-01", "maximum": "2019-12-31"}}
    with pytest.raises(SchemaError, match="write dates like"):
        schema_of('day >= "2015-03"', day=day | {"dpsynth": BASIS})


def test_rules_that_no_row_can_meet_are_found() -> None:
    for rule in ('month > "2019-12"', 'month < "2015-03"', 'stay > "P10D"', 'stay < "PT0S"'):
        assert list(contradictions(schema_of(rule))), rule
    assert not list(contradictions(schema_of('month >= "2019-12"', 'stay >= "P10D"')))
    between = 'month > "2016-01-01" and month < "2016-02-01"'  # months count as their first days
    assert list(contradictions(schema_of(between)))


def test_orders_hold_by_construction() -> None:
    longer = STAY | {"constraints": {"minimum": "PT0S", "maximum": "P11D"}}
    rules: list[Any] = [{"order": "month <= seen"}, {"order": "stay < total"}]
    seen = schema_of(*rules, seen=MONTH, total=longer)
    frame = pd.DataFrame({"key": ["1"], "month": ["2016-01"], "seen": ["2016-03"]})
    frame = frame.assign(stay="PT1H", total="PT5H")
    codec = Codec(seen)
    gaps = {column.name: column.ucum for column in codec.schema.modelled}
    assert gaps["seen"] == "mo"
    codes, typed = codec.read(frame)
    assert typed["seen"].tolist() == [2] and typed["total"].tolist() == [
        10_800
    ]  # 3 hours above the least, 2 hours
    decoded = codec.decode(np.repeat(codes, 50, axis=0), np.random.default_rng(1))
    assert (decoded["month"] <= decoded["seen"]).all() and (
        decoded["stay"] < decoded["total"]
    ).all()


def test_a_month_keeps_the_seasons() -> None:
    schema = schema_of(month={"dpsynth": BASIS | {"calendar": "month"}})
    frame = pd.DataFrame({"key": [str(n) for n in range(48)], "stay": "PT1H"})
    frame["month"] = [str(np.datetime64("2015-03") + n) for n in range(48)]
    codec = Codec(schema)
    codes, _ = codec.read(frame)
    decoded = codec.decode(codes, np.random.default_rng(1))["month"]
    wanted = pd.to_datetime(frame["month"]).dt.month
    assert (decoded.dt.month == wanted).all() and (decoded.dt.day == 1).all()


def test_typed_durations_and_numbers_are_refused_and_dates_are_months(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": ["a", "b"], "month": ["2015-03", "2015-04"], "stay": "PT1H"})
    for cells in (pd.to_timedelta(["1h", "2h"]), [3_600, 7_200]):
        with pytest.raises(TableError, match="stay.*must be text"):
            list(open_table(frame.assign(stay=cells), schema_of()).chunks())
    with pytest.raises(TableError, match="its type is yearmonth"):
        list(open_table(frame.assign(month=[201_503, 201_504]), schema_of()).chunks())
    days = pd.to_datetime(["2015-03-31", "2015-04-01"])
    frame.assign(month=days).to_parquet(tmp_path / "t.parquet")
    read = pd.concat(open_table(tmp_path / "t.parquet", schema_of()).chunks())
    assert Codec(schema_of()).read(read)[1]["month"].tolist() == [
        date_cell(2015, 3),
        date_cell(2015, 4),
    ]


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    months = [str(np.datetime64("2015-03") + int(n)) for n in rng.integers(0, 58, ROWS)]
    months[:2] = ["", "Q1 2015"]
    stays = [f"{hours}:00" for hours in rng.integers(24, 72, ROWS)]
    stays[:4] = ["", "long", "P1DT12H", "2 days 01:00"]
    path = tmp_path_factory.mktemp("months") / "t.csv"
    keys = [f"P{n}" for n in range(ROWS)]
    pd.DataFrame({"key": keys, "month": months, "stay": stays}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def bundle(extract: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    schema = schema_of('month >= "2015-03"', 'stay <= "P9D"')
    run = dpsynth.fit(
        extract, schema, epsilon=5.0, delta=1e-6, dataset="stays", model="independent"
    )
    run.save(folder / "run")
    return release(folder / "run", folder / "bundle", size=300, seed=1)


def test_they_go_from_a_file_to_a_bundle(bundle: Path) -> None:
    assert verify(bundle)
    table = pq.read_table(bundle / "data" / "synthetic.parquet")
    assert [str(field.type) for field in table.schema] == ["date32[day]", "duration[s]"]
    text = pd.read_csv(bundle / "data" / "synthetic.csv", dtype=str)
    months = [cell and f"{cell:%Y-%m}" for cell in table.column("month").to_pylist()]
    assert text["month"].astype(object).where(text["month"].notna(), None).tolist() == months
    assert text["stay"].dropna().str.fullmatch(r"P[0-9]DT?([0-9]+H)?|PT[0-9]+H|PT0S").all()
    hours = table.column("stay").cast(pa.int64()).to_pandas() / 3600
    assert 40 < hours.median() < 56
    document = json.loads((bundle / "croissant.json").read_text())
    kinds = {one["name"]: one["dataType"] for one in document["recordSet"][0]["field"]}
    assert kinds == {"month": "sc:Text", "stay": "sc:Text"}
    package = json.loads((bundle / "datapackage.json").read_text())
    types = {
        (resource["path"].rpartition(".")[2], field["name"]): field["type"]
        for resource in package["resources"]
        for field in resource.get("schema", {}).get("fields", [])
        if field["name"] in ("month", "stay")
    }
    assert types == {
        ("csv", "month"): "yearmonth",
        ("csv", "stay"): "duration",
        ("parquet", "month"): "date",
        ("parquet", "stay"): "duration",
    }
    page = (bundle / "report.html").read_text()
    assert "2015-03 to 2019-12" in page and "PT0S to P10D" in page


def test_text_and_typed_cells_read_the_same(bundle: Path) -> None:
    [typed] = typed_frames(bundle / "data" / "synthetic.parquet", schema_of())
    [text] = typed_frames(bundle / "data" / "synthetic.csv", schema_of())
    pd.testing.assert_frame_equal(typed, text)
    assert not (typed["month"].dt.day != 1).any() and (typed["stay"].dropna() % 3600 == 0).all()


@pytest.mark.parametrize(
    ("name", "cells", "message"),
    [
        ("month", ["2016-01-01", "2016-02"], "not of type yearmonth: 1 cell"),
        ("month", ["01/2016", "2016-02"], "not of type yearmonth: 1 cell"),
        ("stay", ["PT36H", "PT1H"], "not of type duration: 1 cell"),
        ("stay", ["P01D", "P1DT"], "not of type duration: 2 cells"),
        ("stay", ["36:00", "P11D"], "above the maximum, P10D: 1 cell"),
        ("stay", ["PT1H1M", "PT1H"], "between two steps of the resolution, 3600: 1 cell"),
    ],
)
def test_another_spelling_is_refused(
    tmp_path: Path, name: str, cells: list[str], message: str
) -> None:
    frame = pd.DataFrame({"month": ["2016-01"] * 2, "stay": ["PT1H"] * 2} | {name: cells})
    frame.to_csv(tmp_path / "t.csv", index=False)
    _, problems = check_table(tmp_path / "t.csv", schema_of())
    assert message in " ".join(problem.message for problem in problems)


def test_another_parquet_type_and_a_later_day_are_refused(tmp_path: Path) -> None:
    stays = pa.array([3_600], pa.duration("s"))
    days = pa.array([date(2016, 1, 1)], pa.date32())
    for month, stay, sound in (
        (days, stays, True),
        (pa.array([date(2016, 1, 2)], pa.date32()), stays, False),
        (pa.array(["2016-01"]), stays, False),
        (days, pa.array([3_600]), False),
        (days, stays.cast(pa.duration("ms")), False),
    ):
        pq.write_table(pa.table({"month": month, "stay": stay}), tmp_path / "t.parquet")
        assert (not check_table(tmp_path / "t.parquet", schema_of())[1]) == sound


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_evaluation_reads_what_a_release_wrote(bundle: Path, extract: Path, suffix: str) -> None:
    table = bundle / "data" / f"synthetic.{suffix}"
    found = evaluate(schema_of(), extract, Candidate("out", table))
    assert not [note for note in found["notes"] if "departs" in note]
    columns = {one["name"]: one for one in found["parts"]["fidelity"]["columns"]}
    assert any(label.startswith("2015-") for label in columns["month"]["bins"])
    assert any(" to P1DT" in label for label in columns["stay"]["bins"])


def test_a_check_says_what_is_dropped_and_what_cannot_be_read(extract: Path) -> None:
    findings = {
        finding.place: finding for finding in inspection.check(extract, schema_of()).findings
    }
    assert {"month", "stay"} <= findings.keys()
    slashed = pd.read_csv(extract, dtype=str)
    slashed["month"] = [f"{n % 12 + 1:02}/2016" for n in range(ROWS)]
    slashed["stay"] = "2016-03-04"
    causes = {one.place: str(one.causes) for one in inspection.check(slashed, schema_of()).findings}
    assert 'are dates in the format "%m/%Y"' in causes["month"]
    dated = pd.read_csv(extract, dtype=str)
    dated["month"] = "2016-03-04"
    causes = {one.place: str(one.causes) for one in inspection.check(dated, schema_of()).findings}
    assert "have a day; a fit keeps the year and month alone" in causes["month"]


def test_drafts_propose_them(tmp_path: Path) -> None:
    rows = [["name", "type", "minimum", "maximum"], ["a1", "Dauer", "PT0S", "P10D"]]
    rows += [["a2", "yearmonth", "2015-03", "2019-12"]]
    (tmp_path / "d.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    draft = draft_schema(dictionary=tmp_path / "d.csv").text
    assert "type: duration" in draft and "maximum: P10D" in draft
    assert "type: yearmonth" in draft and "2019-12" in draft
    for kind, low, high in (("yearmonth", "2015-03", "2019-12"), ("duration", "PT0S", "P10D")):
        entry = Entry("total", "row 3", kind=kind, minimum=low, maximum=high)
        document = propose(entry, "dictionary").document
        assert document["type"] == kind
        assert document["constraints"] == {"minimum": low, "maximum": high}
        assert propose(Entry("total", kind=kind), "header").is_open


def test_a_frame_is_written_as_the_bundle_is(tmp_path: Path) -> None:
    codec = Codec(schema_of())
    frame = codec.decode(np.zeros((2, 2), dtype=np.uint16), np.random.default_rng(1))
    write_table([frame], tmp_path / "t.csv", codec.schema)
    assert (tmp_path / "t.csv").read_text().startswith("month,stay\n2015-0")


def test_statistics_count_by_month_and_average_durations(extract: Path) -> None:
    asked = {
        "schema": schema_of().to_dict(),
        "statistics": [
            {"name": "years", "count": "rows", "by": [{"month": "year"}]},
            {"name": "stay", "mean": "stay"},
        ],
    }
    budget: dict[str, Any] = {"epsilon": 9.0, "delta": 1e-6, "dataset": "stays"}
    found = dpsynth.statistics(extract, StatisticsRequest.from_dict(asked), **budget)
    assert found.table("years")["month"].tolist()[:5] == ["2015", "2016", "2017", "2018", "2019"]
    assert abs(found.table("stay")["mean"][0] / 3600 - 48) < 4  # it is in seconds
    with pytest.raises(InputError, match="dates without a time of day"):
        asked["statistics"] = [{"name": "hours", "count": "rows", "by": [{"month": "hour"}]}]
        dpsynth.statistics(extract, StatisticsRequest.from_dict(asked), **budget)


@pytest.mark.parametrize(("kind", "limits"), [("yearmonth", MONTH), ("duration", STAY)])
def test_tests_of_a_long_table_cannot_have_them(kind: str, limits: dict[str, Any]) -> None:
    counted = {"value": ROWS, "basis": "made for this test"}
    sex = {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": BASIS}
    names = ("id", "test", "value")
    fields = [{"name": "day", "type": "integer"}, *({"name": n, "type": "string"} for n in names)]
    key = [{"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}]
    tests = {
        "hb": {"type": "number", "minimum": 0, "maximum": 20} | BASIS,
        "last": {"type": kind} | limits["constraints"] | BASIS,
    }
    series = {"column": "test", "value": "value", "tests": tests}
    own = {"time": "day", "max_rows": counted, "series": series}
    patients = {"primaryKey": ["id"], "fields": [{"name": "id", "type": "string"}, sex]}
    window = {"first": 0, "last": 100, "basis": "made for this test"}
    document = {
        "resources": [
            {"name": "patients", "schema": patients},
            {"name": "labs", "schema": {"foreignKeys": key, "fields": fields}, "dpsynth": own},
        ],
        "dpsynth": {"version": 1, "patients": "patients", "population": counted, "window": window},
    }
    with pytest.raises(SchemaError, match=f"'last' is of type {kind}, which a test cannot have"):
        LinkedSchema.from_dict(document)
