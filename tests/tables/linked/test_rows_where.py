"""Linked tables that share one source: each says which rows are its own (`rows_where`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth
from dpsynth import inspection
from dpsynth._util.strict_yaml import yaml_text
from dpsynth.assessment import attack_audit, repeated_audits, training_audit
from dpsynth.errors import NoRowsError, SchemaError, TableError
from dpsynth.inspection import write_values
from dpsynth.schema import LinkedSchema
from dpsynth.tables import (
    OptOut,
    chosen,
    linked_sources,
    open_columns,
    open_linked,
    open_table,
    split_file,
)
from dpsynth.workflow import Settings, run_stages

from ...support.audited_office import PASSED
from ...support.command_line import Cli
from ...support.history_cohorts import grow_few_trees
from ...support.repeating_forms import PLACES, export_text, package, records, write_project

SCHEMA = LinkedSchema.from_dict(package())
CANARY = "zebrafish"


def rows_of(data: Any, schema: LinkedSchema = SCHEMA) -> dict[str, list[list[Any]]]:
    tables = open_linked(linked_sources(data, schema), schema)
    found: dict[str, list[list[Any]]] = {name: [] for name in tables}
    for name, table in tables.items():
        with suppress(NoRowsError):
            for chunk in table.chunks():
                found[name] += chunk.astype(object).to_numpy().tolist()
    return found


def expected(rows: list[dict[str, str]]) -> dict[str, int]:
    forms = [row.get("redcap_repeat_instrument", "") for row in rows]
    names = {"patients": "", "medications": "medications", "labs": "labs"}
    return {name: forms.count(form) for name, form in names.items()}


def counts(data: Any, schema: LinkedSchema = SCHEMA) -> dict[str, int]:
    return {name: len(rows) for name, rows in rows_of(data, schema).items()}


def test_each_table_has_its_rows(tmp_path: Path) -> None:
    _, export = write_project(tmp_path)
    found = rows_of(export)
    assert {name: len(rows) for name, rows in found.items()} == expected(records(60))
    assert found["patients"][0][0] == "1" and len(found["patients"][0]) == 7
    gone = {"redcap_repeat_instrument", "redcap_repeat_instance"}
    assert not gone & {column.name for column in SCHEMA.patients.modelled}
    assert LinkedSchema.from_dict(json.loads(json.dumps(SCHEMA.to_dict()))) == SCHEMA
    written = SCHEMA.to_dict()["resources"][1]
    assert written["dpsynth"]["rows_where"] == {"redcap_repeat_instrument": "medications"}
    assert written["schema"]["fields"][1] == {"name": "redcap_repeat_instrument", "type": "string"}


def to_workbook(frame: pd.DataFrame, folder: Path) -> str:
    book = openpyxl.Workbook()
    for row in [list(frame.columns), *frame.to_numpy().tolist()]:
        book.active.append(row)
    book.save(folder / "export.xlsx")
    return str(folder / "export.xlsx")


def to_sheet(frame: pd.DataFrame, folder: Path) -> str:
    return to_workbook(frame, folder) + "#Sheet"


def to_parquet(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_parquet(folder / "export.parquet")
    return str(folder / "export.parquet")


def to_sqlite(frame: pd.DataFrame, folder: Path) -> str:
    engine = sa.create_engine(f"sqlite:///{folder / 'export.sqlite'}")
    frame.to_sql("records", engine, index=False)
    return str(folder / "export.sqlite#records")


def to_mapping(frame: pd.DataFrame, folder: Path) -> Mapping[str, Any]:
    return dict.fromkeys(SCHEMA.table_names, frame)


def to_folder(frame: pd.DataFrame, folder: Path) -> Path:
    """A file a table, each with all rows: they are chosen there, too."""
    for name in SCHEMA.table_names:
        frame.to_csv(folder / f"{name}.csv", sep=";", index=False)
    return folder


WRITERS = {
    "frame": lambda frame, folder: frame,
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "mapping": to_mapping,
    "workbook": to_workbook,
    "sheet": to_sheet,
    "parquet": to_parquet,
    "sqlite": to_sqlite,
    "folder": to_folder,
}


@pytest.mark.parametrize("how", WRITERS)
def test_wherever_the_rows_lie(tmp_path: Path, how: str) -> None:
    rows = records(30)
    frame = pd.DataFrame(rows, dtype=object)
    frame = frame.where(frame.notna(), None)
    data = WRITERS[how](frame, tmp_path)
    assert counts(data) == expected(rows)


@pytest.mark.parametrize("how", ["csv", "workbook", "sqlite", "folder"])
def test_a_split(tmp_path: Path, how: str) -> None:
    rows = records(60)
    _, export = write_project(tmp_path)
    frame = pd.DataFrame(rows, dtype=object)
    (tmp_path / "in").mkdir()
    clean = frame.where(frame.notna(), None)
    data = export if how == "csv" else WRITERS[how](clean, tmp_path / "in")
    gone = OptOut.of(["7", "8"], SCHEMA.patients)
    sides = split_file(data, SCHEMA, tmp_path / "parts", seed=3, opt_out=gone)
    found = [rows_of(side) for side in sides]
    left = [row for row in rows if row["record_id"] not in ("7", "8")]
    both = {name: len(found[0][name]) + len(found[1][name]) for name in SCHEMA.table_names}
    assert both == expected(left)
    for own in found:
        keys = {row[0] for row in own["patients"]}
        assert {row[0] for name in ("medications", "labs") for row in own[name]} <= keys
    if how == "csv":
        lines = (sides[0] / "labs.csv").read_text().splitlines()
        assert set(lines) <= set(export.read_text().splitlines()), "rows are copied as they stand"


def test_a_split_of_a_frame() -> None:
    frame = pd.DataFrame(records(60), dtype=object)
    train, rest = dpsynth.split(frame, SCHEMA, seed=3)
    both = {name: len(train[name]) + len(rest[name]) for name in SCHEMA.table_names}
    assert both == expected(records(60))


@settings(max_examples=40)
@given(
    cells=st.lists(st.sampled_from(["", "labs", " labs", "Labs", "x", None]), max_size=8),
    other=st.lists(st.sampled_from(["", "labs", "x", None]), max_size=4),
    place=st.integers(0, 8),
)
def test_a_row_belongs_to_a_table_by_its_own_cells(
    cells: list[str | None], other: list[str | None], place: int
) -> None:
    """Other rows, before or behind it, change nothing; nor do the types of their cells."""

    def told(texts: list[str | None]) -> list[bool]:
        frame = pd.DataFrame({"form": pd.Series(texts, dtype=object)})
        return [bool(one) for one in chosen(frame, [("form", ("labs",))])]

    alone = [told([cell])[0] for cell in cells]
    assert told(cells) == alone
    both = [*cells[:place], *other, *cells[place:]]
    within = told(both)
    assert [*within[: len(cells[:place])], *within[len(cells[:place]) + len(other) :]] == alone
    assert alone == [cell is not None and cell.strip() == "labs" for cell in cells]


def test_rows_of_several_columns_and_values() -> None:
    frame = pd.DataFrame({"event": ["a", "b", "c", "a"], "form": ["", "", "", "x"]})
    where = (("event", ("a", "b")), ("form", ("",)))
    assert chosen(frame, where).tolist() == [True, True, False, False]


def test_a_longitudinal_project(tmp_path: Path) -> None:
    """Events of a record: the first has the fields of patients, the others are visits."""
    document = package()
    event = {"name": "redcap_event_name", "type": "string"}
    patients, _, visits = document["resources"]
    for table in (patients, visits):
        table["schema"]["fields"] = [*table["schema"]["fields"], event]
    patients["dpsynth"]["rows_where"]["redcap_event_name"] = "enrolment_arm_1"
    names = ["month_1_arm_1", "month_6_arm_1"]
    visits["dpsynth"]["rows_where"] = {"redcap_repeat_instrument": "", "redcap_event_name": names}
    own = {"bounds_basis": "the project's events"}
    modelled = event | {"constraints": {"enum": names}, "dpsynth": own}
    visits["schema"]["fields"] = [*visits["schema"]["fields"][:-1], modelled]
    schema = LinkedSchema.from_dict(document)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    assert "redcap_event_name" in [c.name for c in schema.child("labs").schema.modelled]
    assert "redcap_event_name" not in [c.name for c in schema.patients.modelled]
    rows = [
        {"record_id": key, "redcap_event_name": name, "crp": "1,5"}
        for key in ("1", "2")
        for name in ("enrolment_arm_1", *names, "unplanned_arm_1")
    ]
    header = (*rows[0], *(c.name for c in schema.patients.columns if c.name not in rows[0]))
    header += ("med_name", "med_dose", "med_start", "medications_complete", "fasting", PLACES[2])
    (tmp_path / "export.csv").write_text(export_text(rows, header))
    assert counts(tmp_path / "export.csv", schema) == {
        "patients": 2, "medications": 0, "labs": 4,
    }  # fmt: skip
    [left] = [
        one
        for one in inspection.check(tmp_path / "export.csv", schema).findings
        if one.kind == "of-no-table"
    ]
    assert (left.count, left.total) == (2, 8)


def test_a_check_counts_rows_of_no_table(tmp_path: Path, command_line: Cli) -> None:
    rows = records(60)
    for row in rows[:3]:
        row["redcap_repeat_instrument"] = CANARY
    (tmp_path / "export.csv").write_text(export_text(rows))
    found = inspection.check(tmp_path / "export.csv", SCHEMA)
    [one] = [one for one in found.findings if one.kind == "of-no-table"]
    assert (one.place, one.count, one.total) == ("patients", 3, len(rows))
    assert one.level.word == "warning" and CANARY not in json.dumps(found.to_dict())
    write_values(found, tmp_path / "values.yaml")
    assert CANARY in (tmp_path / "values.yaml").read_text()
    (tmp_path / "p.yaml").write_text(yaml_text(SCHEMA.to_dict()))
    ended = command_line("schema", "check", "p.yaml", "export.csv")
    assert ended.code == 0, ended.err
    assert f"(3 of {len(rows)} rows) of its source belong to no table" in ended.out
    assert CANARY not in ended.out + ended.err
    lines = len(rows) + 1
    assert f"from {len(rows)} records below the header, on {lines} lines" in ended.out


def test_a_clean_export_has_no_finding(tmp_path: Path) -> None:
    """Columns of other tables are not called unread."""
    _, export = write_project(tmp_path)
    kinds = [(one.place, one.kind) for one in inspection.check(export, SCHEMA).findings]
    assert kinds == [("patients", "replaced")], "labs_complete, of no table, is told of once"


def test_findings_have_the_lines_of_the_file(tmp_path: Path) -> None:
    """A row that is unlike all others of its table is named by its line in the whole file."""
    rows = records(60)
    places = [n for n, row in enumerate(rows) if "crp" in row]
    rows[places[-1]]["record_id"] = "Total of all"
    (tmp_path / "export.csv").write_text(export_text(rows))
    found = inspection.check(tmp_path / "export.csv", SCHEMA)
    texts = [one.message for one in found.findings if one.kind == "unlike-rows"]
    assert not texts, "keys are judged in all tables together"
    tables = open_linked(linked_sources(tmp_path / "export.csv", SCHEMA), SCHEMA, whole=False)
    table: Any = tables["labs"]
    logged = table.logged("record_id")
    assert sum(len(chunk) for chunk in logged.chunks()) == len(places)
    assert [logged.log.line_of(n) for n in range(len(places))] == [p + 2 for p in places]


def test_a_broken_line_is_refused_for_all_tables(tmp_path: Path) -> None:
    text = export_text(records(20)) + "Total;20\n"
    (tmp_path / "export.csv").write_text(text)
    with pytest.raises(TableError, match="2 fields, the header has"):
        open_linked(linked_sources(tmp_path / "export.csv", SCHEMA), SCHEMA)
    kinds = {one.kind for one in inspection.check(tmp_path / "export.csv", SCHEMA).findings}
    assert "short-lines" in kinds


def test_a_value_that_no_row_has(tmp_path: Path) -> None:
    _, export = write_project(tmp_path)
    document = package()
    document["resources"][2]["dpsynth"]["rows_where"] = {"redcap_repeat_instrument": "lab"}
    found = inspection.check(export, LinkedSchema.from_dict(document))
    assert found.serious == ("patients:of-no-table",), "a run stops before it charges anything"
    assert "no row is of table labs: correct its rows_where" in found.findings[0].remedy
    document["resources"][2]["dpsynth"]["rows_where"] = {"redcap_repeat_instrument": "labs"}
    mended = inspection.check(export, LinkedSchema.from_dict(document))
    assert "of-no-table" not in {one.kind for one in mended.findings}
    document["resources"][0]["dpsynth"]["rows_where"] = {"redcap_repeat_instrument": "none"}
    with pytest.raises(TableError, match="table patients: .* compare it with the source"):
        inspection.check(export, LinkedSchema.from_dict(document))


def test_titles_above_the_header(tmp_path: Path) -> None:
    _, export = write_project(tmp_path, title=f'{CANARY} "export\n\n')
    schema = LinkedSchema.from_dict(package(header_row=3))
    assert counts(export, schema) == expected(records(60))
    sides = split_file(export, schema, tmp_path / "parts", seed=3)
    both = [counts(side, schema) for side in sides]
    assert both[0]["labs"] + both[1]["labs"] == expected(records(60))["labs"]


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    _, export = write_project(tmp_path)
    export.write_text(export.read_text().replace("redcap_repeat_instrument", "form", 1))
    with pytest.raises(TableError, match="lacks a column of the schema: redcap_repeat_instrument"):
        open_linked(linked_sources(export, SCHEMA), SCHEMA)


def test_one_table_of_it_as_a_frame(tmp_path: Path) -> None:
    """What `read_table` gives can be fitted: the column that chooses rows is kept."""
    _, export = write_project(tmp_path)
    child = SCHEMA.child("labs").schema
    frame = dpsynth.read_table(export, child)
    assert len(frame) == expected(records(60))["labs"]
    assert set(frame["redcap_repeat_instrument"]) == {"labs"}
    assert sum(len(c) for c in open_table(frame, child).chunks()) == len(frame)
    plain = replace(child, rows_where=())
    whole = open_columns(export, plain, ("crp",), private=True)
    assert sum(len(c) for c in whole.chunks()) == len(records(60))


def test_some_tables_alone(tmp_path: Path) -> None:
    """One file is taken only if each table says which rows are its own."""
    _, export = write_project(tmp_path)
    document = package()
    del document["resources"][2]["dpsynth"]["rows_where"]
    document["resources"][2]["schema"]["fields"].pop(1)
    schema = LinkedSchema.from_dict(document)
    with pytest.raises(TableError, match="share one file if each says by rows_where .* labs does"):
        linked_sources(export, schema)
    sources = {"patients": export, "medications": export, "labs": export}
    assert counts(sources, schema)["labs"] == len(records(60))


def with_where(where: Any, table: int = 2, **field: Any) -> dict[str, Any]:
    document = package()
    document["resources"][table]["dpsynth"]["rows_where"] = where
    fields = document["resources"][table]["schema"]["fields"]
    fields[1] = fields[1] | field
    return document


FORM = "redcap_repeat_instrument"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (with_where({"redcap_repeat_instrumet": "labs"}), "no column .*did you mean"),
        (with_where({FORM: 1}), r"rows_where.*text is expected, not 1: write it in quotes"),
        (with_where({FORM: True}), r"rows_where.*text is expected"),
        (with_where({FORM: None}), 'is missing: a text or a list of texts; "" for an empty cell'),
        (with_where({FORM: []}), "a text or a list of texts is expected, not an empty list"),
        (with_where({FORM: "TODO"}), "is still TODO"),
        (with_where({}), "name a column, and what it holds in the rows of this table"),
        (with_where("labs"), "a mapping is expected"),
        (with_where({FORM: "labs"}, type="integer"), "a column of type string is expected"),
        (with_where({FORM: "labs"}, dpsynth={"role": "drop"}), "its place says it; remove"),
        (with_where({"record_id": "1"}), "'record_id' is the patient's key already"),
        (with_where({"record_id": "1"}, 0), "'record_id' is the primaryKey already"),
        (with_where({"redcap_repeat_instance": "1"}), "'redcap_repeat_instance' is order already"),
        (with_where({"med_start": "2021-01-01"}, 1), "'med_start' is time already"),
    ],
)  # fmt: skip
def test_mistakes(document: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        LinkedSchema.from_dict(document)


def test_a_schema_of_one_table_has_no_such_key() -> None:
    with pytest.raises(SchemaError, match="rows_where"):
        dpsynth.Schema.from_dict(
            {
                "fields": [{"name": "x", "type": "boolean"}],
                "dpsynth": {"version": 1, "rows_where": {"x": "1"}},
            }
        )


def test_a_whole_run_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run splits the file, fits, samples, judges and releases; the source is one file."""
    grow_few_trees(monkeypatch)
    monkeypatch.setattr(attack_audit, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(repeated_audits, "canaries_needed", lambda *_, **__: None)
    monkeypatch.setattr(training_audit, "DRAWN", 100)
    _, export = write_project(tmp_path, 200)
    LinkedSchema.from_dict(package(200)).save(tmp_path / "p.yaml")
    order = Settings.of(
        schema=str(tmp_path / "p.yaml"),
        data=str(export),
        dataset="registry",
        epsilon=8.0,
        delta=1e-5,
        output=tmp_path / "bundle",
        rows=150,
        attacks=False,
        canaries=100,
    )
    outcome = run_stages(order)
    assert {state.state for state in outcome.states} <= {"done", "skipped"}, outcome.states
    assert outcome.order.references()[0].path == export and len(outcome.order.references()) == 1
    shown = [*tmp_path.glob("bundle/**/*"), *tmp_path.glob("bundle/*")]
    names = {path.name for path in shown}
    assert {"synthetic-patients.csv", "synthetic-medications.csv", "synthetic-labs.csv"} <= names
