"""Do synthetic diagnoses keep their codes, or only their chapters?

usage: codes.py [--epsilon 1 3 10] [--seeds 1] [--codes 1300 20000]

Fits the mixture to diabetes130 with a public list of ICD-9-CM categories, once as codes and once as
chapters, whose codes are then drawn alike. Prints, as means over the three diagnosis columns, the
total variation distance of codes, of codes with age, of pairs of codes, and the share of drawn
rows whose code nobody has, beside a bootstrap of the rows; then seconds and memory of a fit by the
length of the list. Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.schema import Schema
from dpsynth.tables import open_table

COLUMNS = ("diag_1", "diag_2", "diag_3")
DELTA = 1e-6
KINDS = ("chapters", "codes")


def public_list(length: int = 0) -> list[str]:
    """Return categories of ICD-9-CM by their form, and codes that nobody has up to a length."""
    codes = [str(i) for i in range(1, 1000)]
    codes += [f"250.{kind}{digit}" for kind in range(10) for digit in ("", 0, 1, 2, 3)]
    codes += [f"V{i:02d}" for i in range(1, 92)] + [f"E{i}" for i in range(800, 1000)]
    more = (f"{i}.{part}" for part in range(10, 100) for i in range(300, 1000))
    return [*codes, *(next(more) for _ in range(length - len(codes)))]


def schema_of(codes: list[str], *, emitted: bool) -> Schema:
    """Return the shipped schema with diagnoses as codes, or as chapters."""
    document: dict[str, Any] = Schema.load("diabetes130").to_dict()
    document["dpsynth"].pop("rules", None)
    for field in document["fields"]:
        if field["name"] in COLUMNS:
            listed = {"model": "chapter-diabetes", "list": {"codes": codes}}
            own = listed if emitted else {"rollup": "chapter-diabetes"}
            field["dpsynth"]["codes"] = {"system": "ICD-9-CM", **own}
    return Schema.from_dict(document)


def source() -> Path:
    """Return the table."""
    return Path(os.environ["DPSYNTH_DATA"], "diabetes130.csv.gz")


def fitted(schema: Schema, epsilon: float) -> Any:
    """Fit the mixture."""
    budget = {"epsilon": epsilon, "delta": DELTA, "dataset": "codes", "without_ledger": True}
    return dpsynth.fit(str(source()), schema, model="mixture", **budget)


def spread(frame: pd.DataFrame, schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a code of the list for each chapter, all alike."""
    frame = frame.copy()
    for name in COLUMNS:
        codes = next(column for column in schema.columns if column.name == name).codes
        assert codes is not None
        of = pd.Series(codes.group_of, index=list(codes.categories))
        members = {group: part.index.to_numpy() for group, part in of.groupby(of)}
        for group, rows in frame.groupby(name).groups.items():
            frame.loc[rows, name] = rng.choice(members[group], len(rows))
    return frame


def apart(real: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> float:
    """Return the total variation distance of some columns together."""
    shares = [frame[columns].astype(str).value_counts(normalize=True) for frame in (real, other)]
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)


def figures(real: pd.DataFrame, other: pd.DataFrame) -> str:
    """Write the distances of one table."""
    codes = np.mean([apart(real, other, [name]) for name in COLUMNS])
    ages = np.mean([apart(real, other, [name, "age"]) for name in COLUMNS])
    pairs = np.mean([apart(real, other, list(pair)) for pair in combinations(COLUMNS, 2)])
    known = {name: set(real[name].dropna()) for name in COLUMNS}
    unknown = [(~other[name].dropna().isin(known[name])).mean() for name in COLUMNS]
    nobody = np.mean(unknown)
    return f"{codes:.4f} | {ages:.4f} | {pairs:.4f} | {nobody:.4f} |"


def one_fit(length: int) -> None:
    """Print seconds and memory of a fit and of drawing; in a process of its own."""
    schema = schema_of(public_list(length), emitted=True)
    start = time.process_time()
    run = fitted(schema, 3.0)
    middle = time.process_time()
    run.sample(100_000, seed=1)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"| {len(public_list(length)):,} | {middle - start:.0f} | {end - middle:.0f} | {peak:.1f} |"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--codes", type=int, nargs="*", default=[1300, 20000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        one_fit(options.one)
        return
    schema = schema_of(public_list(), emitted=True)
    codec, rng = Codec(schema), np.random.default_rng(0)
    frames = open_table(str(source()), schema).chunks()
    real = pd.concat([codec.decode(codec.encode(frame), rng) for frame in frames])
    real = real.reset_index(drop=True)
    print("| epsilon | modelled | codes | codes with age | pairs of codes | nobody's |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for epsilon in options.epsilon:
        for kind in KINDS:
            run = fitted(schema if kind == "codes" else schema_of([], emitted=False), epsilon)
            for seed in range(options.seeds):
                drawn = run.sample(len(real), seed=seed)
                drawn = drawn if kind == "codes" else spread(drawn, schema, rng)
                print(f"| {epsilon:g} | {kind} | {figures(real, drawn)}", flush=True)
    again = real.sample(frac=1.0, replace=True, random_state=1)
    print(f"| | bootstrap of rows | {figures(real, again)}")
    print("\n| codes | fit, s | 100 000 rows, s | memory, GB |\n| ---: | ---: | ---: | ---: |")
    for length in options.codes:
        subprocess.run([sys.executable, __file__, "--one", str(length)], check=True)


if __name__ == "__main__":
    main()
