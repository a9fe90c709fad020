"""Time in hours or minutes since the origin, from numbers or from dates and times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.checks import Findings, check_cohort
from dpsynth.encoding import HistoryCodec, decode_histories, read_histories, with_keys
from dpsynth.inspection import check, lost_calendar
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import open_synthetic_linked, write_linked, written_schema

from ..support.dated_tables import hourly_rows, in_hours
from ..support.document_mistakes import problems_of, with_value
from ..support.linked_rows import InOrder, Tables, read


def cohort(kind: str = "datetime", patients: int = 40) -> tuple[Tables, LinkedSchema]:
    document = in_hours(kind=kind)
    schema = LinkedSchema.from_dict(document)
    histories = read(hourly_rows(patients, kind), document=document)
    drawn = decode_histories(histories, HistoryCodec(schema), np.random.default_rng(1))
    return with_keys(drawn, schema, np.arange(1, patients + 1)), schema


def problems(folder: Path, made: Tables, schema: LinkedSchema) -> list[str]:
    write_linked([made], folder / "data", published_tables(schema), kind=".parquet")
    findings = Findings()
    check_cohort(folder, schema, findings)
    return [problem.message for problem in findings.problems]


@pytest.mark.parametrize("kind", ["datetime", "integer"])
def test_rows_count_in_hours(kind: str) -> None:
    document, tables = in_hours(kind=kind), hourly_rows(30, kind)
    histories = read(tables, document=document)
    vitals = histories.rows[0][0]
    codes = HistoryCodec(LinkedSchema.from_dict(document))
    assert (histories.ends >= 4).all() and (histories.ends <= 72).all()
    for patient in range(30):
        hours = vitals.days[vitals.patients == patient]
        assert hours.tolist() == list(range(histories.ends[patient]))
        assert histories.onsets[patient].max() == histories.ends[patient]
    assert codes.tables[0].longest == 24 and codes.last == 72


def test_decoded_rows_lie_so_many_hours_after_the_admission() -> None:
    document = in_hours()
    schema = LinkedSchema.from_dict(document)
    before = read(hourly_rows(50), document=document)
    made = decode_histories(before, HistoryCodec(schema), np.random.default_rng(1))
    vitals, patients = made["vitals"], made["patients"].set_index("id")
    since = vitals["at"] - patients["admitted"].loc[vitals["id"]].to_numpy()
    hours = since / pd.Timedelta(hours=1)
    assert (hours == before.rows[0][0].days).all()
    assert (vitals["at"] <= patients["left"].loc[vitals["id"]].to_numpy()).all()
    after = read_histories(
        open_synthetic_linked(made, schema), HistoryCodec(written_schema(schema)), InOrder(1)
    )
    assert (after.rows[0][0].days == before.rows[0][0].days).all()
    assert (after.onsets == before.onsets).all() and (after.ends == before.ends).all()


def test_minutes_count_alike() -> None:
    document = in_hours("min")
    tables = hourly_rows(10)
    first = pd.to_datetime(tables["patients"]["admitted"])
    tables["patients"]["left"] = (first + pd.Timedelta(minutes=70)).astype(str).to_numpy()
    histories = read(tables, document=document)
    assert histories.ends.tolist() == [70] * 10
    assert set(histories.rows[0][0].days.tolist()) == {40, 70}


@pytest.mark.parametrize("kind", ["datetime", "integer"])
def test_a_cohort_passes(kind: str, tmp_path: Path) -> None:
    made, schema = cohort(kind)
    assert problems(tmp_path, made, schema) == []


def test_a_row_after_the_last_hour_is_found(tmp_path: Path) -> None:
    made, schema = cohort()
    of_first = made["vitals"].index[made["vitals"]["id"] == made["vitals"]["id"].iloc[0]][-1]
    made["vitals"].loc[of_first, "at"] += pd.Timedelta(hours=2)
    assert "has days after the end of a patient's follow-up, column 'left'" in problems(
        tmp_path, made, schema
    )


def test_hours_too_far_apart_are_found(tmp_path: Path) -> None:
    made, schema = cohort("integer")
    vitals = made["vitals"]
    long = vitals["id"].map(vitals["id"].value_counts()) > 30
    made["vitals"] = vitals[~(long & vitals["at"].between(1, 28))].reset_index(drop=True)
    assert "has rows of a patient more than 24 hours apart" in problems(tmp_path, made, schema)


def test_tables_are_checked_in_hours() -> None:
    tables, schema = hourly_rows(40), LinkedSchema.from_dict(in_hours())
    found = [one.kind for one in check(tables, schema).findings if one.level.word != "note"]
    assert {*found} == {"units", "schema"}  # fewer patients than declared, hours of the admission
    late = tables["vitals"].groupby("id").tail(1).index[:12]
    moved = pd.to_datetime(tables["vitals"].loc[late, "at"]) + pd.Timedelta(hours=3)
    tables["vitals"].loc[late, "at"] = moved.dt.strftime("%Y-%m-%dT%H:%M:%S")
    [found] = [one for one in check(tables, schema).findings if one.kind == "late"]
    assert found.place == "vitals.at" and found.count == 12
    assert lost_calendar(schema) == ()


def test_documents_round_trip() -> None:
    schema = LinkedSchema.from_dict(in_hours())
    assert schema.window is not None and schema.window.noun == "hour"
    assert schema.time_seconds == 3600
    again = LinkedSchema.from_dict(schema.to_dict())
    assert again == schema and again.hash() == schema.hash()
    days = with_value(in_hours(kind="integer"), "dpsynth.window.unit", "d")
    written = LinkedSchema.from_dict(days).to_dict()
    assert "unit" not in written["dpsynth"]["window"]
    time = published_tables(schema)["vitals"].column("at")
    assert str(time.minimum) == "2020-01-01 00:00:00" and str(time.maximum) == "2022-01-04 00:00:00"


def test_mistakes() -> None:
    week = with_value(in_hours(), "dpsynth.window.unit", "wk")
    assert "'wk' is not one of d, h, min" in problems_of(LinkedSchema, week)[0][1]
    dates = with_value(in_hours(), "resources.1.schema.fields.1.type", "date")
    [(place, message)] = problems_of(LinkedSchema, dates)
    assert place == "resources[1].dpsynth.time" and "a date has no hour; set type" in message
    parts = with_value(in_hours(), "resources.1.schema.fields.1.dpsynth", {"calendar": "hour"})
    [(place, message)] = problems_of(LinkedSchema, parts)
    assert "rows count hours, so the calendar follows from the origin" in message
    end = with_value(in_hours(), "resources.0.schema.fields.2.dpsynth.unit", "d")
    [(place, message)] = problems_of(LinkedSchema, end)
    assert place == "dpsynth.end" and "unit: h} in its field" in message
