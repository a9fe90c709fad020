"""Compare settings of `tvae` on a simulated cohort: the evidence behind models/presets.py.

usage: presets.py [--epsilon 10] [--rows 56000] [--quick]

Each line is a fit of its own, so noise differs between lines. No real row is involved.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import combinations
from unittest.mock import patch

import numpy as np

from dpsynth import pipeline
from dpsynth.codec import Codec
from dpsynth.eval.fidelity import coarse, decile_edges, mean_tvd, tvd
from dpsynth.models.presets import Preset
from dpsynth.schema import Schema
from dpsynth.simulate import simulate

VARIANTS: dict[str, dict[str, float]] = {
    "as shipped": {},
    "latent width 8": {"latent": 8},
    "anchor 0.1": {"anchor": 0.1},
    "no masked hidden layer": {"masked": 0},
    "latent width 8, anchor 0.1": {"latent": 8, "anchor": 0.1},
}
TRIPLES = 50


def rows_as_units(rows: int) -> Schema:
    """Return the demo schema with each row as a unit, for ``rows`` rows."""
    document = Schema.load("demo").to_dict()
    for field in document["fields"]:
        if field.get("dpsynth", {}).get("role") == "unit":
            field["dpsynth"] = {"role": "drop"}
    table = document["dpsynth"]
    for key in ("max_rows", "keep", "key", "missing_key"):
        table.pop(key, None)
    table["population"]["value"] = table["rows"]["value"] = rows
    return Schema.from_dict(document)


def main() -> None:
    """Fit every variant and print its distances to the source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--rows", type=int, default=56_000)
    parser.add_argument("--quick", action="store_true", help="the first variant only")
    chosen = parser.parse_args()
    schema = rows_as_units(chosen.rows)
    source = simulate(chosen.rows * 31 // 56, seed=5).iloc[: chosen.rows]
    codec = Codec(schema)
    real = codec.encode(source)
    edges = decile_edges(real, codec.cells)
    triples = list(combinations(range(real.shape[1]), 3))
    order = np.random.default_rng(7).permutation(len(triples))[:TRIPLES]
    original = Preset.of
    print(
        f"| setting, epsilon {chosen.epsilon:g} | TVD1 | TVD2 | TVD3 | s |\n|---|---|---|---|---|"
    )
    for name, changes in list(VARIANTS.items())[: 1 if chosen.quick else None]:
        with patch.object(
            Preset, "of", lambda *facts, changes=changes: replace(original(*facts), **changes)
        ):
            start = time.perf_counter()
            run = pipeline.fit(
                source,
                schema,
                epsilon=chosen.epsilon,
                delta=1e-5,
                dataset="presets",
                without_ledger=True,
            )
        seconds = time.perf_counter() - start
        pair = [coarse(codes, edges) for codes in (real, codec.encode(run.sample(len(real))))]
        three = np.mean([tvd(*pair, triples[i]) for i in order])
        one, two = mean_tvd(*pair, 1), mean_tvd(*pair, 2)
        print(f"| {name} | {one:.4f} | {two:.4f} | {three:.4f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
