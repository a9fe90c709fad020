"""What it gives that networks meet released pairs: the same fits, columns alone settled, or all.

usage: settled_pairs.py [--tables cardio,wards] [--epsilon 3] [--fits 2] [--model auto] [--work DIR]

Fits a network to each table of facts.py, and scores as many rows as the table has, drawn after its
columns alone have settled, and after their pairs have, too. Prints means of facts and averages, and
the share of released cells that each misses by more than three standard errors.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import SHOWN, TABLES, made, scores
from quality import UNSET, below_one_in
from table_parts import draw, fitted, means, print_heading

from dpsynth.models.dpsgd.layers import arrays_of
from dpsynth.models.generators import autoregressive, pair_settling
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.schema.schema import Schema

WAYS = ("columns", "and pairs")
MEANS = [name for name in SHOWN if name not in ("fit_cpu_s", "impossible", "formula", "missing")]
FIGURES = [*MEANS[:-2], "off", "settling_cpu_s"]


def both(table: str, folder: Path, epsilon: float, model: str) -> list[dict[str, Any]]:
    """Fit once; return the scores of rows of the network that settled in each way."""
    settled: list[tuple[Network, Any, float]] = []
    settle = pair_settling.settle_pairs

    def twice(network: Network, *others: Any) -> Any:
        columns = deepcopy(network)
        for own, looks in ((columns, 0), (network, pair_settling.LOOKS)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pair_settling, "LOOKS", looks)
                start = time.process_time()
                fitness = settle(own, *others)
                settled.append((own, fitness, time.process_time() - start))
        return settled[-1][1]

    schema = Schema.from_dict(json.loads((folder / "table.schema.json").read_text()))
    delta = below_one_in(schema.population.value, 1e-6)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr(autoregressive, "settle_pairs", twice)
        run = fitted(folder, schema, epsilon=epsilon, delta=delta, model=model)
        rows, scratch, found = sum(1 for _ in (folder / "train.csv").open()) - 1, Path(name), []
        for network, fitness, seconds in settled:
            own = replace(run, arrays={**run.arrays, **arrays_of(network, "network")})
            drawn = draw(own, schema, scratch / "synthetic.csv", rows)
            more = {"off": fitness.off / max(fitness.cells, 1), "settling_cpu_s": seconds}
            found.append(scores(table, folder, drawn, scratch) | more)
    return found


def main() -> None:
    """Print two lines for each table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES[:-1]))
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    tables = made(options.work, options.tables.split(","))
    if tables is None:
        print(UNSET)
        return
    print_heading(["table", "epsilon", "settled", *FIGURES])
    for table in options.tables.split(","):
        fits = [
            both(table, tables / table, options.epsilon, options.model) for _ in range(options.fits)
        ]
        for place, way in enumerate(WAYS):
            cells = means([fit[place] for fit in fits], FIGURES)
            print(f"| {table} | {options.epsilon:g} | {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
