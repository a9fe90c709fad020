"""The calendar of rows of histories: coded from the time of the row, and put back when drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Histories, HistoryCodec, SeriesRows, decode_histories, read_histories
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import open_synthetic_linked, written_schema

from ..support.dated_tables import START, dated, dated_rows, from_one_date, rows_from_one_date
from ..support.linked_rows import InOrder, Tables, by_patient, read
from ..support.linked_tables import plain

ALL = ("weekday", "month", "hour")
ORIGIN = 3  # place of the origin among the fields of patients


def decoded(histories: Histories, document: dict[str, Any], seed: int = 1) -> Tables:
    schema = LinkedSchema.from_dict(document)
    return decode_histories(histories, HistoryCodec(schema), np.random.default_rng(seed))


def again(tables: Tables, document: dict[str, Any]) -> Histories:
    schema = written_schema(LinkedSchema.from_dict(document))
    return read_histories(
        open_synthetic_linked(tables, LinkedSchema.from_dict(document)),
        HistoryCodec(schema),
        InOrder(1),
    )


def with_random_values(histories: Histories, document: dict[str, Any]) -> Histories:
    """The same rows, with values that belong to nobody."""
    codec, rng = HistoryCodec(LinkedSchema.from_dict(document)), np.random.default_rng(3)
    tables = []
    for coded, table in zip(codec.tables, histories.rows, strict=True):
        own = []
        for series, rows in zip(coded.series, table, strict=True):
            sizes = [column.size for column in series.values]
            drawn = rng.integers(0, sizes, (len(rows.days), len(sizes))).astype(np.uint16)
            own.append(SeriesRows(rows.patients, rows.days, drawn))
        tables.append(tuple(own))
    return Histories(histories.baseline, histories.ends, histories.onsets, tuple(tables))


def visits_of(histories: Histories) -> SeriesRows:
    return histories.rows[1][0]


def test_parts_are_values_of_the_row() -> None:
    document = dated(ALL)
    [_, visits, _] = HistoryCodec(LinkedSchema.from_dict(document)).tables
    names = [column.name for column in visits.series[0].values]
    assert names == ["sbp", "ward", "date: weekday", "date: month", "date: hour"]
    assert [column.size for column in visits.series[0].values[2:]] == [7, 12, 24]
    tables = dated_rows(1)
    tables["visits"] = tables["visits"].iloc[:1].assign(date="2004-02-29T13:59:59")
    assert visits_of(read(tables, document=document)).values[0, 2:].tolist() == [6, 1, 13]


def test_they_come_back() -> None:
    document = dated(ALL)
    before = read(dated_rows(150), document=document)
    after = again(decoded(before, document), document)
    one, other = visits_of(before), visits_of(after)
    assert (one.patients == other.patients).all() and (one.days == other.days).all()
    assert (one.values[:, :4] == other.values[:, :4]).all()
    free = np.diff(np.column_stack([one.patients, one.days]), axis=0).any(axis=1)
    alone = np.append(True, free) & np.append(free, True)  # on their day
    assert (one.values[alone] == other.values[alone]).all() and alone.mean() > 0.9


def test_a_row_that_is_moved_into_the_window_has_the_calendar_of_its_new_day() -> None:
    document = dated(ALL)
    tables = dated_rows(1)
    tables["patients"] = tables["patients"].assign(index="2005-06-01", end="30")
    tables["visits"] = tables["visits"].iloc[:1].assign(date="2009-12-06T13:59:59")
    read_back = visits_of(read(tables, document=document))
    assert read_back.days.tolist() == [30]
    assert read_back.values[0, 2:].tolist() == [4, 6, 13]  # Friday, 1 July 2005


def test_another_patient_moves_no_part() -> None:
    document, tables = dated(ALL), dated_rows(12)
    whole = by_patient(read(tables, document=document))
    fewer = {name: own[own["id"] != "p003"] for name, own in tables.items()}
    rest = by_patient(read(fewer, document=document))
    assert rest == [one for number, one in enumerate(whole) if number != 3]


@pytest.mark.parametrize("parts", [("weekday",), ("month",), ("weekday", "hour"), ALL])
def test_drawn_rows_stay_within_their_limits_and_in_order(parts: tuple[str, ...]) -> None:
    document = dated(parts, longest_gap=800)
    before = with_random_values(read(dated_rows(300), document=document), document)
    tables = decoded(before, document)
    visits, own = tables["visits"], visits_of(before)
    origins = tables["patients"]["index"].to_numpy()[visits["id"]].astype("datetime64[D]")
    days = (visits["date"].to_numpy().astype("datetime64[D]") - origins).astype(int)
    assert (visits["id"] == own.patients).all()
    assert (days >= -3650).all() and (days <= before.ends[own.patients]).all()
    within = np.diff(own.patients) == 0
    gaps, drawn = np.diff(own.days)[within], np.diff(days)[within]
    assert ((gaps == 0) == (drawn == 0)).all() and (drawn >= 0).all()
    assert (drawn[gaps <= 800] <= 800).all()
    moments = visits["date"].to_numpy().astype(np.int64)
    assert (np.diff(moments)[within] >= 0).all()
    codes = dict(zip(parts, own.values[:, -len(parts) :].T, strict=True))
    if "weekday" in parts:
        assert (visits["date"].dt.dayofweek == codes["weekday"]).mean() > 0.97
    if "month" in parts:
        assert (visits["date"].dt.month - 1 == codes["month"]).mean() > 0.7  # of random months
    if "hour" in parts:
        assert (visits["date"].dt.hour == codes["hour"]).mean() > 0.95
    else:
        assert (visits["date"].dt.hour == 0).all()


def test_rows_of_a_day_have_their_hours_in_order() -> None:
    document = dated(("hour",))
    tables = dated_rows(1)
    tables["visits"] = tables["visits"].iloc[[0] * 6].assign(date="2004-02-29T13:59:59")
    before = read(tables, document=document)
    rows = visits_of(before)
    rows.values[:, 2] = [9, 3, 22, 3, 0, 12]
    rows.values[:, 0] = range(6)
    visits = decoded(before, document)["visits"]
    assert visits["date"].dt.hour.tolist() == [0, 3, 3, 9, 12, 22]
    assert visits["sbp"].tolist() == list(range(40, 46))  # what follows from what stays


def test_another_date_counts_from_the_time_with_its_hour() -> None:
    document = dated(("weekday", "hour"))
    own = {"after": "date", "longest": 60, "unit": "d", "bounds_basis": "x", "calendar": "hour"}
    document["resources"][3]["schema"]["fields"].append(plain("left", "datetime", **own))
    tables = dated_rows(200)
    left = pd.to_datetime(tables["visits"]["date"]).dt.normalize() + pd.Timedelta(days=3, hours=11)
    tables["visits"]["left"] = left.dt.strftime("%Y-%m-%dT%H:%M:%S")
    visits = decoded(read(tables, document=document), document)["visits"]
    assert list(visits) == ["id", "date", "sbp", "ward", "left"]
    assert (visits["left"].dt.hour == 11).all()
    stay = visits["left"] - visits["date"]
    assert stay.between(pd.Timedelta(days=2), pd.Timedelta(days=4)).all()


def test_tests_of_a_long_table_have_their_hours() -> None:
    document = dated()
    labs = document["resources"][1]
    labs["schema"]["fields"][1] = {"name": "days", "type": "datetime"}
    labs["schema"]["fields"][1]["dpsynth"] = {"calendar": ["hour"]}
    labs["dpsynth"]["origin"] = "index"
    tables = dated_rows(100)
    origins = tables["patients"].set_index("id")["index"].astype("datetime64[s]")
    at = tables["labs"]["id"].map(origins) + pd.to_timedelta(
        tables["labs"]["days"].astype(int), unit="D"
    )
    tables["labs"]["days"] = (at + pd.Timedelta(hours=7)).dt.strftime("%Y-%m-%dT%H:%M:%S")
    labs_drawn = decoded(read(tables, document=document), document)["labs"]
    assert len(labs_drawn) > 100 and (labs_drawn["days"].dt.hour == 7).all()
    assert list(labs_drawn) == ["id", "days", "test", "value", "fasting"]


def test_the_weekday_of_the_origin_is_that_of_its_rows() -> None:
    document = dated((), "date")
    origin = document["resources"][0]["schema"]["fields"][ORIGIN]
    origin["dpsynth"] = {**origin["dpsynth"], "calendar": ["weekday", "month"]}
    tables = dated_rows(200, "date")
    monday = pd.to_datetime(tables["patients"]["index"])
    monday -= pd.to_timedelta(monday.dt.dayofweek, unit="D")
    tables["patients"] = tables["patients"].assign(index=monday.dt.strftime("%Y-%m-%d"), end="3650")
    by_key = tables["patients"].set_index("id")["index"].astype("datetime64[s]")
    weeks = np.arange(len(tables["visits"])) % 9
    at = tables["visits"]["id"].map(by_key) + pd.to_timedelta(7 * weeks + 2, unit="D")
    tables["visits"]["date"] = at.dt.strftime("%Y-%m-%d")
    made = decoded(read(tables, document=document), document)
    assert (made["patients"]["index"].dt.dayofweek == 0).all()
    assert (made["visits"]["date"].dt.dayofweek == 2).all() and len(made["visits"]) > 200


def test_days_may_count_from_one_date() -> None:
    document = from_one_date()
    tables = rows_from_one_date(2)
    tables["visits"] = (
        tables["visits"]
        .iloc[:3]
        .assign(id=["p000", "p000", "p001"], date=["2003-01-11", "2002-01-01", "2003-02-01"])
    )
    tables["patients"] = tables["patients"].assign(end=["2003-01-06", "2004-01-01"])
    histories = read(tables, document=document)
    assert histories.ends.tolist() == [5, 365]
    assert visits_of(histories).days.tolist() == [0, 5, 31]
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    place, days = codec.end or (0, np.empty(0))
    assert days[histories.baseline[:, place]].tolist() == [5, 365]
    made = decoded(histories, document)
    dates = made["visits"]["date"].dt.strftime("%Y-%m-%d").tolist()
    assert dates == [START, "2003-01-06", "2003-02-01"]
    assert made["patients"]["end"].dt.strftime("%Y-%m-%d").tolist() == ["2003-01-06", "2004-01-01"]
    time = published_tables(LinkedSchema.from_dict(document))["visits"].column("date")
    assert (str(time.minimum), str(time.maximum)) == (START, "2011-03-21")


def test_so_do_rows_with_a_calendar() -> None:
    document = from_one_date(("weekday", "hour"), "datetime")
    before = read(rows_from_one_date(150, "datetime"), document=document)
    after = again(decoded(before, document), document)
    one, other = visits_of(before), visits_of(after)
    assert (one.days == other.days).all() and (one.values[:, 2] == other.values[:, 2]).all()
    assert before.ends.tolist() == after.ends.tolist()


def test_tests_of_one_day_are_taken_at_one_moment() -> None:
    """A panel has one time, whatever hour each test was drawn with; a second one has another."""
    document = dated()
    labs = document["resources"][1]
    labs["schema"]["fields"][1] = {"name": "days", "type": "datetime"}
    labs["schema"]["fields"][1]["dpsynth"] = {"calendar": ["hour"]}
    labs["dpsynth"]["origin"] = "index"
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    histories = read(dated_rows(2), document=dated())
    who, days = np.array([0, 0, 0, 1]), np.array([3, 3, 5, 3])
    rng, tables = np.random.default_rng(0), []
    for table in codec.tables:
        own = []
        for series in table.series:
            sizes = [value.cells or value.size for value in series.values]
            values = rng.integers(0, sizes, (4, len(sizes))).astype(np.uint16)
            own.append(SeriesRows(who, days, values))
        tables.append(tuple(own))
    made = Histories(histories.baseline, histories.ends, histories.onsets, tuple(tables))
    times = decoded(made, document)["labs"].groupby("test")["days"].apply(list)
    assert len(times) > 1 and all(one == times.iloc[0] for one in times)
    assert len(set(times.iloc[0][:3])) == 3, "two rows of one day have two moments"
