"""What even draws take off the error of a table: the same fits, drawn evenly and independently.

usage: even_draws.py [--parts cardio,diabetes130,diabetes130:10000] [--epsilon 3] [--fits 2]
    [--draws 2] [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5. Fits `--model auto` to a
table, or to so many of its rows, draws as many rows in both ways, and scores them. Prints means.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from quality import UNSET, prepared
from table_parts import FIGURES, fitted, means, named_parts, part_of, print_heading, scored


def drawn(folder: Path, units: int | None, epsilon: float, seed: int, draws: int) -> dict[str, Any]:
    """Fit once; return the scores of draws of both ways."""
    found: dict[str, Any] = {"even": [], "independent": []}
    with part_of(folder, units, seed) as (scratch, schema):
        run = fitted(scratch, schema, epsilon=epsilon)
        for way in [*found] * draws:
            start = time.process_time()
            run.sample(schema.rows.value, plain=way == "independent")
            seconds = time.process_time() - start
            scores = scored(run, schema, scratch, plain=way == "independent")
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
    print_heading(["table", "rows", "epsilon", "draws", *FIGURES])
    for table, rows in named_parts(options.parts):
        fits = [
            drawn(tables / table, rows, options.epsilon, seed, options.draws)
            for seed in range(1, options.fits + 1)
        ]
        for way in fits[0]:
            cells = means([one for fit in fits for one in fit[way]])
            print(
                f"| {table} | {rows or 'all'} | {options.epsilon:g} | {way} | {cells} |", flush=True
            )


if __name__ == "__main__":
    main()
