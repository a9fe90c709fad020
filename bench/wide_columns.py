"""Score generators on a simulated table of wide columns: incomes, gains, densities, durations.

usage: wide_columns.py [--rows 20000] [--epsilons 1,10] [--models mixture,ceiling] [--repeats 1]

Wide columns have more values than can be counted one by one, long tails, and heaps at round values.
No real row is involved. `ceiling` scores the source's rows as the bins of a fit leave them.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from ceiling import ceiling
from quality_results import CEILING
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from dpsynth.eval.fidelity.summary import mean_tvd
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting

BASIS = "bounds of the simulated process"


def people(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows: class and age drive income, which drives gain, tax and rent."""
    rng = np.random.default_rng(seed)
    level = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(rng.normal(35 + 5 * level, 12), 18, 95)
    income = np.exp(rng.normal(9.8 + 0.35 * level + 0.01 * (age - 40), 0.6))
    heaped = rng.random(rows) < 0.6
    income = np.where(heaped, np.rint(income / 1000) * 1000, np.rint(income))
    gain = np.where(
        rng.random(rows) < 0.08 + 0.05 * level, np.rint(np.exp(rng.normal(7, 1.5, rows))), 0
    )
    tax = np.round(income * (0.15 + 0.05 * level) + rng.normal(0, 300, rows), 2)
    rent = np.rint(income * rng.uniform(0.15, 0.4, rows) / 12 / 50) * 50
    density = np.round(np.exp(rng.normal(5 + 0.3 * level, 1.8)), 1)
    born = np.datetime64("2020-01-01") - (age * 365.25).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "level": np.array(["a", "b", "c", "d"])[level],
            "income": np.clip(income, 0, 2_000_000).astype(int),
            "gain": np.clip(gain, 0, 1_000_000).astype(int),
            "tax": np.clip(tax, 0, 1_000_000),
            "rent": np.clip(rent, 0, 100_000).astype(int),
            "density": np.clip(density, 0, 100_000),
            "born": born.astype("datetime64[s]"),
        }
    )


def schema(rows: int) -> Schema:
    """Return the public facts of the table; bounds are wide, as an office would declare them."""
    numbers = {
        "income": ("integer", 2_000_000),
        "gain": ("integer", 1_000_000),
        "tax": ("number", 1_000_000),
        "rent": ("integer", 100_000),
        "density": ("number", 100_000),
    }
    fields = [
        {"name": "level", "type": "string", "constraints": {"enum": list("abcd"), "required": True}}
    ]
    for name, (kind, maximum) in numbers.items():
        constraints = {"minimum": 0, "maximum": maximum, "required": True}
        fields.append({"name": name, "type": kind, "constraints": constraints})
    times = {"minimum": "1920-01-01", "maximum": "2010-12-31", "required": True}
    fields.append({"name": "born", "type": "date", "constraints": times})
    for field in fields:
        field["dpsynth"] = {"bounds_basis": BASIS}
    fields[0]["dpsynth"]["on_unknown"] = "a"
    fields[3]["dpsynth"]["step"] = 0.01
    fields[5]["dpsynth"]["step"] = 0.1
    size = {"value": rows, "basis": "simulated"}
    return Schema.from_dict(
        {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "name": "people",
            "missingValues": [""],
            "fields": fields,
            "dpsynth": {"version": 1, "population": size, "rows": size},
        }
    )


def scores(real: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, float]:
    """Return TVD of one, two, three columns on deciles, and C2ST on raw values."""
    codes = []
    for frame in (real, drawn):
        columns = []
        for name in real:
            if name == "level":
                columns.append(frame[name].map(dict(zip("abcd", range(4), strict=True))).to_numpy())
                continue
            cuts = np.unique(np.quantile(as_numbers(real[name]), np.linspace(0, 1, 11)[1:-1]))
            columns.append(np.searchsorted(cuts, as_numbers(frame[name]), side="left"))
        codes.append(np.stack(columns, axis=1))
    both = pd.concat([real, drawn], ignore_index=True)
    numbers = np.stack([as_numbers(both[name]) for name in both if name != "level"], axis=1)
    labels = np.repeat([0, 1], [len(real), len(drawn)])
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    told = cross_val_predict(model, numbers, labels, cv=3, method="predict_proba")[:, 1]
    found = {f"TVD{ways}": mean_tvd(*codes, ways) for ways in (1, 2, 3)}
    return found | {"C2ST": float(roc_auc_score(labels, told))}


def as_numbers(column: pd.Series) -> np.ndarray:
    """Return a column as float64; dates as days."""
    if column.dtype.kind == "M":
        return column.to_numpy().astype("datetime64[D]").astype(np.float64)
    return column.to_numpy(dtype=np.float64)


def main() -> None:
    """Fit, sample and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilons", default="1,10")
    parser.add_argument("--models", default="mixture")
    parser.add_argument("--repeats", type=int, default=1)
    chosen = parser.parse_args()
    real, facts = people(chosen.rows, seed=1), schema(chosen.rows)
    print("| model | epsilon | TVD1 | TVD2 | TVD3 | C2ST |\n|---|---|---|---|---|---|")
    again = scores(real, people(chosen.rows, seed=2))
    print("| the process again | | " + " | ".join(f"{v:.4f}" for v in again.values()) + " |")
    for model in chosen.models.split(","):
        for epsilon in map(float, chosen.epsilons.split(",")):
            for _ in range(chosen.repeats):
                if model == CEILING:
                    drawn = ceiling(real, facts, epsilon=epsilon, delta=1e-5)
                else:
                    run = fitting.fit(
                        real,
                        facts,
                        epsilon=epsilon,
                        delta=1e-5,
                        dataset="people",
                        model=model,
                        without_ledger=True,
                    )
                    drawn = run.sample(len(real))
                scored = scores(real, drawn)
                values = " | ".join(f"{value:.4f}" for value in scored.values())
                print(f"| {model} | {epsilon:g} | {values} |", flush=True)


if __name__ == "__main__":
    main()
