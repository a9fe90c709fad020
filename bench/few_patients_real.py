"""Few patients: counts of all pairs, or products of contrasts first, on parts of the real tables.

usage: few_patients_real.py [--parts diabetes130:10000,diabetes130:3000,brfss2015:9400,cardio:3000]
    [--epsilons 1,3] [--ways rule,pairs,contrasts] [--models auto,mixture] [--seeds 3] [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5. Cuts random rows out of a
table, fits each model, draws as many rows, and scores them against the rows that were cut out.
Way "rule" lets the rule choose. Prints means over the seeds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from auto_choice import part_schema
from quality import UNSET, prepared, score

from dpsynth._util.seeds import fresh_seed
from dpsynth.models import presets
from dpsynth.models.base import Domain
from dpsynth.privacy import PrivacyBudget
from dpsynth.synthesis import fitting
from dpsynth.synthesis.drawing.sampler import Sampler
from dpsynth.tables.table import write_table

DELTA = 1e-5
FIGURES = ("tvd1", "tvd2", "tvd3", "tstr_hgb", "c2st_auc", "seconds")
PARTS = "diabetes130:10000,diabetes130:3000,brfss2015:9400,cardio:3000"


def one_fit(
    folder: Path, units: int, epsilon: float, way: str, model: str, seed: int
) -> dict[str, Any]:
    """Fit a part of a table in one way, and score it."""

    def chosen(domain: Domain, budget: PrivacyBudget) -> bool:
        return way == "contrasts"

    train = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    rows = np.random.default_rng([seed, units]).permutation(len(train))[:units]
    schema = part_schema(folder, units)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for file in ("test.csv", "schema.json"):
            shutil.copy(folder / file, scratch)
        train.iloc[rows].to_csv(scratch / "train.csv", index=False)
        forced = patch.object(presets, "contrasts_first", chosen)
        start = time.perf_counter()
        with nullcontext() if way == "rule" else forced:
            run = fitting.fit(
                scratch / "train.csv",
                schema,
                epsilon=epsilon,
                delta=DELTA,
                model=model,
                dataset="benchmark",
                without_ledger=True,
            )
        seconds = time.perf_counter() - start
        frames = Sampler.of(run).frames(units, seed=fresh_seed())
        write_table(frames, scratch / "synthetic.csv", schema, overwrite=True)
        return {"seconds": seconds} | score(
            scratch, scratch / "synthetic.csv", scratch / "ref.json"
        )


def main() -> None:
    """Print a line for each part, epsilon and way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--ways", default="pairs,contrasts")
    parser.add_argument("--models", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    tables = prepared(options.work)
    if tables is None:
        print(UNSET)
        return
    print("| table | rows | epsilon | way | model | " + " | ".join(FIGURES) + " |")
    print("|---" * (5 + len(FIGURES)) + "|", flush=True)
    for part in options.parts.split(","):
        table, _, units = part.partition(":")
        for epsilon in map(float, options.epsilons.split(",")):
            for way, model in product(options.ways.split(","), options.models.split(",")):
                found = [
                    one_fit(tables / table, int(units), epsilon, way, model, seed)
                    for seed in range(1, options.seeds + 1)
                ]
                means = " | ".join(f"{mean(one[k] for one in found):.4f}" for k in FIGURES)
                print(
                    f"| {table} | {units} | {epsilon:g} | {way} | {model} | {means} |", flush=True
                )


if __name__ == "__main__":
    main()
