"""What histories keep by declaration: read, written, refused, and counted where it is broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import SchemaError
from dpsynth.schema import (
    Implied,
    Inside,
    LinkedSchema,
    PatientRows,
    Schedule,
    declared_counts,
    declared_texts,
    declares,
    rows_due,
)

from ...support.dated_tables import from_one_date
from ...support.declared_tables import (
    ORIGIN,
    declared,
    from_admission,
    tables,
    tables_from_admission,
    vitals,
)
from ...support.document_mistakes import GONE, problems_of, with_value
from ...support.linked_tables import number, package

Document = dict[str, Any]
DRUGS, VISITS = "resources.2.dpsynth", "resources.5.dpsynth"


def test_every_declaration_is_read() -> None:
    schema = LinkedSchema.from_dict(declared())
    schema.require_complete()
    assert schema.child("drugs").inside == Inside("stays", "los")
    assert schema.child("labs").inside == Inside("stays", "los")
    assert schema.child("visits").schedule == Schedule((0, 100, 400), 20)
    assert schema.child("visits").exactly == schema.child("visits").schema.unit.max_rows == 3
    assert schema.child("visits").cumulative == ("stage", "smoked", "children")
    assert schema.implies == (Implied("events", "mi", "chd"),)
    assert schema.last_day and declares(schema)
    assert not declares(LinkedSchema.from_dict(package()))


@pytest.mark.parametrize("make", [declared, vitals])
def test_documents_round_trip(make: Callable[[], Document]) -> None:
    schema = LinkedSchema.from_dict(make())
    written = schema.to_dict()
    again = LinkedSchema.from_dict(written)
    assert again == schema and again.to_dict() == written and again.hash() == schema.hash()


def test_a_grid_is_a_list_of_its_days() -> None:
    grid = LinkedSchema.from_dict(vitals())
    days = with_value(vitals(), "resources.1.dpsynth.schedule", list(range(24)))
    assert LinkedSchema.from_dict(days) == grid
    assert LinkedSchema.from_dict(days).hash() == grid.hash()
    assert grid.to_dict()["resources"][1]["dpsynth"]["schedule"] == {
        "from": 0,
        "every": 1,
        "times": 24,
    }


def test_max_rows_beside_a_number_of_rows_keeps_its_basis() -> None:
    most = {"value": 5, "basis": "protocol"}
    schema = LinkedSchema.from_dict(with_value(declared(), f"{VISITS}.max_rows", most))
    unit = schema.child("visits").schema.unit
    assert (unit.max_rows, unit.max_rows_basis) == (3, "protocol")
    assert LinkedSchema.from_dict(schema.to_dict()) == schema


def test_an_event_may_be_on_the_same_day() -> None:
    document = with_value(declared(), "dpsynth.implies.0.same_day", True)
    schema = LinkedSchema.from_dict(document)
    assert schema.implies == (Implied("events", "mi", "chd", same_day=True),)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema


LABS = "resources[3].dpsynth"
CASES: list[tuple[str, Any, str, str]] = [
    # inside
    (f"{DRUGS}.inside", "stays", "resources[2].dpsynth.inside", "a mapping is expected"),
    (f"{DRUGS}.inside.table", GONE, "resources[2].dpsynth.inside.table", "is missing"),
    (f"{DRUGS}.inside.length", GONE, "resources[2].dpsynth.inside.length", "is missing"),
    (f"{DRUGS}.inside.days", 3, "resources[2].dpsynth.inside.days", "no such key"),
    (f"{DRUGS}.inside.table", "stay", "resources[2].dpsynth.inside.table", "mean 'stays'"),
    (f"{DRUGS}.inside.table", "drugs", "resources[2].dpsynth.inside.table", "the table itself"),
    (f"{DRUGS}.inside.table", "patients", "resources[2].dpsynth.inside.table", "of patients"),
    (f"{DRUGS}.inside.table", "events", "resources[2].dpsynth.inside.table", "events is once"),
    (f"{DRUGS}.inside.table", "labs", "resources[2].dpsynth.inside.table", "labs is long"),
    (f"{DRUGS}.inside.length", "lo", "resources[2].dpsynth.inside.length", "mean 'los'"),
    (f"{DRUGS}.inside.length", "ward", "resources[2].dpsynth.inside.length", "does not say when"),
    (f"{DRUGS}.inside.length", "day", "resources[2].dpsynth.inside.length", "does not say when"),
    ("resources.1.schema.fields.2.constraints.minimum", -1)
    + ("resources[2].dpsynth.inside.length", "does not say when"),
    ("resources.1.dpsynth.inside", {"table": "visits", "length": "children"})
    + ("resources[2].dpsynth.inside.table", "is inside visits; name visits"),
    (f"{DRUGS}.schedule", [5], "resources[2].dpsynth.schedule", "keep inside or schedule"),
    # schedule
    (f"{VISITS}.schedule", 5, "resources[5].dpsynth.schedule", "such as [0, 365]"),
    (f"{VISITS}.schedule", [], "resources[5].dpsynth.schedule", "such as [0, 365]"),
    (f"{VISITS}.schedule", [0, "a"], "resources[5].dpsynth.schedule[1]", "not 'a'"),
    (f"{VISITS}.schedule", [0, True], "resources[5].dpsynth.schedule[1]", "a whole number"),
    (f"{VISITS}.schedule", [0, 1.5], "resources[5].dpsynth.schedule[1]", "a whole number"),
    (f"{VISITS}.schedule", [0, 0], "resources[5].dpsynth.schedule", "not ascending"),
    (f"{VISITS}.schedule", [0, 100, 1001], "resources[5].dpsynth.schedule", "outside the window"),
    (f"{VISITS}.schedule", [-101, 0, 5], "resources[5].dpsynth.schedule", "-100 to 1000"),
    (f"{VISITS}.schedule", list(range(1001)), "resources[5].dpsynth.schedule", "at most 1,000"),
    (f"{VISITS}.schedule", {"from": 0}, "resources[5].dpsynth.schedule.every", "is missing"),
    (f"{VISITS}.schedule", {"from": 0.5, "every": 1, "times": 3})
    + ("resources[5].dpsynth.schedule.from", "a whole number of days"),
    (f"{VISITS}.schedule", {"from": 0, "every": 1, "times": 1001})
    + ("resources[5].dpsynth.schedule.times", "at most 1,000"),
    (f"{VISITS}.schedule", {"from": 0, "every": 0, "times": 3})
    + ("resources[5].dpsynth.schedule.every", "at least 1"),
    (f"{VISITS}.schedule", {"form": 0}, "resources[5].dpsynth.schedule.form", "mean 'from'"),
    (f"{VISITS}.schedule_within", -1, "resources[5].dpsynth.schedule_within", "at least 0"),
    (f"{VISITS}.schedule", GONE, "resources[5].dpsynth.schedule_within", "needs a schedule"),
    # rows
    (f"{VISITS}.rows", 3, "resources[5].dpsynth.rows", "a mapping is expected"),
    (f"{VISITS}.rows", {"about": 3}, "resources[5].dpsynth.rows.about", "no such key"),
    (f"{VISITS}.rows", {}, "resources[5].dpsynth.rows.exactly", "is missing"),
    (f"{VISITS}.rows.exactly", 0, "resources[5].dpsynth.rows.exactly", "at least 1"),
    (f"{VISITS}.rows.exactly", 4, "resources[5].dpsynth.rows.exactly", "due on 3 days"),
    (f"{VISITS}.max_rows", {"value": 2, "basis": "x"})
    + ("resources[5].dpsynth.rows.exactly", "max_rows keeps 2"),
    (f"{VISITS}.rows", GONE, "resources[5].dpsynth.max_rows", "is missing"),
    ("resources.1.dpsynth.rows", {"exactly": 8})
    + ("resources[1].dpsynth.rows.exactly", "followed until followed"),
    (f"{DRUGS}.rows", {"exactly": 8}, "resources[2].dpsynth.rows.exactly", "without a row of stay"),
    (f"{VISITS}.longest_gap", 200, "resources[5].dpsynth.longest_gap", "300 days apart"),
    # events
    ("resources.4.dpsynth.rows", {"exactly": 1}, "resources[4].dpsynth.rows", "this table once"),
    ("resources.4.dpsynth.schedule", [1], "resources[4].dpsynth.schedule", "this table once"),
    ("dpsynth.implies", {"event": "mi"}, "dpsynth.implies", "a list is expected"),
    ("dpsynth.implies.0", "mi", "dpsynth.implies[0]", "a mapping is expected"),
    ("dpsynth.implies.0.event", GONE, "dpsynth.implies[0].event", "is missing"),
    ("dpsynth.implies.0.event", "m", "dpsynth.implies[0].event", "no event 'm'"),
    ("dpsynth.implies.0.implies", "deth", "dpsynth.implies[0].implies", "mean 'death'"),
    ("dpsynth.implies.0.table", "event", "dpsynth.implies[0].table", "mean 'events'"),
    ("dpsynth.implies.0.table", "stays", "dpsynth.implies[0].table", "no table of events"),
    ("dpsynth.implies.0.table", "patients", "dpsynth.implies[0].table", "no table of events"),
    ("dpsynth.implies.0.implies", "mi", "dpsynth.implies[0].implies", "mi -> mi"),
    ("dpsynth.implies.0.on", "same_day", "dpsynth.implies[0].on", "no such key"),
    ("dpsynth.implies.0.same_day", 1, "dpsynth.implies[0].same_day", "true or false"),
    # the last day
    ("dpsynth.last_day", "yes", "dpsynth.last_day", "true or false"),
    ("dpsynth.end", GONE, "dpsynth.last_day", "needs 'end'"),
    # cumulative
    ("resources.5.schema.fields.2.dpsynth.cumulative", 1)
    + ("resources[5].schema.fields[2] 'stage'.dpsynth.cumulative", "true or false"),
    ("resources.5.schema.fields.2.constraints.enum", ["a"])
    + ("resources[5].schema.fields[2] 'stage'.dpsynth.cumulative", "lists two categories or more"),
    ("resources.5.schema.fields.1.dpsynth", {"cumulative": True})
    + ("resources[5].schema.fields[1] 'date'.dpsynth.cumulative", "not a value of the row"),
    ("resources.3.schema.fields.3.dpsynth", {"cumulative": True})
    + ("resources[3].schema.fields[3] 'value'.dpsynth.cumulative", "columns of wide tables"),
    ("resources.4.schema.fields.2.dpsynth.cumulative", True)
    + ("resources[4].schema.fields[2] 'event'.dpsynth.cumulative", "columns of wide tables"),
    ("resources.0.schema.fields.2.dpsynth.cumulative", True)
    + ("resources[0].schema.fields[2] 'followed'.dpsynth.cumulative", "has one row"),
    ("resources.5.schema.fields.4.dpsynth.role", "drop")
    + ("resources[5].schema.fields[4] 'children'.dpsynth.cumulative", "not a value of the row"),
]


@pytest.mark.parametrize(("path", "value", "place", "words"), CASES)
def test_a_mistake_says_where_and_what(path: str, value: Any, place: str, words: str) -> None:
    document = with_value(declared(), path, value)
    found = problems_of(LinkedSchema, document)
    assert any(at == place and words in message for at, message in found), found


def test_every_mistake_is_listed() -> None:
    document = declared()
    document["resources"][2]["dpsynth"]["inside"]["length"] = "ward"
    document["resources"][5]["dpsynth"]["schedule"] = [0, 100, 2000]
    document["dpsynth"]["implies"][0]["event"] = "stroke"
    document["resources"][0]["schema"]["fields"][2]["dpsynth"]["cumulative"] = True
    places = [place for place, _ in problems_of(LinkedSchema, document)]
    assert len(places) == 4 and len(set(places)) == 4


def test_rows_without_a_time_have_no_days() -> None:
    document = package()
    document["resources"][4]["dpsynth"] |= {
        "schedule": [1],
        "inside": {"table": "visits", "length": "sbp"},
    }
    found = problems_of(LinkedSchema, document)
    assert {place for place, message in found if "without a time" in message} == {
        "resources[4].dpsynth.schedule",
        "resources[4].dpsynth.inside",
    }
    document["resources"][4]["dpsynth"] = {"order": "number", "rows": {"exactly": 2}}
    assert LinkedSchema.from_dict(document).child("orders").exactly == 2


def test_events_imply_each_other_in_no_circle() -> None:
    document = declared()
    circle = [("mi", "chd"), ("chd", "death"), ("death", "mi")]
    document["dpsynth"]["implies"] = [
        {"table": "events", "event": event, "implies": other} for event, other in circle
    ]
    [(place, message)] = problems_of(LinkedSchema, document)
    assert place == "dpsynth.implies[2].implies" and "death -> mi -> chd -> death" in message
    document["dpsynth"]["implies"][2] = document["dpsynth"]["implies"][0]
    [(place, message)] = problems_of(LinkedSchema, document)
    assert place == "dpsynth.implies[2]" and "said before" in message


CONTRADICTIONS: list[tuple[str, str | None]] = [
    ("count(visits) > 3", "rows: {exactly: 3} of visits"),
    ("count(visits) == 3 implies count(visits) > 3 or count(visits) < 3", None),
    ("count(visits) >= 2", None),
    ("event(mi) < event(chd)", "mi implies chd"),
    ("event(mi) <= event(chd)", None),
    ("event(chd) <= event(mi)", None),
    ("event(mi) < event(chd) or count(visits) > 0", None),
    ("next(visits).children < each(visits).children", "cumulative visits.children"),
    ("next(visits).children >= each(visits).children", None),
    ("first(visits).children > 3", None),
]


@pytest.mark.parametrize(("rule", "words"), CONTRADICTIONS)
def test_rules_that_contradict_a_declaration_are_refused(rule: str, words: str | None) -> None:
    document = declared()
    document["dpsynth"]["rules"] = [rule]
    if words is None:
        LinkedSchema.from_dict(document)
        return
    [(place, message)] = problems_of(LinkedSchema, document)
    assert place == "dpsynth.rules[0]" and f"contradicts {words}" in message or words in message


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("each(vitals).hour > 23", False),
        ("each(vitals).hour < 24", True),
        ("count(vitals) != 24", False),
        ("last(vitals).hour == 23", True),
    ],
)
def test_rules_about_due_days_are_tried_on_them(rule: str, fits: bool) -> None:
    document = vitals()
    document["dpsynth"]["rules"] = [rule]
    if fits:
        LinkedSchema.from_dict(document)
    else:
        with pytest.raises(SchemaError, match="contradicts"):
            LinkedSchema.from_dict(document)


def test_rows_are_due_up_to_the_end() -> None:
    ends = np.array([0, 99, 100, 399, 1000])
    visits = LinkedSchema.from_dict(declared()).child("visits")
    assert rows_due(visits, ends).tolist() == [1, 1, 2, 2, 3]


SCHEMA = LinkedSchema.from_dict(declared())
KINDS = [
    "drugs.day:outside",
    "labs.date:outside",
    "visits.date:off-schedule",
    "visits:not-exactly",
    "visits.stage:falls",
    "visits.smoked:falls",
    "visits.children:falls",
    "events:not-implied",
]


def typed(texts: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The same tables with typed cells, as the sampler decodes them."""
    found = {name: frame.copy() for name, frame in texts.items()}
    for frame in found.values():
        for name in frame.columns:
            if name in ("date", "left", "index"):
                frame[name] = pd.to_datetime(frame[name]).dt.date
            elif name in ("day", "los", "followed", "children", "value"):
                frame[name] = pd.to_numeric(frame[name])
            elif name == "smoked":
                frame[name] = frame[name] == "true"
    return found


def broken(texts: dict[str, pd.DataFrame], schema: LinkedSchema = SCHEMA) -> dict[str, int]:
    counts = declared_counts(PatientRows(typed(texts), schema), schema)
    return {f"{one.place}:{one.kind}": one.broken for one in counts}


def test_tables_that_keep_all_break_nothing() -> None:
    assert broken(tables()) == dict.fromkeys(KINDS, 0)


def moved(frame: pd.DataFrame, rows: int, days: int) -> None:
    """Move the first rows of a table by days."""
    for row in range(rows):
        if "day" in frame:
            frame.loc[row, "day"] = str(int(frame.loc[row, "day"]) + days)
        else:
            frame.loc[row, "date"] = str(np.datetime64(frame.loc[row, "date"]) + days)


def test_each_breach_is_counted() -> None:
    made = tables()
    moved(made["drugs"], 3, 70)
    assert broken(made) == dict.fromkeys(KINDS, 0) | {"drugs.day:outside": 3}
    made = tables()
    moved(made["labs"], 2, -50)
    assert broken(made) == dict.fromkeys(KINDS, 0) | {"labs.date:outside": 2}
    made = tables()
    made["visits"] = made["visits"].drop(index=0)
    assert broken(made) == dict.fromkeys(KINDS, 0) | {"visits:not-exactly": 1}
    made = tables()
    events = made["events"]["event"] == "chd"
    made["events"] = made["events"][~events | (made["events"]["id"] != "p0")]
    assert broken(made) == dict.fromkeys(KINDS, 0) | {"events:not-implied": 1}
    made = tables()
    made["events"].loc[events & (made["events"]["id"] == "p0"), "day"] = "41"
    assert broken(made) == dict.fromkeys(KINDS, 0) | {"events:not-implied": 1}


def test_a_row_on_a_wrong_due_day_is_no_row_of_the_right_one() -> None:
    made = tables()
    of_p1 = made["visits"]["id"] == "p1"
    made["visits"].loc[made["visits"].index[of_p1][1], "date"] = str(np.datetime64(ORIGIN) + 395)
    assert broken(made)["visits:not-exactly"] == 1
    assert broken(made)["visits.date:off-schedule"] == 0


def test_a_stay_without_a_length_decides_nothing_after_its_start() -> None:
    made = tables()
    moved(made["drugs"], 1, 70)  # p0: after the first stay, before the second
    made["stays"].loc[0, "los"] = ""
    assert broken(made)["drugs.day:outside"] == 0
    moved(made["drugs"], 1, -90)
    assert broken(made)["drugs.day:outside"] == 1


def test_a_stay_may_end_on_a_date() -> None:
    schema = LinkedSchema.from_dict(from_admission())
    schema.require_complete()
    assert schema.child("drugs").inside == Inside("stays", "left")
    assert LinkedSchema.from_dict(schema.to_dict()) == schema

    def outside(made: dict[str, pd.DataFrame]) -> list[int]:
        counts = declared_counts(PatientRows(typed(made), schema), schema)
        return [one.broken for one in counts if one.kind == "outside"]

    made = tables_from_admission()
    assert outside(made) == [0, 0]
    moved(made["drugs"], 1, 70)
    assert outside(made) == [1, 0]
    made["stays"].loc[0, "left"] = ""  # it does not say when it ended
    assert outside(made) == [0, 0]


@pytest.mark.parametrize(
    "left",
    [
        {"after": "date", "longest": 2, "unit": "a"},
        {"after": "date", "shortest": -2, "longest": 60, "unit": "d"},
        {"before": "date", "longest": 60, "unit": "d"},
    ],
)
def test_a_date_that_does_not_end_a_stay_is_refused(left: dict[str, Any]) -> None:
    document = from_admission()
    field = document["resources"][1]["schema"]["fields"][2]
    field["dpsynth"] = left | {"bounds_basis": "protocol"}
    places, messages = zip(*problems_of(LinkedSchema, document), strict=True)
    assert places == tuple(f"resources[{place}].dpsynth.inside.length" for place in (2, 3))
    assert messages[0].startswith("'left' of table stays does not say when a row ends")


def test_missing_values_and_rows_of_one_day_do_not_fall() -> None:
    made = tables()
    of_p1 = made["visits"].index[made["visits"]["id"] == "p1"]
    made["visits"].loc[of_p1, "children"] = ["3", "", "3"]
    assert broken(made)["visits.children:falls"] == 0
    made["visits"].loc[of_p1, "children"] = ["3", "", "2"]
    assert broken(made)["visits.children:falls"] == 1
    made["visits"].loc[of_p1, "date"] = made["visits"].loc[of_p1[0], "date"]
    assert broken(made)["visits.children:falls"] == 0
    made["visits"].loc[of_p1, "stage"] = ["late", "early", "late"]
    assert broken(made)["visits.stage:falls"] == 0


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_a_plain_count(seed: int) -> None:
    """Of shuffled, damaged rows, against loops over patients and rows."""
    rng = np.random.default_rng(seed)
    made = typed(tables())
    for name in ("stays", "drugs", "events"):
        frame = made[name]
        frame["day"] += rng.integers(-3, 4, len(frame)) * (rng.random(len(frame)) < 0.3)
    for name in ("labs", "visits"):
        frame, steps = made[name], rng.integers(-25, 26, len(made[name]))
        frame["date"] = [
            day + pd.Timedelta(days=int(n)) for day, n in zip(frame["date"], steps, strict=True)
        ]
    made["visits"]["children"] = rng.integers(0, 4, len(made["visits"]))
    made["visits"]["stage"] = np.where(rng.random(len(made["visits"])) < 0.5, "early", "late")
    made = {
        name: frame.sample(frac=1 if name == "patients" else 0.9, random_state=seed)
        for name, frame in made.items()
    }
    counts = declared_counts(PatientRows(made, SCHEMA), SCHEMA)
    assert {f"{c.place}:{c.kind}": (c.broken, c.patients) for c in counts} == naive(made)


def naive(made: dict[str, pd.DataFrame]) -> dict[str, tuple[int, int]]:
    origin = np.datetime64(ORIGIN)
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def rows(name: str, key: str) -> list[dict[str, Any]]:
        frame = made[name]
        own: list[dict[str, Any]] = frame[frame["id"] == key].to_dict("records")
        for row in own:
            row["at"] = row.get("day")
            if "date" in row:
                row["at"] = int((np.datetime64(row["date"], "D") - origin).astype(int))
        return own

    for patient in made["patients"].to_dict("records"):
        key, end = patient["id"], patient["followed"]
        stays = rows("stays", key)
        for name, kind in (("drugs", KINDS[0]), ("labs", KINDS[1])):
            for row in rows(name, key):
                if not any(s["at"] <= row["at"] <= s["at"] + s["los"] for s in stays):
                    found[kind].append(key)
        visits = sorted(rows("visits", key), key=lambda row: row["at"])
        due = (0, 100, 400)
        near = [min(due, key=lambda day: abs(day - row["at"])) for row in visits]
        found[KINDS[2]] += [
            key for day, row in zip(near, visits, strict=True) if abs(day - row["at"]) > 20
        ]
        if near != [day for day in due if day <= end]:
            found[KINDS[3]].append(key)
        for kind, name in ((KINDS[4], "stage"), (KINDS[5], "smoked"), (KINDS[6], "children")):
            pairs = itertools.combinations(visits, 2)
            if any(a["at"] < b["at"] and a[name] > b[name] for a, b in pairs):
                found[kind].append(key)
        first = {
            event: min([r["at"] for r in rows("events", key) if r["event"] == event], default=None)
            for event in ("mi", "chd")
        }
        if first["mi"] is not None and (first["chd"] is None or first["chd"] > first["mi"]):
            found[KINDS[7]].append(key)
    return {kind: (len(keys), len(set(keys))) for kind, keys in found.items()}


def test_patients_of_a_grid_have_each_row() -> None:
    schema = LinkedSchema.from_dict(vitals())
    keys = [f"p{n}" for n in range(3)]
    hours = pd.DataFrame(
        [(key, hour, 70 + hour) for key in keys for hour in range(24)],
        columns=["id", "hour", "rate"],
    )
    patients = pd.DataFrame({"id": keys, "age": [50, 60, 70]})

    def counts(frame: pd.DataFrame) -> dict[str, int]:
        rows = PatientRows({"patients": patients, "vitals": frame}, schema)
        return {one.kind: one.broken for one in declared_counts(rows, schema)}

    assert counts(hours) == {"off-schedule": 0, "not-exactly": 0}
    assert counts(hours[1:]) == {"off-schedule": 0, "not-exactly": 1}
    twice = hours.assign(hour=hours["hour"].where(hours.index != 3, 2))
    assert counts(twice) == {"off-schedule": 0, "not-exactly": 1}
    assert counts(hours[:0]) == {"off-schedule": 0, "not-exactly": 3}


def test_rows_that_are_only_ordered_may_have_a_number() -> None:
    document = package()
    document["resources"] = [document["resources"][0], document["resources"][4]]
    document["resources"][1]["dpsynth"] = {"order": "number", "rows": {"exactly": 2}}
    document["resources"][1]["schema"]["fields"].append(number("doses", 0, 9))
    document["resources"][1]["schema"]["fields"][-1]["dpsynth"]["cumulative"] = True
    schema = LinkedSchema.from_dict(document)
    patients = pd.DataFrame({"id": ["a", "b"], "sex": "F", "end": 10, "index": "2001-01-01"})
    patients["index"] = pd.to_datetime(patients["index"]).dt.date
    orders = pd.DataFrame(
        {"id": ["a", "a", "b"], "number": [2, 1, 1], "drug": "x", "doses": [1, 2, 0]}
    )
    counts = declared_counts(PatientRows({"patients": patients, "orders": orders}, schema), schema)
    assert {one.kind: one.broken for one in counts} == {"not-exactly": 1, "falls": 1}


def test_each_declaration_is_said_in_a_sentence() -> None:
    schema = LinkedSchema.from_dict(declared())
    texts = declared_texts(schema)
    counts = declared_counts(PatientRows(typed(tables()), schema), schema)
    assert texts == (
        *(one.text for one in counts),
        "many patients are followed to the last day of the window",
    )
    assert declared_texts(LinkedSchema.from_dict(package())) == ()
    assert declared_texts(
        LinkedSchema.from_dict(from_one_date(("weekday", "hour"), "datetime"))
    ) == (
        "the days of all patients count from 2003-01-01",
        "each row of visits keeps the weekday and the hour of date",
    )
