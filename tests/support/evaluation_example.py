"""A small evaluation in the format of evaluation.json, made by hand: what reports are tested with.

No figure comes from data. `hostile` puts markup, quotes and invisible characters wherever a text of
a schema can stand; `wide` is as large as evaluations get.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from .usefulness_example import Json, estimate, usefulness

NASTY = "<script>alert(1)</script>&\"'‮</style>]]>"


def measure(title: str, best: float, *figures: float | None) -> Json:
    meaning = f"What {title.lower()} counts, in one plain sentence."
    return {"title": title, **estimate(*figures), "best": best, "meaning": meaning}  # type: ignore[arg-type]


def bell(count: int, middle: float, width: float) -> list[float]:
    heights = [math.exp(-(((k - middle) / width) ** 2) / 2) for k in range(count)]
    return [round(height / sum(heights), 6) for height in heights]


def number(name: str, shift: float = 0.0, gaps: float = 0.0) -> Json:
    missing = {"source": gaps, "synthetic": gaps * 1.3, "holdout": gaps * 0.9}
    return {
        "name": name,
        "title": name.capitalize(),
        "type": "integer",
        "unit": "a",
        "kind": "numeric",
        "bins": [f"{18 + 3 * k} to {20 + 3 * k}" for k in range(24)],
        "source": bell(24, 11, 5),
        "synthetic": bell(24, 11 + shift, 5.5),
        "holdout": bell(24, 11.1, 5),
        "missing": missing,
        "tvd": estimate(round(0.01 + 0.03 * shift, 4), 0.011, 0.009),
    }


def category(name: str, levels: tuple[str, ...] = ("F", "M")) -> Json:
    count = len(levels)
    return {
        "name": name,
        "title": name.capitalize(),
        "type": "string",
        "unit": None,
        "kind": "category",
        "bins": list(levels),
        "source": bell(count, 0, 2),
        "synthetic": bell(count, 0.2, 2.2),
        "holdout": bell(count, 0, 2.1),
        "missing": {"source": 0.0, "synthetic": 0.0, "holdout": 0.0},
        "tvd": estimate(0.014, 0.008, 0.007),
    }


def square(count: int, value: float, diagonal: float | None) -> list[list[float | None]]:
    return [
        [
            diagonal if i == j else round(value * math.cos(1 + min(i, j) + 2 * max(i, j)), 4)
            for j in range(count)
        ]
        for i in range(count)
    ]


def pairs(names: list[str], numeric: list[str]) -> Json:
    n, m = len(names), len(numeric)
    distances = [[None if x is None else abs(x) for x in row] for row in square(n, 0.1, None)]
    information = {
        "source": [[abs(x or 0.0) for x in row] for row in square(n, 0.6, 1.0)],
        "synthetic": [[abs(x or 0.0) for x in row] for row in square(n, 0.5, 1.0)],
    }
    correlation = {"names": numeric, "source": square(m, 0.8, 1.0)}
    correlation["synthetic"] = square(m, 0.6, 1.0)
    return {
        "names": names,
        "tvd": distances,
        "correlation": correlation,
        "information": information,
    }


def location(column: Json) -> Json:
    """A numeric column whose mean is as near as a holdout's."""
    known = {"mean": 50.0, "deviation": 15.0, "median": 50.0, "p01": 20.0, "p99": 85.0}
    known |= {"lowest": 22.0, "highest": 80.0}
    return {
        **{name: column[name] for name in ("title", "unit", "type")},
        **{"column": column["name"], "step": 1.0},
        **{"source": known, "synthetic": known, "holdout": known},
        **{"mean": estimate(0.02, 0.03, 0.02), "reach": estimate(0.1, 0.08, 0.05)},
    }


def fidelity(columns: list[Json]) -> Json:
    names = [column["name"] for column in columns]
    numeric = [column["name"] for column in columns if column["kind"] == "numeric"]
    edges = [k / 4 for k in range(-20, 21)]
    cloud = [[a * b for a in bell(40, 18, 6)] for b in bell(40, 20, 5)]
    moved = [[a * b for a in bell(40, 21, 7)] for b in bell(40, 20, 5)]
    errors = {"0.5": 0.002, "0.9": 0.009, "0.99": 0.021, "1": 0.034}
    tail = {"column": names[0], "source": 0.01, "synthetic": 0.016, "holdout": 0.011}
    return {
        "columns": columns,
        "pairs": pairs(names, numeric),
        "missing_patterns": [
            {"columns": [], "source": 0.8, "synthetic": 0.77, "holdout": 0.81},
            {"columns": names[:2], "source": 0.1, "synthetic": 0.13, "holdout": 0.1},
        ],
        "heaping": [
            {"column": names[0], "base": 10, "source": 0.4, "synthetic": 0.31, "holdout": 0.41},
            {"column": names[0], "base": "most common value"}
            | {"source": 0.1, "synthetic": 0.08, "holdout": 0.1},
        ],
        "tails": [
            tail | {"tail": "low", "quantile": 0.01},
            tail | {"tail": "high", "quantile": 0.99},
        ],
        "location": [location(column) for column in columns if column["kind"] == "numeric"],
        "followed": [category("visits", ("Mon", "Tue")) | {"mark": "weekday"}],
        "followed_pairs": [
            {"column": names[0], "with": names[-1], "source": 0.5, "synthetic": 0.1}
        ],
        "strongest": [
            {"columns": names[:2], "source": 0.6, "synthetic": 0.3, "holdout": 0.59}
            | {"chance": 0.6},
            {"columns": names[1:3], "source": 0.4, "synthetic": 0.39, "holdout": 0.41}
            | {"chance": 0.4},
        ],
        "unseen": [
            {"columns": names[:2], "share": 0.02, "holdout": 0.0, "bins": ["70 to 99", "high"]}
            | {"largest": 0.015, "expected": 0.03}
        ],
        "undeclared_levels": [{"column": names[-1], "synthetic": 0.004, "holdout": 0.0}],
        "queries": {
            "ways": 3,
            "count": 500,
            "error_quantiles": {
                "synthetic": errors,
                "holdout": {k: v / 2 for k, v in errors.items()},
                "chance": {k: v / 2.5 for k, v in errors.items()},
            },
        },
        "c2st": {
            "auc": {**estimate(0.62, 0.51, 0.5)},
            "telling": [{"column": names[0], "importance": 0.08}],
        },
        "sdmetrics": {"rows": 4000, "quality": 0.93, "shapes": 0.95, "pairs": 0.91}
        | {"diagnostic": 1.0}
        | {"holdout": {"quality": 0.98, "shapes": 0.99, "pairs": 0.97, "diagnostic": 1.0}},
        "embedding": {"x": edges, "y": edges, "source": cloud, "synthetic": moved}
        | {"explained": [0.31, 0.17]},
    }


def measures(columns: list[Json]) -> Json:
    of_columns = {
        f"tvd1:{c['name']}": measure(
            f"Distance of {c['title']}", 0.0, c["tvd"]["value"], 0.01, 0.009
        )
        for c in columns
    }
    return {
        "never": measure("Pairs never seen", 0.0, 0.11, 0.004, 0.0),
        "never_rows": measure("Rows with pairs never seen", 0.0, 0.06, 0.002, 0.0),
        "seldom": measure("Rare pairs", 1.0, 2.4, 1.14, 1.02),
        "strongest": measure("Strongest relations", 1.0, 0.88, 0.99, 0.99),
        "levels": measure("Undeclared levels", 0.0, 0.004, 0.0, 0.0),
        "patterns_unseen": measure("Patterns never seen", 0.0, 0.2, 0.0, 0.0),
        "effects:readmitted": measure("Size of effects on Readmitted", 1.0, 0.7, 0.98, 1.0),
        "signs:readmitted": measure("Wrong signs for Readmitted", 0.0, 0.2, 0.03, 0.0),
        "tvd1": measure("One-way distance", 0.0, 0.013, 0.009, 0.008),
        "tvd2": measure("Two-way distance", 0.0, 0.021, 0.015, 0.013),
        "tvd3": measure("Three-way distance", 0.0, 0.041, 0.031, 0.03),
        "correlation": measure("Difference of correlations", 0.0, 0.03, 0.01, 0.009),
        "information": measure("Difference of shared information", 0.0, 0.008, 0.002, 0.002),
        "missing": measure("Difference of missing shares", 0.0, 0.004, 0.003, 0.002),
        "patterns": measure("Distance of missing patterns", 0.0, 0.03, 0.01, 0.01),
        "heaping": measure("Difference of heaps", 0.0, 0.06, 0.01, 0.01),
        "tails": measure("Difference of tails", 0.0, 0.006, 0.001, 0.001),
        "queries": measure("Error of counting queries", 0.0, 0.004, 0.002, 0.0018),
        "queries_worst": measure("Error of the worst queries", 0.0, 0.021, 0.01, 0.009),
        "c2st": measure("Telling synthetic from real", 0.5, 0.62, 0.51, 0.5),
        "sdmetrics_quality": measure("Quality score of sdmetrics", 1.0, 0.93, 0.98),
        "tstr:readmitted": measure("Boosting for Readmitted", 1.0, 0.79, 0.83),
        "tstr_gap:readmitted": measure("Loss by boosting for Readmitted", 0.0, 0.04),
        "calibration:readmitted": measure("Calibration error for Readmitted", 0.0, 0.03, 0.01),
        "importance:readmitted": measure("Agreement of importances", 1.0, 0.9, None, 0.97),
        "odds:readmitted": measure("Overlap of odds ratios", 1.0, 0.6, 0.8, 0.82),
        "group_means": measure("Difference of group means", 0.0, 0.08, 0.02, 0.02),
        "survival": measure("Difference of survival curves", 0.0, 0.02, 0.01, 0.01),
        "cox": measure("Overlap of hazard ratios", 1.0, 0.62, 0.8, 0.81),
        "subgroup_worst_tvd2": measure("Worst subgroup", 0.0, 0.09, 0.05, 0.04),
        "rules": measure("Impossible records", 0.0, 0.01, 0.0, 0.0),
        "brand_new": measure("A measure that no page knows", 0.0, 0.5),
        **of_columns,
    }


def subgroups() -> list[Json]:
    sizes = {"n_source": 2000, "n_synthetic": 1900, "n_holdout": 500}
    one = {"column": "sex", **sizes, "share_source": 0.5, "share_synthetic": 0.48}
    known = {"tvd1": 0.02, "tvd2": 0.05, "chance_tvd2": 0.03}
    known |= {"tstr": {"readmitted": {"value": 0.78, "trtr": 0.82, "n": 500}}}  # type: ignore[dict-item]
    none = {"tvd1": None, "tvd2": None, "chance_tvd2": None, "tstr": {}}
    few = {"n_source": 12, "n_synthetic": 9, "n_holdout": 3}
    return [
        {**one, "level": "F", "title": "Sex: F", **known, "worst": False},
        {**one, "level": "M", "title": "Sex: M", **known, "tvd2": 0.09, "worst": True},
        {**one, "level": "other", "title": "Sex: other", **few, **none, "worst": False},
    ]


def document(columns: list[Json] | None = None) -> Json:
    """Return a complete evaluation of a small table."""
    if columns is None:
        levels = ("none", "one", "two or three", "four or more")
        columns = [number("age", 0.6), number("bmi", 0.2, 0.1), category("sex")]
        columns.append(category("visits", levels))
    rule = {"rule": "admitted <= discharged", "text": "admitted <= discharged"}
    rule |= {"plain": "Nobody is discharged before being admitted"}
    gate = {"limit": "at most 0.05", "reason": "Analyses of pairs fail beyond it."}
    return {
        "format": "dpsynth-evaluation",
        "version": 1,
        "internal": True,
        "schema": {"name": "demo", "title": "A demo cohort", "sha256": "ab" * 32},
        "tables": {
            "source": {"rows": 8000, "units": 5000, "name": "source.csv"},
            "synthetic": {"rows": 4000, "name": "out.parquet", "sha256": "cd" * 32},
            "holdout": {"rows": 2000, "units": 1200, "name": "holdout.csv"},
        },
        "run": {"model": "tvae", "epsilon": 3.0, "delta": 1e-6},
        "seed": 7,
        "dpsynth": "0.1.0",
        "measures": measures(columns),
        "parts": {
            "fidelity": fidelity(columns),
            "usefulness": usefulness(),
            "subgroups": {"subgroups": subgroups()},
            "rules": {"rules": [rule | {"source": 0.0, "synthetic": 0.01, "holdout": 0.0}]},
        },
        "notes": ["sdmetrics ran on 4000 rows of each table"],
        "gates": [
            gate | {"key": "tvd2", "title": "Two-way distance", "passed": True, "value": 0.021},
            gate | {"key": "c2st", "title": "Told apart", "passed": False, "value": 0.62},
            gate | {"key": "cox", "title": "Hazard ratios", "passed": None, "value": None},
        ],
    }


def wide(count: int = 50) -> Json:
    """Return an evaluation of a table of so many columns, with the longest details."""
    levels = tuple(f"level {k} of a long list" for k in range(30))
    columns = [
        number(f"a_rather_long_name_{k}", k / 25, 0.01 * k)
        if k % 2
        else category(f"a_rather_long_name_{k}", levels)
        for k in range(count)
    ]
    return document(columns)


def hostile() -> Json:
    """Return an evaluation all of whose texts are hostile."""

    def spoiled(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoiled(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [spoiled(one, key) for one in value]
        fixed = {"format", "kind", "tail", "model", "sha256", "dpsynth", "key"}
        return f"{value}{NASTY}" if isinstance(value, str) and key not in fixed else value

    return dict(spoiled(copy.deepcopy(document())))


def less(**changed: Any) -> Json:
    """Return the example with some top-level entries replaced."""
    return {**document(), **changed}
