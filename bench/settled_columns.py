"""What it takes off the error of a table that columns settle last: the same fits, before and after.

usage: settled_columns.py [--parts cardio,diabetes130,brfss2015] [--epsilon 3] [--fits 2]
    [--models distilled,autoregressive] [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5 or less. Fits a network to a
table, or to so many of its rows (``cardio:3000``), and scores as many rows drawn with the biases
that training left, and with the settled ones. Prints means.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quality import UNSET, below_one_in, prepared
from table_parts import DELTA, FIGURES, fitted, means, named_parts, part_of, print_heading, scored

from dpsynth.models.generators.autoregressive_network import Network

BIASES = "network.skip.bias"  # among the arrays of a run
SHOWN = [name for name in FIGURES if name != "seconds"]


def both(folder: Path, rows: int | None, model: str, epsilon: float, seed: int) -> Any:
    """Fit once; return the scores with the biases that training left, and with settled ones."""
    trained: list[Any] = []
    settle = Network.settle

    def settled(network: Network, *args: Any, **options: Any) -> None:
        trained.append(network.skip.bias.detach().clone().numpy())
        settle(network, *args, **options)

    with part_of(folder, rows, seed) as (scratch, schema), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "settle", settled)
        delta = below_one_in(schema.population.value, DELTA)
        run = fitted(scratch, schema, epsilon=epsilon, delta=delta, model=model)
        before = replace(run, arrays={**run.arrays, BIASES: trained[-1]})
        return scored(before, schema, scratch), scored(run, schema, scratch)


def main() -> None:
    """Print two lines for each part of a table and each model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default="cardio,diabetes130,brfss2015")
    parser.add_argument("--models", default="distilled,autoregressive")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    tables = prepared(options.work)
    if tables is None:
        print(UNSET)
        return
    print_heading(["table", "rows", "epsilon", "model", "columns", *SHOWN])
    for table, rows in named_parts(options.parts):
        for model in options.models.split(","):
            fits = [
                both(tables / table, rows, model, options.epsilon, seed)
                for seed in range(1, options.fits + 1)
            ]
            for way, found in zip(("as trained", "settled"), zip(*fits, strict=True), strict=True):
                place = f"{table} | {rows or 'all'} | {options.epsilon:g} | {model} | {way}"
                print(f"| {place} | {means(found, SHOWN)} |", flush=True)


if __name__ == "__main__":
    main()
