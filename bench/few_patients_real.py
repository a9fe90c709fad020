"""Few patients: counts of all pairs, or products of contrasts first, on parts of the real tables.

usage: few_patients_real.py [--parts diabetes130:10000,diabetes130:3000,brfss2015:9400,cardio:3000]
    [--epsilons 1,3] [--ways rule,pairs,contrasts] [--models auto,mixture] [--seeds 3] [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5. Cuts random rows out of a
table, fits each model, draws as many rows, and scores them against the rows that were cut out.
Way "rule" lets the rule choose. Prints means over the seeds.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from quality import UNSET, prepared
from table_parts import FIGURES, fitted, means, named_parts, part_of, print_heading, scored

from dpsynth.models import presets
from dpsynth.models.base import Domain
from dpsynth.privacy import PrivacyBudget

PARTS = "diabetes130:10000,diabetes130:3000,brfss2015:9400,cardio:3000"


def one_fit(
    folder: Path, units: int | None, epsilon: float, way: str, model: str, seed: int
) -> dict[str, Any]:
    """Fit a part of a table in one way, and score it."""

    def chosen(domain: Domain, budget: PrivacyBudget) -> bool:
        return way == "contrasts"

    with part_of(folder, units, seed) as (scratch, schema):
        forced = patch.object(presets, "contrasts_first", chosen)
        start = time.perf_counter()
        with nullcontext() if way == "rule" else forced:
            run = fitted(scratch, schema, epsilon=epsilon, model=model)
        seconds = time.perf_counter() - start
        return {"seconds": seconds} | scored(run, schema, scratch)


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
    print_heading(["table", "rows", "epsilon", "way", "model", *FIGURES])
    for table, units in named_parts(options.parts):
        for epsilon in map(float, options.epsilons.split(",")):
            for way, model in product(options.ways.split(","), options.models.split(",")):
                found = [
                    one_fit(tables / table, units, epsilon, way, model, seed)
                    for seed in range(1, options.seeds + 1)
                ]
                cells = means(found)
                print(
                    f"| {table} | {units or 'all'} | {epsilon:g} | {way} | {model} | {cells} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
