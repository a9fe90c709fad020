"""Compare settings of a generator on a simulated cohort: the evidence behind presets.py.

usage: presets.py [--model mixture|autoregressive|tvae] [--epsilons 1,3,10] [--rows 56000]
    [--repeats 1] [--only NAMES] [--quick]

Each line is a mean of fits of its own, so noise differs between lines. No real row is involved.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np

from dpsynth.encoding.codec import Codec
from dpsynth.eval.fidelity.summary import coarse, decile_edges, mean_tvd, tvd
from dpsynth.models.dpsgd import trainer
from dpsynth.models.dpsgd.optimizer import DpSgd
from dpsynth.models.marginals import initial_model, product_fit
from dpsynth.models.marginals.product_mixture import Products, Target
from dpsynth.models.presets import Preset
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.tables.simulated import simulate

TRIPLES = 50
FISSION = 0.4  # tau: fit on y + tau sigma z, judge on y - sigma z / tau


class Averaged(DpSgd):
    """Ends at a running mean of its parameters in the place of the last ones."""

    memory = 0.95

    def step(self, *words: Any, **named: Any) -> None:
        """Take a step and move the mean."""
        super().step(*words, **named)
        values = self.flat.values
        self.mean = values.clone() if self.steps_taken == 1 else self.mean
        self.mean.lerp_(values, 1.0 - self.memory)
        if self.steps_taken == self.event.steps:
            values.copy_(self.mean)


def fission(target: Target, *, rng: np.random.Generator, steps: int, **settings: Any) -> Products:
    """Choose the number of steps by data fission, then fit to the whole target with that number."""
    noise = [
        rng.standard_normal(sd.shape) * np.where(np.isfinite(sd), sd, 0.0)
        for sd in (target.one_sd, target.pair_sd)
    ]
    fit_to = replace(
        target, one=np.abs(target.one + FISSION * noise[0]), pairs=target.pairs + FISSION * noise[1]
    )
    judge = target.pairs - noise[1] / FISSION
    known = np.isfinite(target.pair_sd)
    scores = {}
    for tried in (steps // 4, steps // 2, steps, 2 * steps, 4 * steps):
        with patch.object(product_fit, "MAX_ROUNDS", 1):
            products = product_fit.fit_products(fit_to, rng=rng, steps=tried, **settings)
        joint = products.tables.T @ products.tables / len(products.weights)
        scores[tried] = (((joint - judge)[known] / target.pair_sd[known]) ** 2).mean()
    with patch.object(product_fit, "MAX_ROUNDS", 1):
        best = min(scores, key=lambda tried: scores[tried])
        return product_fit.fit_products(target, rng=rng, steps=best, **settings)


def preset(**changes: Any) -> Callable[[], Any]:
    """Patch settings of the preset."""
    shipped = Preset.of
    return lambda: patch.object(Preset, "of", lambda *facts: replace(shipped(*facts), **changes))


def more(**factors: float) -> Callable[[], Any]:
    """Patch settings of the preset by factors."""
    shipped = Preset.of

    def changed(*facts: Any) -> Preset:
        presets = shipped(*facts)
        old = {name: getattr(presets, name) for name in factors}
        return replace(presets, **{name: type(v)(v * factors[name]) for name, v in old.items()})

    return lambda: patch.object(Preset, "of", changed)


VARIANTS: dict[str, dict[str, Callable[[], Any]]] = {
    "mixture": {
        "as shipped": preset(),
        "no tie to independence": preset(tie=0.0),
        "one round of steps": lambda: patch.object(product_fit, "MAX_ROUNDS", 1),
        "four rounds of steps": lambda: patch.object(product_fit, "FITTED", 0.0),
        "steps by data fission": lambda: patch.object(initial_model, "fit_products", fission),
    },
    "tvae": {
        "as shipped": preset(),
        "no settling": preset(settling_steps=0),
        "twice the settling steps": more(settling_steps=2.0),
        "half the learning rate": more(learning_rate=0.5),
        "latent width 8": preset(latent=8),
        "latent width 32": preset(latent=32),
        "hidden layers twice as wide": more(hidden=2.0),
        "warm start alone": preset(steps=1, learning_rate=1e-9),
        "twice the warm steps": more(warm_steps=2.0),
    },
    "autoregressive": {
        "as shipped": preset(),
        "anchor 1": preset(anchor=1.0),
        "anchor 0.1": preset(anchor=0.1),
        "no masked hidden layer": preset(masked=0),
        "mean of the last weights": lambda: patch.object(trainer, "DpSgd", Averaged),
        "twice the warm steps": preset(warm_steps=1000),
        "four rounds of steps": lambda: patch.object(product_fit, "FITTED", 0.0),
        "twice the components": more(components=2.0),
        "twice the private steps": more(steps=2.0),
        "hidden layers twice as wide": more(masked=2.0),
        "half the learning rate": more(learning_rate=0.5),
        "half of the budget for training": preset(training=0.5),
    },
}


def rows_as_units(rows: int) -> Schema:
    """Return the demo schema with each row as a unit, for ``rows`` rows."""
    document = Schema.load("demo").to_dict()
    for field in document["fields"]:
        if field.get("dpsynth", {}).get("role") == "unit":
            field["dpsynth"] = {"role": "drop"}
    table = document["dpsynth"]
    for key in ("max_rows", "keep", "key", "missing_key", "person"):
        table.pop(key, None)
    table["population"]["value"] = table["rows"]["value"] = rows
    return Schema.from_dict(document)


class Ruler:
    """Distances of a table to the simulated one, on deciles."""

    def __init__(self, rows: int) -> None:
        """Simulate."""
        self.schema = rows_as_units(rows)
        self.source = simulate(rows * 31 // 56 + 50, seed=5).iloc[:rows]
        self.codec = Codec(self.schema)
        codes = self.codec.encode(self.source)
        self.edges = decile_edges(codes, self.codec.cells)
        self.real = coarse(codes, self.edges)
        triples = list(combinations(range(codes.shape[1]), 3))
        order = np.random.default_rng(7).permutation(len(triples))[:TRIPLES]
        self.triples = [triples[i] for i in order]

    def of(self, epsilon: float, model: str, **named: Any) -> tuple[float, ...]:
        """Fit and draw as many rows; returns TVD of one, two and three columns, and seconds."""
        start_at = time.perf_counter()
        run = fitting.fit(
            self.source,
            self.schema,
            epsilon=epsilon,
            delta=1e-5,
            dataset="presets",
            model=model,
            without_ledger=True,
            **named,
        )
        seconds = time.perf_counter() - start_at
        drawn = coarse(self.codec.encode(run.sample(len(self.real))), self.edges)
        three = float(np.mean([tvd(self.real, drawn, triple) for triple in self.triples]))
        return mean_tvd(self.real, drawn, 1), mean_tvd(self.real, drawn, 2), three, seconds


def main() -> None:
    """Fit every variant and print its distances to the source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(VARIANTS), default="autoregressive")
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--rows", type=int, default=56_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="names of variants, split by commas")
    parser.add_argument("--quick", action="store_true", help="the first variant only")
    chosen = parser.parse_args()
    ruler = Ruler(chosen.rows)
    print(f"| {chosen.model} | epsilon | TVD1 | TVD2 | TVD3 | fit s |\n|---|---|---|---|---|---|")
    for epsilon in map(float, chosen.epsilons.split(",")):
        for name, patched in list(VARIANTS[chosen.model].items())[: 1 if chosen.quick else None]:
            if chosen.only and name not in chosen.only.split(","):
                continue
            with patched():
                fits = [ruler.of(epsilon, chosen.model) for _ in range(chosen.repeats)]
            one, two, three, seconds = np.mean(fits, axis=0)
            print(
                f"| {name} | {epsilon:g} | {one:.4f} | {two:.4f} | {three:.4f} | {seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
