"""Compare settings of `ctgan` with other generators on a simulated cohort: see docs/ctgan.md.

usage: ctgan.py [--epsilons 1,3,10] [--rows 56000] [--seeds 1] [--variants]

Each line is a fit of its own, so noise differs between lines; "start" is the mixture that the
`ctgan` above it started from, with its histograms and its noise. No real row is involved.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import combinations
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from presets import TRIPLES, rows_as_units

from dpsynth.encoding.codec import Codec
from dpsynth.encoding.cohort import Cohort
from dpsynth.eval.fidelity.summary import coarse, decile_edges, mean_tvd, tvd
from dpsynth.models import presets
from dpsynth.models.base import Domain, Generator
from dpsynth.models.generators import ctgan
from dpsynth.models.generators.ctgan import Ctgan
from dpsynth.models.registry import generator_class
from dpsynth.privacy.entropy import OsEntropy
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan
from dpsynth.tables.simulated import simulate

Codes = npt.NDArray[np.uint16]
VARIANTS: dict[str, dict[str, float]] = {
    "as shipped": {},
    "no warm-up of the critic": {"warm_steps": 0},
    "one critic step to a turn": {"rounds": 1},
    "no hold on the pairs": {"HOLD": 0.0},
    "no trust in the mixture": {"TRUST": 0.0},
    "neither": {"HOLD": 0.0, "TRUST": 0.0},
}
DELTA = 1e-5


class Bench:
    """A simulated cohort, and how far rows are from it."""

    def __init__(self, rows: int) -> None:
        """Simulate."""
        schema = rows_as_units(rows)
        codec = Codec(schema)
        self.real: Codes = codec.encode(simulate(rows * 31 // 56, seed=5).iloc[:rows])
        self.domain = Domain.of(schema, codec)
        self.cohort = Cohort(self.real[:, None], np.ones((len(self.real), 1), dtype=bool))
        self.edges = decile_edges(self.real, codec.cells)
        triples = list(combinations(range(self.real.shape[1]), 3))
        order = np.random.default_rng(7).permutation(len(triples))[:TRIPLES]
        self.triples = [triples[i] for i in order]

    def distances(self, drawn: Codes) -> tuple[float, float, float]:
        """Return the mean total variation distances of one, two and three columns."""
        pair = coarse(self.real, self.edges), coarse(drawn, self.edges)
        three = float(np.mean([tvd(*pair, triple) for triple in self.triples]))
        return mean_tvd(*pair, 1), mean_tvd(*pair, 2), three

    def fit(self, model: str, epsilon: float) -> tuple[Generator, float]:
        """Fit a model; returns it and the seconds that it took."""
        budget = PrivacyBudget(epsilon, DELTA)
        generator = generator_class(model)(self.domain)
        plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
        start = time.perf_counter()
        generator.fit(self.cohort, plan, plan.opened(OsEntropy()))
        return generator, time.perf_counter() - start

    def line(self, name: str, sample: Callable[..., Codes], seconds: float | None) -> None:
        """Print the distances of even and of independent rows."""
        cells = [name]
        for even in (True, False):
            drawn = sample(len(self.real), np.random.default_rng(1), even=even)
            cells += [f"{value:.4f}" for value in self.distances(drawn)]
        cells.append("" if seconds is None else f"{seconds:.0f}")
        print(f"| {' | '.join(cells)} |", flush=True)


@contextmanager
def changed(settings: dict[str, float]) -> Iterator[None]:
    """Replace settings of the preset (lower case) and of constants of its trainer (upper case)."""
    shipped = presets.adversarial_training
    chosen = {name: value for name, value in settings.items() if name.islower()}
    constants = {name: value for name, value in settings.items() if name.isupper()}
    with (
        patch.object(presets, "adversarial_training", lambda *facts: shipped(*facts) | chosen),
        patch.multiple(ctgan, **constants) if constants else nullcontext(),
    ):
        yield


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--rows", type=int, default=56_000)
    parser.add_argument("--seeds", type=int, default=1, help="fits of each")
    parser.add_argument("--variants", action="store_true", help="other settings of ctgan, too")
    asked = parser.parse_args()
    bench = Bench(asked.rows)
    print("| model | TVD1 | TVD2 | TVD3 | plain TVD1 | TVD2 | TVD3 | fit s |\n" + "|---" * 8 + "|")
    for epsilon in map(float, asked.epsilons.split(",")):
        for _ in range(asked.seeds):
            for name, settings in list(VARIANTS.items())[: None if asked.variants else 1]:
                with changed(settings):
                    model, seconds = bench.fit("ctgan", epsilon)
                assert isinstance(model, Ctgan)
                bench.line(f"ctgan {epsilon:g}, {name}", model.sample, seconds)
                bench.line(f"its start, {epsilon:g}", model.start_.sample, None)
            if not asked.variants:
                for other in ("mixture", "autoregressive"):
                    found, seconds = bench.fit(other, epsilon)
                    bench.line(f"{other}, {epsilon:g}", found.sample, seconds)


if __name__ == "__main__":
    main()
