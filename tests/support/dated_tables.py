"""Packages whose rows have dates: with parts of the calendar, or counted from one date for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .linked_rows import Tables, frames, patient_rows, together
from .linked_tables import choice, field, number, package, plain, resource

START = "2003-01-01"
VISITS, PATIENTS = 3, 0  # places among the resources


def dated(
    parts: Sequence[str] = (), kind: str = "datetime", origin: str | None = None, **own: Any
) -> dict[str, Any]:
    """The package of every kind, whose visits keep parts of the calendar."""
    document = package()
    visits = document["resources"][VISITS]
    visits["schema"]["fields"][1] = {"name": "date", "type": kind}
    if parts:
        visits["schema"]["fields"][1]["dpsynth"] = {"calendar": list(parts)}
    visits["dpsynth"] |= own
    if origin is not None:
        visits["dpsynth"]["origin"] = origin
    return document


def from_one_date(parts: Sequence[str] = (), kind: str = "date") -> dict[str, Any]:
    """The same, with days that count from one date, and a date as the end of follow-up."""
    document = dated(parts, kind, START)
    document["dpsynth"]["window"] = {"first": 0, "last": 3000, "basis": "period of the extract"}
    end = field("end", "date", {"bounds_basis": "period of the extract"}, required=True)
    end["constraints"] |= {"minimum": START, "maximum": "2011-03-20"}
    document["resources"][PATIENTS]["schema"]["fields"][2] = end
    return document


def dated_rows(patients: int, kind: str = "datetime", seed: int = 1) -> Tables:
    """Draw patients, whose visits are on workdays, in office hours where they have a time."""
    rng = np.random.default_rng(seed)
    rows = together([patient_rows(f"p{number:03}", rng) for number in range(patients)])
    for visit in rows["visits"]:
        day = np.datetime64(visit[1])
        weekday = int(day.astype(int) + 3) % 7
        visit[1] = str(day - max(0, weekday - 4))
        if kind == "datetime":
            visit[1] += f"T{rng.integers(8, 18):02}:{rng.integers(60):02}:00"
    return frames(rows)


def rows_from_one_date(patients: int, kind: str = "date") -> Tables:
    """The same, with the end of follow-up as a date."""
    tables = dated_rows(patients, kind)
    ends = np.datetime64(START) + tables["patients"]["end"].astype(int).to_numpy()
    tables["patients"]["end"] = [str(min(end, np.datetime64("2011-03-20"))) for end in ends]
    return tables


def in_hours(unit: str = "h", kind: str = "datetime") -> dict[str, Any]:
    """Stays on a ward of intensive care: vital signs in the hours since the admission."""
    admitted = field("admitted", "datetime", {"bounds_basis": "period"}, required=True)
    admitted["constraints"] |= {"minimum": "2020-01-01T00:00:00", "maximum": "2021-12-31T23:59:00"}
    left = {"after": "admitted", "longest": 72, "unit": unit, "bounds_basis": "policy"}
    vitals = [plain("id"), plain("at", kind), number("pulse", 20, 250, required=True)]
    events = [plain("id"), plain("at", kind), choice("event", "intubated", "died")]
    origin = {} if kind == "integer" else {"origin": "admitted"}
    most = {"value": 80, "basis": "a row an hour"}
    end = number("left", 0, 72) if kind == "integer" else plain("left", "datetime", **left)
    return {
        "name": "icu",
        "resources": [
            {
                "name": "patients",
                "schema": {"primaryKey": "id", "fields": [plain("id"), admitted, end]},
            },
            resource("vitals", vitals, time="at", max_rows=most, longest_gap=24, **origin),
            resource("events", events, time="at", once="event", **origin),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": 400, "basis": "report"},
            "window": {"first": 0, "last": 72, "basis": "policy", "unit": unit},
            "end": "left",
        },
    }


def hourly_rows(patients: int, kind: str = "datetime") -> Tables:
    """Patients with a row in each hour of their stay, forty minutes after it began."""
    rng, rows = np.random.default_rng(4), {"patients": [], "vitals": [], "events": []}
    for number_ in range(patients):
        name = f"p{number_:03}"
        start = np.datetime64("2020-06-01T00:00:00") + int(rng.integers(0, 4e7))
        last = int(rng.integers(4, 73))
        days, end = kind == "integer", start + np.timedelta64(last, "h")
        rows["patients"].append([name, str(start), str(last) if days else str(end)])
        for hour in range(last + 1):
            at = str(hour) if days else str(start + np.timedelta64(hour * 3600 + 2400, "s"))
            if hour < last:
                rows["vitals"].append([name, at, str(60 + hour)])
        at = str(last) if days else str(end)
        rows["events"].append([name, at, "died" if number_ % 3 else "intubated"])
    columns = {
        "patients": ["id", "admitted", "left"],
        "vitals": ["id", "at", "pulse"],
        "events": ["id", "at", "event"],
    }
    return {name: pd.DataFrame(own, columns=columns[name]) for name, own in rows.items()}
