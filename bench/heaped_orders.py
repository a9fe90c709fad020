"""Are the columns of an order written as in their source? Two pressures that people round to 10.

usage: heaped_orders.py [--rows 7300] [--epsilons 1,3,10] [--model mixture]

Both pressures are even numbers, and more than half of them multiples of 10. Fits the simulated
table with ``diastolic < systolic`` as a rule of text, and as an order, in which the systolic
pressure is modelled as a gap. Prints for both columns the total variation distance of the shares of
grains (as granularity.py) and of deciles. No real row is involved.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from granularity import BASIS, grains, heaped

from dpsynth.schema import Schema
from dpsynth.synthesis import fitting

BOUNDS = {"diastolic": (30, 180), "systolic": (60, 260)}
TEXT = "diastolic < systolic"


def patients(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows: a level of pressure drives both."""
    rng = np.random.default_rng(seed)
    level = rng.normal(132, 18, rows)
    systolic = heaped(rng, level, 10, 0.4, 2)
    diastolic = heaped(rng, level / 2 + 15 + rng.normal(0, 7, rows), 10, 0.4, 2)
    columns = {"diastolic": np.minimum(diastolic, systolic - 2), "systolic": systolic}
    return pd.DataFrame(
        {name: np.clip(v, *BOUNDS[name]).astype(int) for name, v in columns.items()}
    )


def schema(rows: int, rule: Any) -> Schema:
    """Return the public facts of the table, with its order as text or by construction."""
    fields = [
        {
            "name": name,
            "type": "integer",
            "constraints": {"minimum": low, "maximum": high, "required": True},
            "dpsynth": {"bounds_basis": BASIS},
        }
        for name, (low, high) in BOUNDS.items()
    ]
    size = {"value": rows, "basis": BASIS}
    own = {"version": 1, "population": size, "rows": size, "rules": [rule]}
    return Schema.from_dict({"name": "pressures", "fields": fields, "dpsynth": own})


def distances(real: pd.Series, drawn: pd.Series) -> tuple[float, float]:
    """Return the distance of grains, and that of deciles of the source."""
    one, other = real.to_numpy(dtype=float), drawn.to_numpy(dtype=float)
    cuts = np.unique(np.quantile(one, np.linspace(0, 1, 11)[1:-1]))
    shares = [np.bincount(np.searchsorted(cuts, v), minlength=11) / len(v) for v in (one, other)]
    pairs = (grains(one), grains(other)), shares
    return tuple(float(np.abs(a - b).sum() / 2) for a, b in pairs)  # type: ignore[return-value]


def main() -> None:
    """Fit, sample and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=7_300)
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--model", default="mixture")
    chosen = parser.parse_args()
    real = patients(chosen.rows, seed=1)
    names = [f"{name}: {what}" for name in BOUNDS for what in ("grains", "deciles")]
    print(f"| epsilon | rule | {' | '.join(names)} |\n| --- | --- |{' ---: |' * len(names)}")
    for epsilon in map(float, chosen.epsilons.split(",")):
        for words, rule in (("text", TEXT), ("order", {"order": TEXT})):
            run = fitting.fit(
                real.astype(str),
                schema(chosen.rows, rule),
                epsilon=epsilon,
                delta=1e-6,
                dataset="pressures",
                model=chosen.model,
                without_ledger=True,
            )
            drawn = run.sample(chosen.rows, seed=1)
            found = [one for name in BOUNDS for one in distances(real[name], drawn[name])]
            figures = " | ".join(f"{one:.3f}" for one in found)
            print(f"| {epsilon:g} | {words} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
