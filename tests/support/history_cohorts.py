"""Made-up cohorts of coded histories with a known truth, and twins that are broken in one way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories, HistoryCodec, SeriesRows
from dpsynth.eval.fidelity import records
from dpsynth.eval.longitudinal import prediction
from dpsynth.schema import LinkedSchema

LAST = 3650
MAX_ROWS = 40
HDL = 60  # codes


def document() -> dict[str, Any]:
    """Patients who may die; long laboratory values, events, visits in order, and an empty table."""
    key = {"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}

    def field(name: str, type_: str, role: Any = None, **rest: Any) -> dict[str, Any]:
        own = {"bounds_basis": "form"} | ({"role": role} if role else {})
        return {"name": name, "type": type_, "constraints": rest, "dpsynth": own}

    def table(name: str, fields: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
        if "once" not in own:
            own["max_rows"] = {"value": MAX_ROWS, "basis": "policy"}
        names = [{"name": "id", "type": "string"}, *fields]
        return {"name": name, "schema": {"foreignKeys": [key], "fields": names}, "dpsynth": own}

    hdl = {"minimum": 20, "maximum": 79, "step": 1, "required": True, "bounds_basis": "range"}
    smoke = {"enum": [0, 1], "required": True, "bounds_basis": "form"}
    day = {"name": "day", "type": "integer"}
    patients = [
        {"name": "id", "type": "string"},
        field("sex", "string", "group", enum=["F", "M"], required=True),
        field("age", "integer", "group", minimum=20, maximum=89, required=True),
        field("end", "integer", "time", minimum=0, maximum=LAST, required=True),
        field("dead", "integer", "event", enum=[0, 1], required=True),
    ]
    series = {"column": "test", "value": "value", "tests": {"hdl": hdl, "smoke": smoke}}
    labs = [day, {"name": "test", "type": "string"}, {"name": "value", "type": "number"}]
    return {
        "name": "ward",
        "title": "Ward",
        "resources": [
            {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}},
            table("labs", labs, time="day", series=series),
            table("events", [day, field("event", "string", enum=["mi"])], time="day", once="event"),
            table(
                "visits",
                [
                    {"name": "number", "type": "integer"},
                    field("ward", "string", enum=["a", "b", "c"], required=True),
                    field("stay", "integer", "target", minimum=1, maximum=14),
                ],
                order="number",
            ),
            table("scans", [day, field("size", "integer", minimum=0, maximum=9)], time="day"),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": 900, "basis": "report"},
            "window": {"first": -LAST, "last": LAST, "basis": "protocol"},
            "end": "end",
        },
    }


def codec() -> HistoryCodec:
    """The codec of `document`."""
    return HistoryCodec(LinkedSchema.from_dict(document()))


def cohort(
    size: int = 1500,
    seed: int = 0,
    *,
    steady: float = 0.4,
    serial: float = 0.95,
    rows: float = 5.0,
    hazard: float = 1.0,
    sex_effect: float = 14.0,
    pace: float = 200.0,
) -> Histories:
    """Draw patients whose values depend on sex, on who they are and on the value before.

    Args:
        size: number of patients.
        seed: of the draw.
        steady: how much of the variation of hdl, but for sex, lies between patients.
        serial: correlation of what varies within a patient from row to row.
        rows: mean number of rows of hdl.
        hazard: of death and of events, relative.
        sex_effect: on hdl.
        pace: mean days between rows.
    """
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, size), rng.integers(0, 70, size)
    risk = hazard * np.exp((age - 35) / 25)
    death, out = rng.exponential(4000 / risk), rng.integers(200, LAST, size)
    ends = np.minimum(np.maximum(death, 1), out).astype(np.int64)
    dead = (death <= out).astype(int)
    onset = np.rint(rng.exponential(5000 / risk) - 400).astype(np.int64)
    onsets = np.where(onset <= ends, np.maximum(onset, -LAST), NEVER)[:, None]
    level = rng.normal(0, 8 * steady**0.5, size) + sex_effect * (sex - 0.5)

    def hdl(who: Any) -> Any:
        return _hdl(rng, who, level, steady, serial)

    tables = (
        (
            _series(rng, rng.poisson(rows, size), ends, pace, hdl),
            _series(rng, rng.poisson(1.0, size), ends, pace, lambda who: _smoke(rng, who, sex)),
        ),
        (_visits(rng, rng.integers(0, 5, size), age),),
        (_series(rng, np.zeros(size, int), ends, pace, lambda who: np.zeros((0, 1))),),
    )
    baseline = np.column_stack([sex, age, ends, dead]).astype(np.uint16)
    return Histories(baseline, ends, onsets, tables)


def _series(
    rng: np.random.Generator, counts: Any, ends: Any, pace: float, values: Any
) -> SeriesRows:
    counts = np.minimum(counts, MAX_ROWS)
    who = np.repeat(np.arange(len(counts)), counts)
    steps = rng.exponential(pace, len(who))
    sums = np.cumsum(steps)
    starts = np.cumsum(counts) - counts
    before = np.concatenate([[0.0], sums])[starts][who]
    days = np.rint(sums - before).astype(np.int64) - 400
    days = np.clip(days, -LAST, ends[who])
    return SeriesRows(who, days, values(who).astype(np.uint16))


def _hdl(rng: np.random.Generator, who: Any, level: Any, steady: float, serial: float) -> Any:
    noise = rng.normal(0, 8 * (1 - steady) ** 0.5, len(who))
    first = np.concatenate([[True], np.diff(who) != 0]) if len(who) else np.zeros(0, bool)
    index = np.arange(len(who)) - np.maximum.accumulate(np.where(first, np.arange(len(who)), 0))
    for number in range(1, int(index.max(initial=0)) + 1):
        at = np.flatnonzero(index == number)
        noise[at] = serial * noise[at - 1] + (1 - serial**2) ** 0.5 * noise[at]
    return np.clip(np.rint(30 + level[who] + noise), 0, HDL - 1)[:, None]


def _smoke(rng: np.random.Generator, who: Any, sex: Any) -> Any:
    return (rng.random(len(who)) < 0.2 + 0.3 * sex[who])[:, None]


def _visits(rng: np.random.Generator, counts: Any, age: Any) -> SeriesRows:
    """Draw wards that stay the same four times in five, and stays that grow with age."""
    who = np.repeat(np.arange(len(counts)), counts)
    first = np.concatenate([[True], np.diff(who) != 0]) if len(who) else np.zeros(0, bool)
    fresh = first | (rng.random(len(who)) < 0.2)
    drawn = rng.integers(0, 3, len(who))
    last = np.maximum.accumulate(np.where(fresh, np.arange(len(who)), 0))
    stay = np.clip(rng.poisson(2 + age[who] / 14), 0, 14)
    values = np.column_stack([drawn[last], stay]).astype(np.uint16)
    return SeriesRows(who, np.zeros(len(who), dtype=np.int64), values)


def with_rows(histories: Histories, table: int, place: int, rows: SeriesRows) -> Histories:
    """Put other rows in the place of a series."""
    tables = [list(one) for one in histories.rows]
    tables[table][place] = rows
    return Histories(
        histories.baseline, histories.ends, histories.onsets, tuple(map(tuple, tables))
    )


def shuffled_within(histories: Histories, seed: int = 0) -> Histories:
    """Put the values of each patient in another order: her own values stay hers."""
    rng = np.random.default_rng(seed)
    found = histories
    for table, series in enumerate(histories.rows):
        for place, rows in enumerate(series):
            order = np.lexsort([rng.random(len(rows.patients)), rows.patients])
            found = with_rows(
                found, table, place, SeriesRows(rows.patients, rows.days, rows.values[order])
            )
    return found


def shuffled_between(histories: Histories, seed: int = 0) -> Histories:
    """Deal all values anew among all rows: nothing of a patient's values stays hers."""
    rng = np.random.default_rng(seed)
    found = histories
    for table, series in enumerate(histories.rows):
        for place, rows in enumerate(series):
            values = rows.values[rng.permutation(len(rows.patients))]
            found = with_rows(found, table, place, SeriesRows(rows.patients, rows.days, values))
    return found


def grow_few_trees(patch: pytest.MonkeyPatch) -> None:
    """Let models of histories learn little: for tests of documents, not of what is learned."""
    for module in (prediction, records):
        patch.setattr(module, "SETTINGS", module.SETTINGS | {"max_iter": 8})
