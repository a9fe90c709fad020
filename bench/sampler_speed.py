"""Print synthetic rows per second of each generator, on the demo cohort, on one core."""

from __future__ import annotations

import time

import torch

from dpsynth import pipeline
from dpsynth.sampler import BLOCK, Sampler
from dpsynth.schema import Schema
from dpsynth.simulate import simulate

ROWS = 4 * BLOCK


def main() -> None:
    """Fit each generator on the demo cohort, then time the sampling alone on one core."""
    torch.set_num_threads(1)
    schema = Schema.load("demo")
    cohort = simulate(5_000, seed=1)
    columns = len(schema.modelled)
    print(f"| generator | rows/s ({columns} columns, one core) |\n|---|---|")
    for model in ("independent", "mixture", "tvae"):
        run = pipeline.fit(
            cohort,
            schema,
            epsilon=3.0,
            delta=1e-6,
            dataset="bench",
            model=model,
            without_ledger=True,
        )
        start = time.perf_counter()
        for _ in Sampler.of(run).frames(ROWS, seed=1):
            pass
        print(f"| {model} | {ROWS / (time.perf_counter() - start):,.0f} |")


if __name__ == "__main__":
    main()
