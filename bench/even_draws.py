"""What even draws take off the error of a table: the same fits, drawn evenly and independently.

usage: even_draws.py [--parts cardio,diabetes130,diabetes130:10000] [--epsilon 3] [--fits 2]
    [--draws 2] [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5. Fits `--model auto` to a
table, or to so many of its rows, draws as many rows in both ways, and scores them. Prints means.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from auto_choice import part_schema
from few_patients_real import DELTA, FIGURES
from quality import UNSET, prepared, score

from dpsynth._util.seeds import fresh_seed
from dpsynth.synthesis import fitting
from dpsynth.synthesis.drawing.sampler import Sampler
from dpsynth.tables.table import write_table


def drawn(folder: Path, units: int | None, epsilon: float, seed: int, draws: int) -> dict[str, Any]:
    """Fit once; return the scores of draws of both ways."""
    train = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    units = units or len(train)
    rows = np.random.default_rng([seed, units]).permutation(len(train))[:units]
    schema = part_schema(folder, units)
    found: dict[str, Any] = {"even": [], "independent": []}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for file in ("test.csv", "schema.json"):
            (scratch / file).write_bytes((folder / file).read_bytes())
        train.iloc[rows].to_csv(scratch / "train.csv", index=False)
        budget = {"epsilon": epsilon, "delta": DELTA, "dataset": "benchmark"}
        run = fitting.fit(scratch / "train.csv", schema, without_ledger=True, **budget)
        for way in [*found] * draws:
            sampler = Sampler.of(run, plain=way == "independent")
            start = time.process_time()
            frames = list(sampler.frames(units, seed=fresh_seed()))
            seconds = time.process_time() - start
            write_table(frames, scratch / "synthetic.csv", schema, overwrite=True)
            scores = score(scratch, scratch / "synthetic.csv", scratch / "ref.json")
            found[way].append(scores | {"seconds": seconds})
    return found


def main() -> None:
    """Print a line for each part of a table and each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default="cardio,diabetes130,diabetes130:10000")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    tables = prepared(options.work)
    if tables is None:
        print(UNSET)
        return
    print("| table | rows | epsilon | draws | " + " | ".join(FIGURES) + " |")
    print("|---" * (4 + len(FIGURES)) + "|", flush=True)
    for part in options.parts.split(","):
        table, _, rows = part.partition(":")
        units = int(rows) if rows else None
        fits = [
            drawn(tables / table, units, options.epsilon, seed, options.draws)
            for seed in range(1, options.fits + 1)
        ]
        for way in fits[0]:
            scores = [one for fit in fits for one in fit[way]]
            means = " | ".join(f"{mean(one[figure] for one in scores):.4f}" for figure in FIGURES)
            print(
                f"| {table} | {rows or 'all'} | {options.epsilon:g} | {way} | {means} |", flush=True
            )


if __name__ == "__main__":
    main()
