"""Tables whose names stand below title lines: `dialect.header_row`, and what stands above it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import inspection, read_table, split
from dpsynth.draft import draft_any
from dpsynth.errors import SchemaError, TableError
from dpsynth.schema import Dialect, LinkedSchema, Schema
from dpsynth.stats import perturbing
from dpsynth.tables import OptOut, Table, open_linked, open_table, split_file
from dpsynth.tables.csv import CsvTable

from ..support.schema_fields import schema_field

BASIS = {"value": 100, "basis": "made for this test"}
HEADER, ROWS = "pid,age,note\n", [f"{n:03},{20 + n},ward {n}\n" for n in range(40)]
TITLES = 'Ward 3; "made by\n\nx,y,z,"",q\n'
CANARY = "zebrafish"


def schema_of(row: int = 4, **dialect: Any) -> Schema:
    fields = [
        {"name": "pid", "type": "string", "dpsynth": {"role": "unit"}},
        schema_field("age", "integer", "made for this test", minimum=0, maximum=110),
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    ]
    own = {"version": 1, "population": BASIS, "rows": BASIS, "max_rows": BASIS}
    own["dialect"] = {"header_row": row, **dialect}
    return Schema.from_dict({"fields": fields, "dpsynth": own})


def rows_of(*tables: Table) -> list[list[Any]]:
    frames = [chunk.astype(object) for table in tables for chunk in table.chunks()]
    return pd.concat(frames).to_numpy().tolist()


CLEAN = [[line[:3], line[4:6]] for line in ROWS]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt", "t.tsv"])
def test_text_files(tmp_path: Path, name: str) -> None:
    content = TITLES + "".join([HEADER, *ROWS])
    text = (content.replace(",", "\t") if name == "t.tsv" else content).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert rows_of(open_table(tmp_path / name, schema_of())) == CLEAN
    assert len(read_table(tmp_path / name, schema_of())) == len(ROWS)


line_above = st.text(st.sampled_from('a1",;|\t\x0b\u2028\ufeff é'), max_size=12)


@settings(max_examples=60)
@given(above=st.lists(line_above, max_size=5), data=st.data())
def test_nothing_above_the_header_changes_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, above: list[str], data: st.DataObject
) -> None:
    """Odd quotes, other numbers of cells, blank lines and marks: rows and their lines are alike."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    marks = ["", "\ufeff"]
    mark, second = data.draw(st.sampled_from(marks)), data.draw(st.sampled_from(marks))
    body = "".join([HEADER, *ROWS]).replace("\n", end)
    text = mark + "".join(line + end for line in above) + (second if above else "") + body
    path.write_bytes(text.encode())
    schema = schema_of(len(above) + 1)
    table = open_table(path, schema)
    assert isinstance(table, CsvTable)
    assert rows_of(table) == CLEAN
    parts = table.parts(4)
    assert len(parts) > 1 and rows_of(*parts) == CLEAN
    found = inspection.check(path, schema)
    assert found.read["table"]["lines"] == len(above) + 1 + len(ROWS)
    assert found.read["table"]["records"] == len(ROWS)
    answers = perturbing.AnswerRows.read(path, schema)
    assert answers.frame["age"].tolist() == [age for _, age in CLEAN]


def test_an_irregular_record_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TITLES + "".join([HEADER, *ROWS[:5], "Total\n", *ROWS[5:]]))
    with pytest.raises(TableError, match="line 10: 1 field, the header has 3"):
        open_table(tmp_path / "t.csv", schema_of())
    [one] = inspection.check(tmp_path / "t.csv", schema_of()).findings
    assert "line 10" in one.message


def test_nothing_above_the_header_is_shown(tmp_path: Path) -> None:
    """Whatever is wrong with the table: its title may name a patient."""
    title = f"{CANARY};{CANARY}\n"
    contents = {
        "header": title + "".join(["a,b\n", *ROWS]),
        "short": title + "".join([HEADER, "Total\n"]),
        "no rows": title + HEADER,
        "gone": title,
        "bytes": title + HEADER + "\0\n",
    }
    for content in contents.values():
        (tmp_path / "t.csv").write_text(content)
        with pytest.raises(TableError) as caught:
            read_table(tmp_path / "t.csv", schema_of(2))
        assert CANARY not in str(caught.value)
    (tmp_path / "t.csv").write_text(title + "".join([HEADER, *ROWS, "Total\n"]))
    assert CANARY not in json.dumps(inspection.check(tmp_path / "t.csv", schema_of(2)).to_dict())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (1, "lacks 2 columns .* line 4 has all of them: write dialect: {header_row: 4}"),
        (5, "lacks 2 columns .* line 4 has all of them: write dialect: {header_row: 4}"),
        (50, "has nothing from line 50 on, where dialect.header_row says .* correct header_row"),
    ],
)
def test_a_wrong_line(tmp_path: Path, row: int, message: str) -> None:
    (tmp_path / "t.csv").write_text(TITLES.replace('"', "") + "".join([HEADER, *ROWS]))
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / "t.csv", schema_of(row))


def test_a_wrong_line_without_a_better_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("".join(["Ward\n", "pid,years,note\n", *ROWS]))
    with pytest.raises(TableError, match="lacks a column .* as dialect.header_row says"):
        open_table(tmp_path / "t.csv", schema_of(2))


def book(path: Path, above: int = 3) -> Path:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet["A1"], sheet["B1"], sheet["F2"] = f"Ward {CANARY}", "=NOW()", 17.5
    for number, line in enumerate([HEADER, *ROWS], above + 1):
        for column, cell in enumerate(line.strip().split(","), 1):
            sheet.cell(number, column, cell if number == above + 1 or column != 2 else int(cell))
    workbook.save(path)
    return path


def test_workbooks(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx")
    table = open_table(path, schema_of())
    assert table.header == ("pid", "age", "note") and rows_of(table) == CLEAN
    for row, message in ((1, "row 4 has all of them"), (60, "nothing from row 60 on")):
        with pytest.raises(TableError, match=message) as caught:
            open_table(path, schema_of(row))
        assert CANARY not in str(caught.value)
    train, holdout = split_file(path, schema_of(), tmp_path / "parts", seed=1)
    assert train.suffix == ".parquet"
    both = rows_of(open_table(train, schema_of()), open_table(holdout, schema_of()))
    assert sorted(both) == CLEAN


def test_a_sheet_far_below(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", above=1500)
    assert "dialect: {header_row: 1501}" in draft_any(header=path, header_row=1501).text
    assert rows_of(open_table(path, schema_of(1501))) == CLEAN


def test_a_split_keeps_the_line_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CANARY + TITLES + "".join([HEADER, *ROWS]))
    sides = split_file(tmp_path / "t.csv", schema_of(), tmp_path / "parts", seed=1)
    assert sorted(rows_of(*(open_table(side, schema_of()) for side in sides))) == CLEAN
    for side in sides:
        assert side.read_text().splitlines()[:4] == ["", "", "", HEADER.strip()]
    train, _ = split(read_table(tmp_path / "t.csv", schema_of()), schema_of(), seed=1)
    assert len(train) == len(rows_of(open_table(sides[0], schema_of())))


def test_an_opt_out_list_has_no_lines_above(tmp_path: Path) -> None:
    (tmp_path / "gone.csv").write_text("pid\n001\n002\n")
    assert OptOut.load(tmp_path / "gone.csv", schema_of()).keys == {"001", "002"}


def to_jsonl(frame: pd.DataFrame, path: Path) -> None:
    frame.to_json(path, orient="records", lines=True)


@pytest.mark.parametrize(
    ("name", "write"),
    [("t.jsonl", to_jsonl), ("t.dta", lambda frame, path: frame.to_stata(path, write_index=False))],
)
def test_other_formats_have_no_lines_above(
    tmp_path: Path, name: str, write: Callable[[pd.DataFrame, Path], None]
) -> None:
    write(pd.DataFrame({"pid": ["001"], "age": [3.0], "note": ["x"]}), tmp_path / name)
    with pytest.raises(TableError, match="no line stands above .*; remove header_row"):
        open_table(tmp_path / name, schema_of())


def test_linked_tables(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "resources": [
            {
                "name": "patients",
                "schema": {
                    "primaryKey": "pid",
                    "fields": [
                        {"name": "pid", "type": "string"},
                        schema_field("age", "integer", "a form", minimum=0, maximum=110),
                    ],
                },
                "dpsynth": {"dialect": {"header_row": 4}},
            },
            {
                "name": "visits",
                "schema": {
                    "foreignKeys": [
                        {"fields": "pid", "reference": {"resource": "patients", "fields": "pid"}}
                    ],
                    "fields": [
                        {"name": "pid", "type": "string"},
                        {"name": "number", "type": "integer"},
                        schema_field("weight", "number", "a form", minimum=0, maximum=300),
                    ],
                },
                "dpsynth": {
                    "order": "number",
                    "max_rows": BASIS,
                    "dialect": {"header_row": 2, "delimiter": ";"},
                },
            },
        ],
        "dpsynth": {"version": 1, "patients": "patients", "population": BASIS},
    }
    schema = LinkedSchema.from_dict(document)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    (tmp_path / "patients.csv").write_text(TITLES + "".join([HEADER, *ROWS]))
    visits = ["Visits\n", "pid;number;weight\n", "001;1;70\n", "001;2;71.5\n"]
    (tmp_path / "visits.csv").write_text("".join(visits))
    tables = open_linked(
        {name: tmp_path / f"{name}.csv" for name in ("patients", "visits")}, schema
    )
    assert rows_of(tables["visits"])[1] == ["001", "2", "71.5"]
    sides = split_file(tmp_path, schema, tmp_path / "parts", seed=1)
    found = [
        rows_of(open_linked({n: side / f"{n}.csv" for n in tables}, schema)["patients"])
        for side in sides
    ]
    assert sorted(found[0] + found[1]) == CLEAN
    assert inspection.check(tmp_path, schema).read["visits"]["lines"] == len(visits)


def test_round_trip_and_hash() -> None:
    schema, plain = schema_of(4), schema_of(1)
    assert schema.to_dict()["dpsynth"]["dialect"] == {"header_row": 4}
    assert "dialect" not in plain.to_dict()["dpsynth"] and plain.dialect == Dialect()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert schema.hash() != plain.hash()
    for wrong in (0, -1, 1.5, "3", True):
        with pytest.raises(SchemaError, match=r"dialect\.header_row: a (whole )?number"):
            schema_of(wrong)  # type: ignore[arg-type]


def test_a_draft_declares_what_a_fit_reads(tmp_path: Path) -> None:
    """Headings below a title: the drafted dialect reads the file as it stands."""
    path = tmp_path / "t.csv"
    path.write_text("Export of 2024\n\n" + "".join(["pid;age;sex\n", "1;30;F\n"]))
    text = draft_any(header=path).text
    assert 'dialect: {delimiter: ";", header_row: 3}' in text
    assert rows_of(open_table(path, schema_of(3, delimiter=";"))) == [["1", "30"]]
