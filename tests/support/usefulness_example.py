"""The part of the hand-made evaluation on usefulness; see `evaluation_example`."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]


def estimate(value: float, reference: float | None = None, chance: float | None = None) -> Json:
    half = 0.1 * abs(value) + 0.001
    ends = {"low": round(value - half, 6), "high": round(value + half, 6)}
    return {"value": value, **ends, "n": 4000, "reference": reference, "chance": chance}


def model(name: str, tstr: float, trtr: float) -> Json:
    grid = [k / 50 for k in range(51)]
    bins = [{"predicted": k / 10 + 0.05, "observed": k / 10 + 0.04, "n": 90} for k in range(10)]
    off = [{**one, "observed": one["observed"] * 0.8 + 0.1} for one in bins]
    return {
        "model": name,
        "tstr": estimate(tstr),
        "trtr": estimate(trtr),
        "roc": {
            "synthetic": {"fpr": grid, "tpr": [x**0.45 for x in grid]},
            "source": {"fpr": grid, "tpr": [x**0.35 for x in grid]},
        },
        "calibration": {"synthetic": off, "source": bins},
    }


def ratio(value: float) -> Json:
    return {"value": value, "low": value * 0.8, "high": value * 1.25}


def effects() -> Json:
    groups: list[Json] = [
        {"column": "age", "group": "upper half", "source": ratio(2.0), "synthetic": ratio(1.7)},
        {"column": "sex", "group": "F", "source": ratio(0.6), "synthetic": ratio(1.3)},
    ]
    groups = [group | {"holdout": ratio(1.9)} for group in groups]
    return {"target": "readmitted", "class": "yes", "groups": groups, "compared": 2}


def terms(count: int) -> list[Json]:
    entries = [
        {
            "term": f"term {k}",
            "source": ratio(0.5 + 0.3 * k),
            "synthetic": ratio(0.6 + 0.25 * k),
            "overlap": round(0.9 - 0.1 * (k % 9), 3),
        }
        for k in range(count)
    ]
    entries[-1] |= {"synthetic": {"value": None, "low": None, "high": None}, "overlap": 0.0}
    return entries


def curve(group: str | None, level: str | None) -> Json:
    times = [float(k) for k in range(0, 61, 2)]
    alive = [math.exp(-t / 50) for t in times]
    return {
        "group": group,
        "level": level,
        "times": times,
        "source": alive,
        "source_low": [x - 0.03 for x in alive],
        "source_high": [min(1.0, x + 0.03) for x in alive],
        "synthetic": [x**1.1 for x in alive],
    }


def usefulness() -> Json:
    importance = [
        {"column": "age", "source": 0.12, "synthetic": 0.1},
        {"column": "bmi", "source": 0.05, "synthetic": 0.07},
        {"column": "sex", "source": 0.01, "synthetic": -0.002},
    ]
    target = {"name": "readmitted", "title": "Readmitted", "kind": "classification"}
    target |= {"class": "yes", "importance": importance}  # type: ignore[dict-item]
    target |= {"models": [model("boosting", 0.79, 0.83), model("linear", 0.77, 0.78)]}  # type: ignore[dict-item]
    means = [
        {
            "group": "sex",
            "level": level,
            "column": column,
            "source": {"value": value, "low": value - 1, "high": value + 1, "n": 2000},
            "synthetic": {
                "value": value + d,
                "low": value + d - 1,
                "high": value + d + 1,
                "n": 1900,
            },
        }
        for level, d in (("F", 0.5), ("M", 4.0))
        for column, value in (("age", 54.0), ("bmi", 27.0))
    ]
    odds = {"target": "readmitted", "class": "yes", "terms": terms(6), "overlap": 0.6}
    curves = [curve(None, None), curve("sex", "F"), curve("sex", "M")]
    survival = {"time": "days", "event": "death", "curves": curves, "cox": terms(4)}
    return {
        "targets": [target],
        "odds_ratios": [odds],
        "effects": [effects()],
        "group_means": means,
        "survival": survival,
    }
