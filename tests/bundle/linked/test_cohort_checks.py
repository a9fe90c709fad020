"""What holds between tables of every kind of key, time and order, made without any fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.checks import Findings, check_cohort
from dpsynth.bundle.files import profiles_of
from dpsynth.encoding import HistoryCodec, check_table, decode_histories, typed_frames, with_keys
from dpsynth.schema import LinkedSchema, published_tables, synthetic_tables
from dpsynth.tables import table_digests, write_linked

from ...support.linked_rows import frames, patient_rows, read, together
from ...support.linked_tables import package

PATIENTS = 40
Document = dict[str, Any]


def field_of(document: Document, table: str, name: str) -> dict[str, Any]:
    """A field of a package."""
    [resource] = [one for one in document["resources"] if one["name"] == table]
    [found] = [one for one in resource["schema"]["fields"] if one["name"] == name]
    own: dict[str, Any] = found
    return own


def plain(document: Document) -> None:
    """As it stands: keys of text, dates, and rows with an order alone."""


def numbered(document: Document) -> None:
    """Keys are whole numbers, the order is text."""
    for resource in document["resources"]:
        field_of(document, resource["name"], "id")["type"] = "integer"
    field_of(document, "orders", "number")["type"] = "string"


def mixed(document: Document) -> None:
    """Values of tests are text, since they are numbers and words."""
    field_of(document, "labs", "value")["type"] = "string"
    tests = document["resources"][1]["dpsynth"]["series"]["tests"]
    tests["hdl"] |= {"type": "number", "step": 0.5}
    tests["smoke"] |= {"type": "string", "enum": ["0", "1"]}


def timed(document: Document) -> None:
    """Visits have times of day, and some patients no origin."""
    field_of(document, "visits", "date")["type"] = "datetime"
    del field_of(document, "patients", "index")["constraints"]["required"]


def dated(document: Document) -> None:
    """The end of follow-up is a date."""
    end = field_of(document, "patients", "end")
    end |= {"type": "date", "constraints": {}}
    end["dpsynth"] = {"after": "index", "longest": 3650, "unit": "d", "bounds_basis": "form"}


KINDS = {"plain": plain, "numbered": numbered, "mixed": mixed, "timed": timed, "dated": dated}


def schema_of(kind: str) -> LinkedSchema:
    document = copy.deepcopy(package())
    KINDS[kind](document)
    return LinkedSchema.from_dict(document)


def rows_of(kind: str) -> dict[str, pd.DataFrame]:
    """Rows of made-up patients, as such a hospital writes them."""
    rng = np.random.default_rng(3)
    names = [f"p{number}" if kind != "numbered" else str(number) for number in range(PATIENTS)]
    tables = frames(together([patient_rows(name, rng) for name in names]))
    patients = tables["patients"]
    if kind == "timed":
        patients.loc[:4, "index"] = ""
        tables["visits"]["date"] += "T10:00:00"
    if kind == "dated":
        days = pd.to_timedelta(patients["end"].astype(int).clip(upper=3650), unit="D")
        patients["end"] = (pd.to_datetime(patients["index"]) + days).dt.strftime("%Y-%m-%d")
    return tables


def cohort_of(kind: str) -> tuple[LinkedSchema, dict[str, pd.DataFrame]]:
    """A synthetic cohort: coded histories of made-up patients, decoded."""
    schema = schema_of(kind)
    codec = HistoryCodec(schema)
    histories = read(rows_of(kind), document=schema.to_dict())
    drawn = decode_histories(histories, codec, np.random.default_rng(1))
    return schema, with_keys(drawn, schema, np.arange(1, PATIENTS + 1))


def findings_of(folder: Path, schema: LinkedSchema, cohort: dict[str, pd.DataFrame]) -> list[str]:
    """Write a cohort as a bundle has it, and check it."""
    write_linked([cohort], folder / "data", published_tables(schema), kind=".parquet")
    findings = Findings()
    check_cohort(folder, schema, findings)
    return [problem.message for problem in findings.problems]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cohort_as_it_is_drawn_passes(tmp_path: Path, kind: str) -> None:
    schema, cohort = cohort_of(kind)
    assert all(len(frame) for frame in cohort.values())
    assert findings_of(tmp_path, schema, cohort) == []


@pytest.mark.parametrize("kind", KINDS)
def test_both_formats_of_a_table_hold_the_same(tmp_path: Path, kind: str) -> None:
    """Read from either one, the rows give the same digest, and the same bytes of both files."""
    schema, cohort = cohort_of(kind)
    for suffix in (".parquet", ".csv"):
        write_linked([cohort], tmp_path / suffix, published_tables(schema), kind=suffix)
    for name, table in synthetic_tables(schema).items():
        files = [tmp_path / suffix / f"synthetic-{name}{suffix}" for suffix in (".parquet", ".csv")]
        contents = [check_table(file, table) for file in files]
        assert contents[0] == contents[1] and contents[0][1] == []
        anew = [
            table_digests(typed_frames(file, table), table.schema, [".parquet", ".csv"])
            for file in files
        ]
        assert anew[0] == anew[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_profile_has_each_test_and_no_number_of_the_sampler(tmp_path: Path, kind: str) -> None:
    schema, cohort = cohort_of(kind)
    write_linked([cohort], tmp_path / "data", published_tables(schema), kind=".parquet")
    profiles = {one.table: one for one in profiles_of(tmp_path, schema)}
    names = {name: [c.column.name for c in one.columns] for name, one in profiles.items()}
    assert names["labs"] == ["days", "test", "hdl", "smoke", "fasting"]
    assert names["orders"] == ["drug"]
    assert names["patients"] == ["sex", "end", "index"]
    labs = {column.column.name: column for column in profiles["labs"].columns}
    assert labs["hdl"].rows + labs["smoke"].rows == profiles["labs"].rows
    assert {one.label for one in labs["smoke"].bins if one.rows} == {"0", "1"}
    assert not any(column.strange for one in profiles.values() for column in one.columns)


def test_a_table_without_rows_passes(tmp_path: Path) -> None:
    schema, cohort = cohort_of("plain")
    empty = {name: frame if name == "patients" else frame[:0] for name, frame in cohort.items()}
    write_linked([empty], tmp_path / "text", published_tables(schema))
    assert findings_of(tmp_path, schema, empty) == []
    assert [one.rows for one in profiles_of(tmp_path, schema)] == [PATIENTS, 0, 0, 0, 0]
    for name, table in synthetic_tables(schema).items():
        typed = check_table(tmp_path / f"data/synthetic-{name}.parquet", table)
        text = check_table(tmp_path / f"text/synthetic-{name}.csv", table)
        assert typed == text and typed[1] == []


def renumbered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(number=frame["number"] + 1)


def at_noon(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(date=frame["date"] + pd.Timedelta("12h"))


def of_the_first(frame: pd.DataFrame) -> pd.DataFrame:
    """The first rows are those of a patient who has no origin."""
    return frame.assign(id=["synthetic-1", *frame["id"][1:]])


CHANGES: dict[str, tuple[str, str, Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "places of rows": (
        "plain",
        "orders",
        renumbered,
        "does not number the rows of each patient from 1",
    ),
    "a time of day": (
        "timed",
        "visits",
        at_noon,
        "has times of day, which are not modelled",
    ),
    "a date without an origin": (
        "timed",
        "visits",
        of_the_first,
        "has dates of patients without an origin, from which they count",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(tmp_path: Path, name: str) -> None:
    kind, table, change, words = CHANGES[name]
    schema, cohort = cohort_of(kind)
    assert words in findings_of(tmp_path, schema, cohort | {table: change(cohort[table])})


def test_the_end_of_follow_up_may_be_a_date(tmp_path: Path) -> None:
    schema, cohort = cohort_of("dated")
    patients = cohort["patients"]
    earlier = patients.assign(end=patients["index"])
    words = "has days after the end of a patient's follow-up, column 'end'"
    assert words in findings_of(tmp_path, schema, cohort | {"patients": earlier})
