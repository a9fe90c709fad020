"""What learning targets from their own pairs adds: the same fits, without it and with it.

usage: target_weights.py [--parts diabetes130,cardio] [--epsilon 3] [--fits 3] [--draws 2]
    [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). A row is a unit, delta 1e-5. Fits `distilled` to a table,
or to so many of its rows (``cardio:10000``), and scores as many rows drawn by the network that
learned from rows of the mixture alone, and by the one whose targets were learned anew. Prints
means.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quality import UNSET, prepared
from table_parts import FIGURES, fitted, means, named_parts, part_of, print_heading, scored

from dpsynth.models.dpsgd.layers import arrays_of
from dpsynth.models.generators import autoregressive, distilled
from dpsynth.models.generators.autoregressive_network import Network

SHOWN = [*(name for name in FIGURES if name != "seconds"), "tstr_lr"]
WAYS = ("from the mixture", "from its pairs")


def both(folder: Path, rows: int | None, epsilon: float, seed: int, draws: int) -> Any:
    """Fit once; return the scores of draws of both networks, settled, by way."""
    before: list[Network] = []
    learn, settle = distilled.learn_targets, autoregressive.settle_pairs

    def learned(network: Network, *args: Any) -> None:
        before.append(deepcopy(network))
        learn(network, *args)

    def settled(network: Network, *args: Any) -> Any:
        settle(before[-1], *args)
        return settle(network, *args)

    with part_of(folder, rows, seed) as (scratch, schema), pytest.MonkeyPatch.context() as patch:
        patch.setattr(distilled, "learn_targets", learned)
        patch.setattr(autoregressive, "settle_pairs", settled)
        run = fitted(scratch, schema, epsilon=epsilon, model="distilled")
        old = replace(run, arrays={**run.arrays, **arrays_of(before[-1], "network")})
        return [[scored(one, schema, scratch) for _ in range(draws)] for one in (old, run)]


def main() -> None:
    """Print two lines for each part of a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default="diabetes130,cardio")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    tables = prepared(options.work)
    if tables is None:
        print(UNSET)
        return
    print_heading(["table", "rows", "epsilon", "target", *SHOWN])
    for table, rows in named_parts(options.parts):
        fits = [
            both(tables / table, rows, options.epsilon, seed, options.draws)
            for seed in range(1, options.fits + 1)
        ]
        for place, way in enumerate(WAYS):
            found = [scores for fit in fits for scores in fit[place]]
            cells = means(found, SHOWN)
            print(f"| {table} | {rows or 'all'} | {options.epsilon:g} | {way} | {cells} |")


if __name__ == "__main__":
    main()
