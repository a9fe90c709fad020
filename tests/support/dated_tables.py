"""Packages whose rows have dates: with parts of the calendar, or counted from one date for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .linked_rows import Tables, frames, patient_rows, together
from .linked_tables import field, package

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
