"""Time of a step of the mixture's fit: gradient written out, and by automatic differentiation.

Both ways take turns in one process, on one core, over targets of several shapes.

    python bench/product_fit.py [--steps 200] [--rounds 5]

Prints a Markdown table: milliseconds a step, the least of the rounds.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402

from dpsynth.models.marginals import Distance, fit_products, product_fit
from dpsynth.models.marginals.product_mixture import Target  # noqa: E402

SHAPES = ((100, 8, 4), (200, 12, 10), (400, 22, 12), (300, 29, 20))  # components, columns, bins


def target(columns: int, bins: int) -> Target:
    """Counts of independent columns, all pairs measured."""
    width = columns * bins
    one = np.full(width, 1 / bins)
    upper = np.kron(np.triu(np.ones((columns, columns)), 1), np.ones((bins, bins))) > 0
    pairs = np.where(upper, bins**-2.0, 0.0)
    sd = np.where(upper, 0.001, np.inf)
    return Target((bins,) * columns, one, np.full(width, 0.001), pairs, sd)


def written_out(goal: Target, components: int, steps: int) -> None:
    """Fit as dpsynth does, in one round."""
    fit_products(goal, components=components, steps=steps, rng=np.random.default_rng(0))


def automatic(goal: Target, components: int, steps: int) -> None:
    """Fit with the gradient that torch finds, column by column."""
    rng = np.random.default_rng(0)
    start = np.log(goal.one + 1e-6) + 0.3 * rng.standard_normal((components, len(goal.one)))
    logits = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    distance = Distance(goal)
    weight, pairs = distance._weight, distance._pairs
    one_weight, one = distance._one_weight, distance._one
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(steps):
        parts = [part.softmax(1) for part in logits.split(list(goal.sizes), 1)]
        tables = torch.cat(parts, 1)
        joint = tables.T @ tables / components
        loss = (weight * (joint - pairs) ** 2).sum()
        loss = loss + (one_weight * (tables.mean(dim=0) - one) ** 2).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def milliseconds(way: Callable[[Target, int, int], None], *settings: object, steps: int) -> float:
    """Time one fit, for each step."""
    start = time.perf_counter()
    way(*settings, steps)  # type: ignore[arg-type]
    return (time.perf_counter() - start) / steps * 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    product_fit.MAX_ROUNDS = 1
    print(
        "| components | columns x bins | written out | automatic | ratio |\n|---|---|---|---|---|"
    )
    for components, columns, bins in SHAPES:
        goal = target(columns, bins)
        times = {
            way: min(
                milliseconds(way, goal, components, steps=options.steps)
                for _ in range(options.rounds)
            )
            for way in (written_out, automatic)
        }
        ours, theirs = times[written_out], times[automatic]
        print(
            f"| {components} | {columns} x {bins} | {ours:.2f} ms | {theirs:.2f} ms"
            f" | {theirs / ours:.1f} |"
        )


if __name__ == "__main__":
    main()
