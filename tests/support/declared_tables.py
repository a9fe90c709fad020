"""A package of linked tables that makes every declaration of histories, and tables that keep them.

Stays and drugs count in days, tests and visits in dates: all count from one origin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .linked_tables import choice, field, key, number, plain, resource

PATIENTS = 40
ORIGIN = "2004-03-01"
COLUMNS = {
    "patients": ["id", "index", "followed"],
    "stays": ["id", "day", "los", "ward"],
    "drugs": ["id", "day", "drug"],
    "labs": ["id", "date", "test", "value"],
    "events": ["id", "day", "event"],
    "visits": ["id", "date", "stage", "smoked", "children"],
}


def declared() -> dict[str, Any]:
    """The schema, with each declaration once."""
    index = field("index", "date", {"bounds_basis": "period of the study"}, required=True)
    index["constraints"] |= {"minimum": "2000-01-01", "maximum": "2010-12-31"}
    patients = [plain("id"), index, number("followed", 0, 1000, required=True)]
    stays = [
        plain("id"),
        plain("day", "integer"),
        number("los", 0, 60),
        choice("ward", "a", "b"),
    ]
    drugs = [plain("id"), plain("day", "integer"), choice("drug", "x", "y")]
    tests = {
        "hb": {"minimum": 3, "maximum": 22, "step": 0.1, "bounds_basis": "range"},
        "crp": {"minimum": 0, "maximum": 600, "step": 1, "bounds_basis": "range"},
    }
    labs = [plain("id"), plain("date", "date"), plain("test"), plain("value", "number")]
    events = [plain("id"), plain("day", "integer"), choice("event", "chd", "mi", "death")]
    visits = [
        plain("id"),
        plain("date", "date"),
        choice("stage", "early", "late"),
        {"name": "smoked", "type": "boolean", "dpsynth": {}},
        number("children", 0, 20),
    ]
    for one in visits[2:]:
        one["dpsynth"] = {**one["dpsynth"], "cumulative": True}
    many = {"value": 8, "basis": "protocol"}
    series = {"column": "test", "value": "value", "tests": tests}
    inside = {"table": "stays", "length": "los"}
    return {
        "name": "declared",
        "resources": [
            {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}},
            resource("stays", stays, time="day", max_rows=dict(many)),
            resource("drugs", drugs, time="day", max_rows=dict(many), inside=inside),
            resource(
                "labs",
                labs,
                time="date",
                origin="index",
                series=series,
                max_rows=dict(many),
                inside=dict(inside),
            ),
            resource("events", events, time="day", once="event"),
            resource(
                "visits",
                visits,
                time="date",
                origin="index",
                schedule=[0, 100, 400],
                schedule_within=20,
                rows={"exactly": 3},
            ),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": PATIENTS, "basis": "report"},
            "window": {"first": -100, "last": 1000, "basis": "protocol"},
            "end": "followed",
            "ended_by": "death",
            "last_day": True,
            "implies": [{"table": "events", "event": "mi", "implies": "chd"}],
        },
    }


def from_admission(unit: str = "d", kind: str = "date") -> dict[str, Any]:
    """The same; stays have a date of discharge, and no length. A longest stay has 60 days."""
    document = declared()
    left = {"after": "date", "longest": 60 if unit == "d" else 60 * 24, "unit": unit}
    stays = document["resources"][1]
    stays["schema"]["fields"][1:3] = [
        plain("date", kind),
        {"name": "left", "type": kind, "dpsynth": left | {"bounds_basis": "protocol"}},
    ]
    stays["dpsynth"] |= {"time": "date", "origin": "index"}
    for place in (2, 3):
        document["resources"][place]["dpsynth"]["inside"]["length"] = "left"
    return document


def vitals() -> dict[str, Any]:
    """Values of each hour of a stay, of which every patient has 24."""
    hours = [plain("id"), plain("hour", "integer"), number("rate", 20, 250, required=True)]
    grid = {"from": 0, "every": 1, "times": 24}
    return {
        "name": "icu",
        "resources": [
            {
                "name": "patients",
                "schema": {"primaryKey": "id", "fields": [plain("id"), number("age", 18, 110)]},
            },
            {
                "name": "vitals",
                "schema": {"foreignKeys": [key()], "fields": hours},
                "dpsynth": {
                    "time": "hour",
                    "schedule": grid,
                    "schedule_within": 0,
                    "rows": {"exactly": 24},
                },
            },
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": PATIENTS, "basis": "report"},
            "window": {"first": 0, "last": 23, "basis": "the first day"},
        },
    }


def tables() -> dict[str, pd.DataFrame]:
    """Tables of text that keep every declaration."""
    rng = np.random.default_rng(5)
    rows: dict[str, list[list[Any]]] = {name: [] for name in COLUMNS}
    origin = np.datetime64(ORIGIN)
    for number_ in range(PATIENTS):
        name, dies = f"p{number_}", number_ % 4 == 0
        end = 350 if dies else 1000
        rows["patients"].append([name, origin, end])
        for start in (10, 200):
            los = int(rng.integers(0, 8))
            rows["stays"].append([name, start, los, "ab"[number_ % 2]])
            day = start + int(rng.integers(0, los + 1))
            rows["drugs"].append([name, day, "xy"[number_ % 2]])
            rows["labs"] += [[name, origin + day, "hb", 12.5], [name, origin + start, "crp", 7]]
        if number_ % 3 == 0:
            rows["events"] += [[name, 40, "chd"], [name, 40 + 30 * (number_ % 2), "mi"]]
        if dies:
            rows["events"].append([name, end, "death"])
        for place, due in enumerate((0, 100, 400)):
            if due <= end:
                day = origin + due + int(rng.integers(-20 if due else 0, 21))
                late = place >= number_ % 3
                stage = "late" if late else "early"
                rows["visits"].append([name, day, stage, str(late).lower(), place])
    return {
        name: pd.DataFrame(rows[name], columns=columns).astype(str).astype(object)
        for name, columns in COLUMNS.items()
    }


def tables_from_admission() -> dict[str, pd.DataFrame]:
    """The same tables, with the date on which each stay ended in place of its length."""
    made = tables()
    stays = made["stays"]
    first = np.datetime64(ORIGIN) + stays.pop("day").astype(int).to_numpy()
    last = first + stays.pop("los").astype(int).to_numpy()
    stays.insert(1, "date", first.astype(str))
    stays.insert(2, "left", last.astype(str))
    return made


def with_dates_of_death() -> dict[str, Any]:
    """The same; rows end with death, and the date of death is empty in who did not die."""
    document = declared()
    died = {"after": "index", "longest": 1000, "unit": "d", "bounds_basis": "protocol"}
    document["resources"][0]["schema"]["fields"][2] = {
        "name": "died",
        "type": "date",
        "dpsynth": died,
    }
    document["dpsynth"]["end"] = "died"
    del document["dpsynth"]["last_day"], document["dpsynth"]["ended_by"]
    return document
