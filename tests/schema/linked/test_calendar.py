"""Calendar time of linked tables: parts of the calendar of rows, and one date for all patients."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from dpsynth.schema import LinkedSchema

from ...support.dated_tables import dated, from_one_date
from ...support.declared_tables import declared
from ...support.document_mistakes import problems_of, with_value
from ...support.linked_tables import plain

ALL = ("weekday", "month", "hour")
TIME = "resources[3].schema.fields[1] 'date'.dpsynth.calendar"
OWN = "resources.3.schema.fields.1.dpsynth.calendar"


def test_a_time_keeps_parts_of_the_calendar() -> None:
    schema = LinkedSchema.from_dict(dated(ALL))
    assert schema.child("visits").calendar == ALL
    assert schema.child("labs").calendar == schema.child("orders").calendar == ()
    own = schema.to_dict()
    assert own["resources"][3]["schema"]["fields"][1]["dpsynth"] == {"calendar": list(ALL)}
    again = LinkedSchema.from_dict(own)
    assert again == schema and again.hash() == schema.hash()
    assert schema.hash() != LinkedSchema.from_dict(dated()).hash()


def test_so_does_a_time_from_which_another_date_counts() -> None:
    document = dated(ALL)
    own = {"after": "date", "longest": 60, "unit": "d", "bounds_basis": "x", "calendar": "hour"}
    document["resources"][3]["schema"]["fields"].append(plain("left", "datetime", **own))
    schema = LinkedSchema.from_dict(document)
    assert schema.child("visits").calendar == ALL
    assert schema.child("visits").schema.column("left").calendar == ("hour",)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (dated(("hour",), "date"), "a date has no hour; set type: datetime if the cells have a"),
        (with_value(dated(), OWN, ["week"]), "'week' is not one of weekday, month, hour"),
        (
            with_value(dated(("weekday",)), "resources.3.schema.fields.4.name", "date: weekday"),
            "'date: weekday' is the name of a column; rename that one",
        ),
    ],
)
def test_mistakes(document: dict[str, Any], message: str) -> None:
    found = problems_of(LinkedSchema, document)
    assert [place for place, _ in found] == [TIME] and found[0][1].startswith(message)


def test_days_have_no_calendar_and_events_no_hour() -> None:
    days = with_value(dated(), "resources.1.schema.fields.1.dpsynth", {"calendar": "weekday"})
    [(place, message)] = problems_of(LinkedSchema, days)
    assert place.endswith("'days'.dpsynth.calendar") and message.startswith("only a date has a")
    events = with_value(dated(), "resources.2.schema.fields.1.type", "date")
    events["resources"][2]["dpsynth"]["origin"] = "index"
    events["resources"][2]["schema"]["fields"][1]["dpsynth"] = {"calendar": "weekday"}
    [(place, message)] = problems_of(LinkedSchema, events)
    assert message == "an event of a table with once has its day alone; remove it"


@pytest.mark.parametrize("table", [3, 5])
def test_rows_that_lie_on_declared_days_do_not_move(table: int) -> None:
    document = declared()
    document["resources"][table]["schema"]["fields"][1]["dpsynth"] = {"calendar": ["weekday"]}
    [(place, message)] = problems_of(LinkedSchema, document)
    where = "within rows of stays" if table == 3 else "on due days"
    assert place == f"resources[{table}].schema.fields[1] 'date'.dpsynth.calendar"
    assert message.startswith(f"rows lie {where}, so they cannot move to their weekday")
    hours = with_value(document, f"resources.{table}.schema.fields.1.type", "datetime")
    hours["resources"][table]["schema"]["fields"][1]["dpsynth"] = {"calendar": ["hour"]}
    child = LinkedSchema.from_dict(hours).child("labs" if table == 3 else "visits")
    assert child.calendar == ("hour",)


def test_all_days_may_count_from_one_date() -> None:
    schema = LinkedSchema.from_dict(from_one_date())
    assert schema.origin is None and schema.start == datetime.date(2003, 1, 1)
    assert schema.child("visits").origin == schema.start
    document = schema.to_dict()
    assert document["resources"][3]["dpsynth"]["origin"] == "2003-01-01"
    again = LinkedSchema.from_dict(document)
    assert again == schema and again.hash() == schema.hash()
    as_yaml = with_value(document, "resources.3.dpsynth.origin", datetime.date(2003, 1, 1))
    assert LinkedSchema.from_dict(as_yaml) == schema


def test_a_column_of_that_name_is_a_column() -> None:
    document = dated((), "date", "2003-01-01")
    document["resources"][0]["schema"]["fields"][3]["name"] = "2003-01-01"
    schema = LinkedSchema.from_dict(document)
    assert schema.start is None and schema.origin == "2003-01-01"


def test_mistakes_in_one_date_for_all() -> None:
    [(place, message)] = problems_of(LinkedSchema, dated((), "date", "2003-02-30"))
    assert place == "resources[3].dpsynth.origin" and "has no column '2003-02-30'" in message
    days = with_value(dated(), "resources.1.dpsynth.origin", "2003-01-01")
    assert "is in days since the origin already" in problems_of(LinkedSchema, days)[0][1]
    two = with_value(dated((), "date", "2003-01-01"), "resources.1.dpsynth.origin", "index")
    two["resources"][1]["schema"]["fields"][1]["type"] = "date"
    [(place, message)] = problems_of(LinkedSchema, two)
    assert message.endswith("one origin of a patient, not from 2003-01-01, index")


@pytest.mark.parametrize("kind", ["interval", "datetime"])
def test_the_end_is_then_a_date_with_bounds(kind: str) -> None:
    document = from_one_date()
    end = document["resources"][0]["schema"]["fields"][2]
    if kind == "interval":
        end.pop("constraints")
        end["dpsynth"] |= {"after": "index", "longest": 3000, "unit": "d"}
    else:
        end["type"] = "datetime"
    [(place, message)] = problems_of(LinkedSchema, document)
    assert place == "dpsynth.end"
    assert message.startswith("days count from 2003-01-01 for all patients, so 'end' is of type")
