"""Print synthetic rows per second of processor time of each generator, decoded, on one core.

The demo cohort; the shipped schema `cardio` (12 columns) filled with random codes, of which many
rows break its rules and are drawn again; and, where `DPSYNTH_DATA` names a folder with
cardio.csv.gz, the real table.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from dpsynth.encoding.codec import Codec
from dpsynth.models.registry import NAMES
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.sampler import BLOCK, Sampler
from dpsynth.tables.simulated import simulate

ROWS = 4 * BLOCK


def random_rows(schema: Schema, rows: int) -> pd.DataFrame:
    """Draw every cell on its own, uniformly over its column's codes."""
    rng, codec = np.random.default_rng(1), Codec(schema)
    codes = np.column_stack([rng.integers(0, size, rows) for size in codec.sizes])
    return codec.decode(codes, rng)


def speed(schema: Schema, table: pd.DataFrame | Path, model: str) -> float:
    """Fit, draw once to warm up, then return rows per second of processor time."""
    run = fitting.fit(
        table,
        schema,
        epsilon=3.0,
        delta=1e-6,
        dataset="bench",
        model=model,
        without_ledger=True,
    )
    sampler = Sampler.of(run)
    for _ in sampler.frames(BLOCK, seed=1):
        pass
    start = time.process_time()
    for _ in sampler.frames(ROWS, seed=2):
        pass
    return ROWS / (time.process_time() - start)


def main() -> None:
    """Print a line for each generator."""
    torch.set_num_threads(1)
    demo, cardio = Schema.load("demo"), Schema.load("cardio")
    tables: list[tuple[str, Schema, pd.DataFrame | Path]] = [
        ("demo", demo, simulate(5_000, seed=1)),
        ("cardio, random codes", cardio, random_rows(cardio, 20_000)),
    ]
    real = Path(os.environ.get("DPSYNTH_DATA", "")) / "cardio.csv.gz"
    if real.is_file():
        tables.append(("cardio", cardio, real))
    widths = " | ".join(
        f"{name}, {len(schema.modelled)} columns: rows/s" for name, schema, _ in tables
    )
    print(f"| generator | {widths} |\n|---{'|---' * len(tables)}|")
    for model in NAMES:
        rates = " | ".join(f"{speed(schema, table, model):,.0f}" for _, schema, table in tables)
        print(f"| {model} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
