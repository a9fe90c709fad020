"""What a fit loses of the calendar of rows is said, of the schema alone and beside the tables."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.inspection import check, lost_calendar, schema_notes, schema_warnings
from dpsynth.schema import LinkedSchema, Schema

from ...support.dated_tables import dated, dated_rows, from_one_date, rows_from_one_date


def since_birth() -> dict[str, Any]:
    """Visits of a few years, whose days count from a birth."""
    document = dated((), "date")
    index = document["resources"][0]["schema"]["fields"][3]
    index["constraints"] |= {"minimum": "1920-01-01", "maximum": "2015-12-31"}
    document["dpsynth"]["window"] = {"first": 0, "last": 40_000, "basis": "life"}
    return document


def lines(document: dict[str, Any]) -> list[str]:
    schema = LinkedSchema.from_dict(document)
    found = lost_calendar(schema)
    assert [*found] == [*schema_warnings(schema), *schema_notes(schema)]
    return [f"{one.place}: {one.message}" for one in found]


def test_days_since_a_birth_lose_the_years() -> None:
    first, second = lines(since_birth())
    assert first.startswith(
        "visits.date: its days count from index over 109 years, so synthetic rows can lie anywhere "
        "from 1920-01-01 to 2125-07-08; to keep their years, count all days from one date"
    )
    assert "calendar: [weekday, month]} for this column" in second
    assert "or for index" not in second
    found = check(dated_rows(20, "date"), LinkedSchema.from_dict(since_birth()))
    [warning] = [one for one in found.findings if one.kind == "schema"]
    assert warning.place == "visits.date" and warning.message in first


def test_days_from_one_date_keep_them() -> None:
    [line] = lines(from_one_date())
    assert line.startswith("visits.date: the weekday and the month of its days are not kept")
    assert lines(from_one_date(("weekday", "month"))) == []
    assert lost_calendar(Schema.load("demo")) == ()


def test_days_from_a_date_of_the_patient_may_keep_its_weekday() -> None:
    document = dated((), "date")
    [line] = lines(document)
    assert line.endswith("calendar: [weekday, month]} for this column, or for index")
    document["resources"][0]["schema"]["fields"][3]["dpsynth"]["calendar"] = ["weekday", "month"]
    assert lines(document) == []


def test_a_time_of_day_is_lost_or_kept() -> None:
    assert lines(dated())[0].startswith("visits.date: its time of day is not kept")
    assert lines(dated(("weekday", "month", "hour"))) == []
    tables = dated_rows(20)
    [found] = [
        one
        for one in check(tables, LinkedSchema.from_dict(dated())).findings
        if (one.place, one.kind) == ("visits.date", "replaced")
    ]
    assert "have a time of day; a fit keeps the day alone" in "\n".join(found.lines())
    assert "calendar: [hour]" in "\n".join(found.lines())
    kept = check(tables, LinkedSchema.from_dict(dated(("hour",))))
    assert not [one for one in kept.findings if one.kind == "replaced"]


@pytest.mark.parametrize("parts", [(), ("weekday",)])
def test_tables_that_count_from_one_date_are_checked(parts: tuple[str, ...]) -> None:
    tables = rows_from_one_date(40)
    tables["visits"].loc[:4, "date"] = "2001-01-01"
    found = check(tables, LinkedSchema.from_dict(from_one_date(parts)))
    early = [one.count for one in found.findings if one.kind == "early" and "date" in one.place]
    assert early == [(tables["visits"]["date"] < "2003-01-01").sum()] and early[0] >= 5
    late = [one for one in found.findings if one.kind == "late" and one.place == "visits.date"]
    owners = tables["visits"].merge(tables["patients"], on="id")
    beyond = (owners["date"] > owners["end"]).sum()
    assert sum(one.count for one in late) == beyond > 0
