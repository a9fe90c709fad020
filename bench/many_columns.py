"""Time and accuracy of a fit against the number of columns, on a simulated table.

usage: many_columns.py [--columns 25,50,100] [--models mixture,autoregressive] [--rows 20000]
    [--epsilon 3]

Each column depends on two of the earlier ones. No real row is involved.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from dpsynth.encoding.codec import Codec
from dpsynth.eval.fidelity.summary import tvd
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting

LEVELS = 6
PAIRS = 500


def table(rows: int, columns: int, seed: int) -> pd.DataFrame:
    """Draw rows of categories: a column copies an earlier one, follows two, or is drawn afresh."""
    rng = np.random.default_rng(seed)
    codes = np.empty((rows, columns), dtype=np.int64)
    shares = rng.dirichlet(np.ones(LEVELS), columns)
    for j in range(columns):
        codes[:, j] = rng.choice(LEVELS, rows, p=shares[j])
        if j >= 2:
            first, second = rng.choice(j, 2, replace=False)
            draw = rng.random(rows)
            codes[:, j] = np.where(draw < 0.3, codes[:, first], codes[:, j])
            both = (codes[:, first] + codes[:, second]) % LEVELS
            codes[:, j] = np.where(draw > 0.8, both, codes[:, j])
    return pd.DataFrame({f"c{j}": codes[:, j].astype(str) for j in range(columns)})


def schema(rows: int, columns: int) -> Schema:
    """Return the public facts of the table."""
    levels = [str(level) for level in range(LEVELS)]
    size = {"value": rows, "basis": "simulated"}
    return Schema.from_dict(
        {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "name": "columns",
            "fields": [
                {
                    "name": f"c{j}",
                    "type": "string",
                    "constraints": {"enum": levels, "required": True},
                    "dpsynth": {"bounds_basis": "simulated", "on_unknown": "0"},
                }
                for j in range(columns)
            ],
            "dpsynth": {"version": 1, "population": size, "rows": size},
        }
    )


def main() -> None:
    """Fit and print a line for each number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", default="25,50,100")
    parser.add_argument("--models", default="mixture,autoregressive")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=3.0)
    chosen = parser.parse_args()
    print(
        "| columns | pairs | model | fit s | sample s | TVD2 | of independent columns |\n"
        "|---|---|---|---|---|---|---|"
    )
    for columns in map(int, chosen.columns.split(",")):
        real, facts = table(chosen.rows, columns, seed=1), schema(chosen.rows, columns)
        codec = Codec(facts)
        codes = codec.encode(real)
        rng = np.random.default_rng(2)
        ways = [tuple(rng.choice(columns, 2, replace=False)) for _ in range(PAIRS)]
        apart = np.column_stack([rng.permutation(codes[:, j]) for j in range(columns)])
        alone = np.mean([tvd(codes, apart, way) for way in ways])
        for model in chosen.models.split(","):
            start = time.perf_counter()
            run = fitting.fit(
                real,
                facts,
                epsilon=chosen.epsilon,
                delta=1e-5,
                dataset="columns",
                model=model,
                without_ledger=True,
            )
            fitted = time.perf_counter()
            drawn = codec.encode(run.sample(chosen.rows))
            sampled = time.perf_counter()
            distance = np.mean([tvd(codes, drawn, way) for way in ways])
            print(
                f"| {columns} | {columns * (columns - 1) // 2} | {model} | {fitted - start:.1f} "
                f"| {sampled - fitted:.1f} | {distance:.4f} | {alone:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
