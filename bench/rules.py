"""What rules by construction gain over rows that are drawn again.

usage: rules.py [--epsilon 1 3 10] [--models independent mixture] [--tables made demo cardio ...]

Fits each table twice: with its order as a rule of text, whose broken rows are drawn again, and as
an order that holds by construction. Groups of codes are modelled as columns of their own, and then
derived. Prints the share of drawn rows that met the rules, the total variation distance of the
upper column to the source (of deciles of the source), the mean gap, the share of rows whose group
is not that of their code, and rows per second. `cardio` and `diabetes130` need DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.schema import Grouping, Schema
from dpsynth.synthesis import Sampler
from dpsynth.tables import simulate

DELTA = 1e-6
DRAWN = 50_000
BASIS = "made for this program"


@dataclass(frozen=True)
class Case:
    """One table, with its rules in both forms.

    Attributes:
        name: of the table.
        frame: its rows.
        told: the schema with rules of text, and groups as columns of their own.
        built: the schema in which they hold by construction.
        pair: the lower and the upper column of its order; None without one.
        group: a column of codes and its group; None without one.
    """

    name: str
    frame: pd.DataFrame
    told: Schema
    built: Schema
    pair: tuple[str, str] | None
    group: tuple[str, str] | None


def ordered(document: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a document in which a rule of text is an order."""
    own = document["dpsynth"]
    rules = [{"order": text} if rule == text else rule for rule in own["rules"]]
    return {**document, "dpsynth": {**own, "rules": rules}}


def grouped(document: dict[str, Any], code: str, group: str) -> tuple[dict[str, Any], ...]:
    """Return a document with the chapter of a code, modelled and derived."""
    names = {field["name"]: field for field in document["fields"]}
    codes = {"system": names[code]["dpsynth"]["codes"]["system"], "rollup": "chapter"}
    alone = {"name": group, "type": "string", "dpsynth": {"codes": codes}}
    derived = {"derived": {"group": code, "level": "chapter"}}
    follows = {"name": group, "type": "string", "dpsynth": derived}
    told = {**document, "fields": [*document["fields"], alone]}
    return told, {**document, "fields": [*document["fields"], follows]}


def field(name: str, type_: str, own: Any = None, **constraints: Any) -> dict[str, Any]:
    """Return a field of a schema."""
    dpsynth = {"bounds_basis": BASIS} | (own or {})
    return {"name": name, "type": type_, "constraints": constraints, "dpsynth": dpsynth}


def made(rows: int = 20_000) -> Case:
    """Three pressures in order, far apart or close; a pregnancy of women; a diagnosis."""
    rng = np.random.default_rng(1)
    low = rng.normal(75, 12, rows).round().clip(30, 159)
    high = (low + 1 + rng.gamma(1.5, 12, rows)).round().clip(60, 260)
    low = np.minimum(low, high - 1)
    frame = pd.DataFrame({"low": low.astype(int), "high": high.astype(int)})
    frame["top"] = (high + rng.gamma(1, 6, rows)).round().clip(60, 300).astype(int)
    frame["sex"] = rng.choice(["F", "M"], rows)
    frame["age"] = rng.integers(18, 91, rows)
    can = (frame["sex"] == "F") & (frame["age"] < 50)
    frame["pregnant"] = np.where(can, rng.random(rows) < 0.15, None)
    codes = ["I10", "I21.0", "E11.9", "J44.1", "N18.3", "F32.0", "C50.9"]
    frame["diagnosis"] = rng.choice(codes, rows)
    frame["chapter"] = frame["diagnosis"]
    pregnant = field("pregnant", "boolean")
    text = "low < high <= top"
    number = {"value": rows, "basis": BASIS}
    document = {
        "name": "made",
        "fields": [
            field("low", "integer", minimum=30, maximum=159, required=True),
            field("high", "integer", minimum=60, maximum=260, required=True),
            field("top", "integer", minimum=60, maximum=300, required=True),
            field("sex", "string", {"on_unknown": "F"}, enum=["F", "M"], required=True),
            field("age", "integer", minimum=18, maximum=90, required=True),
            pregnant,
            field(
                "diagnosis",
                "string",
                {"codes": {"system": "ICD-10-CM", "rollup": "block"}},
                required=True,
            ),
        ],
        "dpsynth": {
            "version": 1,
            "population": number,
            "rows": number,
            "rules": [text, "pregnant == true implies sex == 'F' and age < 50"],
        },
    }
    told, derived = grouped(document, "diagnosis", "chapter")
    built = ordered(derived, text)
    built["dpsynth"]["rules"] = built["dpsynth"]["rules"][:1]
    own = pregnant["dpsynth"] | {"present_if": "sex == 'F' and age < 50"}
    built["fields"] = [
        {**one, "dpsynth": own} if one["name"] == "pregnant" else one for one in built["fields"]
    ]
    both = Schema.from_dict(told), Schema.from_dict(built)
    return Case("made", frame, *both, ("low", "high"), ("diagnosis", "chapter"))


def shipped(name: str, frame: pd.DataFrame, code: str | None) -> Case:
    """Return a shipped schema, as it is and with its order by construction."""
    told: dict[str, Any] = Schema.load(name).to_dict()
    text, group = "dbp < sbp", None
    pair = ("dbp", "sbp") if text in told["dpsynth"]["rules"] else None
    built = told if pair is None else ordered(told, text)
    if code is not None:
        group = (code, f"{code}_chapter")
        frame = frame.assign(**{group[1]: frame[code]})
        told, _ = grouped(told, *group)
        _, built = grouped(built, *group)
    return Case(name, frame, Schema.from_dict(told), Schema.from_dict(built), pair, group)


def cases(names: list[str]) -> Iterator[Case]:
    """Yield the tables."""
    for name in names:
        if name == "made":
            yield made()
        elif name == "demo":
            yield shipped(name, simulate(20_000, seed=1), "diagnosis")
        else:
            path = Path(os.environ["DPSYNTH_DATA"], f"{name}.csv.gz")
            code = "diag_1" if name == "diabetes130" else None
            sign = Schema.load(name).dialect.delimiter
            frame = pd.read_csv(path, dtype=str, keep_default_na=False, sep=sign)
            yield shipped(name, frame, code)


def figures(case: Case, schema: Schema, model: str, epsilon: float) -> list[str]:
    """Fit, draw, and return the figures of a line."""
    terms = {"epsilon": epsilon, "delta": DELTA, "dataset": "bench", "without_ledger": True}
    run = dpsynth.fit(case.frame, schema, model=model, **terms)
    sampler = Sampler.of(run)
    start = time.perf_counter()
    table = pd.concat(sampler.frames(DRAWN, seed=1), ignore_index=True)
    speed = DRAWN / (time.perf_counter() - start)
    distance = gap = wrong = "-"
    if case.pair is not None:
        low, high = case.pair
        sides = [
            one[[low, high]].apply(pd.to_numeric, errors="coerce").dropna()
            for one in (case.frame, table)
        ]
        bounds = schema.column(high)
        sides = [
            one.assign(**{high: one[high].clip(bounds.minimum, bounds.maximum)}) for one in sides
        ]
        sides[0] = sides[0][sides[0][low] < sides[0][high]]  # the records that keep the order
        edges = np.unique(np.quantile(sides[0][high], np.linspace(0, 1, 11)[1:-1]))
        shares = [
            np.bincount(np.searchsorted(edges, s[high]), minlength=10) / len(s) for s in sides
        ]
        distance = f"{abs(shares[0] - shares[1]).sum() / 2:.3f}"
        gap = " / ".join(f"{(s[high] - s[low]).mean():.1f}" for s in reversed(sides))
    if case.group is not None:
        code, group = case.group
        column = schema.column(code)
        groups = Grouping(code, "chapter").groups(column.codes, column.levels)
        both = table[[code, group]].dropna()
        wrong = f"{(both[code].map(groups) != both[group]).mean():.1%}"
    return [f"{sampler.acceptance.share:.1%}", distance, gap, wrong, f"{speed:,.0f}"]


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1, 3, 10])
    parser.add_argument("--models", nargs="+", default=["independent", "mixture"])
    parser.add_argument("--tables", nargs="+", default=["made", "demo", "cardio", "diabetes130"])
    settings = parser.parse_args()
    head = ["table", "model", "epsilon", "rules", "met", "distance", "mean gap", "wrong", "rows/s"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for case in cases(settings.tables):
        for model in settings.models:
            for epsilon in settings.epsilon:
                for words, schema in (("drawn again", case.told), ("construction", case.built)):
                    row = [case.name, model, f"{epsilon:g}", words]
                    row += figures(case, schema, model, epsilon)
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
