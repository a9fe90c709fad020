"""A made-up hospital of coded histories, whose rows, codes and events belong together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth.encoding import NEVER, Histories, HistoryCodec, SeriesRows
from dpsynth.schema import LinkedSchema

LAST = 1826
CODES = ("E11", "I10", "N18", "O80")
E11, O80 = 0, 3


def document(**declared: Any) -> dict[str, Any]:
    """Patients who may die; stays with a diagnosis, values within them, and two events.

    Args:
        declared: ``inside``, ``implies`` or ``last_day``, as a schema declares them.
    """
    key = {"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}

    def field(name: str, type_: str, role: Any = None, **rest: Any) -> dict[str, Any]:
        own = {"bounds_basis": "form"} | ({"role": role} if role else {})
        return {"name": name, "type": type_, "constraints": rest, "dpsynth": own}

    def table(name: str, fields: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
        if "once" not in own:
            own["max_rows"] = {"value": 60, "basis": "policy"}
        names = [{"name": "id", "type": "string"}, {"name": "day", "type": "integer"}, *fields]
        own["time"] = "day"
        return {"name": name, "schema": {"foreignKeys": [key], "fields": names}, "dpsynth": own}

    patients = [
        {"name": "id", "type": "string"},
        field("sex", "string", "group", enum=["F", "M"], required=True),
        field("age", "integer", minimum=20, maximum=89, required=True),
        field("end", "integer", minimum=0, maximum=LAST, required=True),
    ]
    test = {"minimum": 0, "maximum": 99, "step": 1, "required": True, "bounds_basis": "range"}
    tests = {"sbp": test | {"ucum": "mm[Hg]"}, "dbp": test}
    series = {"column": "test", "value": "value", "tests": tests}
    labs = [{"name": "test", "type": "string"}, {"name": "value", "type": "number"}]
    stays = [
        field("los", "integer", minimum=0, maximum=30, required=True),
        field("diagnosis", "string", enum=list(CODES), required=True),
    ]
    events = [field("event", "string", enum=["mi", "chd", "death"])]
    inside = {"inside": declared["inside"]} if "inside" in declared else {}
    extra = {name: declared[name] for name in ("implies", "last_day") if name in declared}
    return {
        "name": "hospital",
        "title": "Hospital",
        "resources": [
            {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}},
            table("stays", stays),
            table("labs", labs, series=series, **inside),
            table("events", events, once="event"),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": 1500, "basis": "report"},
            "window": {"first": 0, "last": LAST, "basis": "protocol"},
            "end": "end",
            "ended_by": "death",
        }
        | extra,
    }


def codec(**declared: Any) -> HistoryCodec:
    """The codec of `document`."""
    return HistoryCodec(LinkedSchema.from_dict(document(**declared)))


def hospital(size: int = 1500, seed: int = 0) -> Histories:
    """Draw patients with stays; values lie in stays, and depend on diagnosis, age and each other.

    A patient with mi has chd before it or on that day; men have no O80.
    """
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, size), rng.integers(0, 70, size)
    death = rng.exponential(6000 / np.exp((age - 35) / 20), size)
    lost = np.where(rng.random(size) < 0.4, rng.integers(200, LAST, size), LAST)
    ends = np.minimum(np.maximum(death, 20), lost).astype(np.int64)
    chd = rng.exponential(3000 / np.exp((age - 35) / 25), size).astype(np.int64) + 1
    mi = chd + np.where(rng.random(size) < 0.5, 0, rng.integers(1, 300, size))
    mi = np.where(rng.random(size) < 0.5, mi, LAST + 1)
    onsets = np.column_stack([mi, chd, np.where(death <= lost, ends, LAST + 1)])
    onsets = np.where(onsets <= ends[:, None], onsets, NEVER)
    ill = rng.random(size) < 0.25
    counts = 1 + rng.poisson(2.5, size)
    who = np.repeat(np.arange(size), counts)
    los = rng.integers(0, 15, len(who))
    days = rng.integers(0, np.maximum(ends[who] - 15, 1))
    order = np.lexsort([days, who])
    days, los = np.minimum(days[order], ends[who]), np.minimum(los, 14)
    drawn = rng.integers(1, 3, len(who))
    birth = (sex[who] == 0) & (age[who] < 25) & (rng.random(len(who)) < 0.3)
    codes = np.where(birth, O80, np.where(ill[who] & (rng.random(len(who)) < 0.7), E11, drawn))
    stays = SeriesRows(who, days, np.column_stack([los, codes]).astype(np.uint16))
    labs = np.repeat(np.arange(len(who)), 2)
    at = days[labs] + (rng.random(len(labs)) * (los[labs] + 1)).astype(np.int64)
    at = np.minimum(at, ends[who[labs]])
    own = who[labs]
    order = np.lexsort([at, own])
    own, at = own[order], at[order]
    level = rng.normal(0, 6, size) + 14 * ill + 0.2 * age
    sbp = 30 + level[own] + rng.normal(0, 5, len(own))
    dbp = 20 + 0.5 * (sbp - 30) + rng.normal(0, 4, len(own))

    def rows(values: Any) -> SeriesRows:
        return SeriesRows(own, at, np.clip(np.rint(values), 0, 99).astype(np.uint16)[:, None])

    baseline = np.column_stack([sex, age, ends]).astype(np.uint16)
    return Histories(baseline, ends, onsets, ((stays,), (rows(sbp), rows(dbp))))


def with_stays(histories: Histories, **changes: Any) -> Histories:
    """Change days or values of stays."""
    (stays,), labs = histories.rows
    return _with(histories, ((replace(stays, **changes),), labs))


def with_labs(histories: Histories, number: int, **changes: Any) -> Histories:
    """Change days or values of a test: 0 is sbp, 1 is dbp."""
    stays, labs = histories.rows
    changed = [replace(one, **changes) if n == number else one for n, one in enumerate(labs)]
    return _with(histories, (stays, tuple(changed)))


def with_patients(histories: Histories, **changes: Any) -> Histories:
    """Change baseline, ends or onsets."""
    own = {name: getattr(histories, name) for name in ("baseline", "ends", "onsets")}
    return Histories(**(own | changes), rows=histories.rows)


def _with(histories: Histories, rows: Any) -> Histories:
    return Histories(histories.baseline, histories.ends, histories.onsets, rows)
