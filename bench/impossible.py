"""Would a mask of impossible combinations gain anything over drawing again?

usage: impossible.py [--rows 7300] [--epsilon 1] [--models independent,mixture,autoregressive]

Rows that break a rule are drawn again, so what is drawn has the law that was learned, given that
the rules hold. A mask in the generator would have the same law where it is exact (a mixture in
closed form), so all that it can gain is the time for rows that are thrown away: one over the share
that is met. This simulates a table of twelve columns of four categories with 1, 3 or 6 impossible
combinations, each of two common categories of two columns, and prints that share, rows per second
with and without the rules, and the largest factor that a mask could gain. No real row is involved.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.schema import Schema
from dpsynth.synthesis import Sampler, fitting

PAIRS, DRAWN, BASIS = 6, 100_000, "made for this program"
LEVELS, SHARES = ("a", "b", "c", "d"), (0.4, 0.3, 0.2, 0.1)


def rows(number: int, seed: int) -> pd.DataFrame:
    """Draw rows in which no pair of columns holds (a, a)."""
    rng = np.random.default_rng(seed)
    frame = {}
    for pair in range(PAIRS):
        one, other = rng.choice(LEVELS, (2, number), p=SHARES)
        frame[f"x{pair}"] = one
        frame[f"y{pair}"] = np.where((one == "a") & (other == "a"), "b", other)
    return pd.DataFrame(frame)


def schema(number: int, rules: int) -> Schema:
    """Return the public facts, with so many impossible combinations."""
    fields = [
        {
            "name": f"{letter}{pair}",
            "type": "string",
            "constraints": {"enum": list(LEVELS), "required": True},
            "dpsynth": {"bounds_basis": BASIS, "on_unknown": "a"},
        }
        for pair in range(PAIRS)
        for letter in "xy"
    ]
    size = {"value": number, "basis": BASIS}
    texts = [f"not (x{pair} == 'a' and y{pair} == 'a')" for pair in range(rules)]
    own: dict[str, Any] = {"version": 1, "population": size, "rows": size, "rules": texts}
    return Schema.from_dict({"name": "made", "fields": fields, "dpsynth": own})


def main() -> None:
    """Fit, sample and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=7_300)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--models", default="independent,mixture,autoregressive")
    chosen = parser.parse_args()
    source = rows(chosen.rows, seed=1)
    names = ("combinations", "met", "rows/s", "without rules", "a mask gains at most")
    print(f"| model | {' | '.join(names)} |\n| --- |{' ---: |' * len(names)}")
    for model in chosen.models.split(","):
        speed = 0.0
        for rules in (0, 1, 3, PAIRS):
            run = fitting.fit(
                source,
                schema(chosen.rows, rules),
                epsilon=chosen.epsilon,
                delta=1e-6,
                dataset="made",
                model=model,
                without_ledger=True,
            )
            sampler = Sampler.of(run)
            start = time.process_time()
            for _ in sampler.frames(DRAWN, seed=1):
                pass
            seconds = time.process_time() - start
            if not rules:
                speed = DRAWN / seconds
                continue
            met = sampler.acceptance.share
            print(
                f"| {model} | {rules} | {met:.1%} | {DRAWN / seconds:,.0f} | {speed:,.0f} | "
                f"{1 / met:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
