"""Score generators on a simulated table of 7 300 patients whose numbers have digits and heaps.

usage: granularity.py [--rows 7300] [--epsilons 1,3] [--models mixture] [--repeats 1]

Heart rates are whole in every record, blood values have one or two decimals, weights are heaped at
multiples of 5, and some are halves. The schema declares bounds and no steps, so the lattices are
finer than the values. No real row is involved.

A line has three figures: C2ST, the AUC of a classifier that sees raw values (.5 is best); TVD of
grains, the mean over numbers of the total variation distance between the shares of grains (the
coarsest of 10, 5, 1, .5, .1, .05, .01, .001 that a value is a multiple of); and TVD1, the mean
distance of the columns' deciles.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from dpsynth.eval.fidelity.summary import mean_tvd
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting

BASIS = "bounds of the simulated process"
NUMBERS = {
    "heart_rate": ("number", 30, 250),
    "systolic": ("number", 60, 260),
    "potassium": ("number", 1, 10),
    "creatinine": ("number", 0.1, 20),
    "glucose": ("number", 20, 1000),
    "albumin": ("number", 0.5, 8),
    "hemoglobin": ("number", 2, 25),
    "temperature": ("number", 30, 45),
    "weight": ("number", 30, 250),
    "height": ("integer", 120, 220),
    "age": ("integer", 18, 105),
}
SEXES = ["F", "M"]
GRAINS = (10_000, 5_000, 1_000, 500, 100, 50, 10, 1)  # in thousandths


def patients(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows: age and sex drive a severity, which drives the rest."""
    rng = np.random.default_rng(seed)
    sex = (rng.random(rows) < 0.48).astype(int)
    age = np.clip(np.rint(rng.normal(62, 16, rows)), 18, 105)
    severity = rng.normal(0.02 * (age - 62), 1.0)
    height = heaped(rng, rng.normal(163 + 12 * sex, 7), 5, 0.35, 1)
    weight = rng.normal(70 + 13 * sex + 0.3 * (height - 165), 14)
    share = rng.random(rows)
    weight = np.select(
        [share < 0.4, share < 0.75, share < 0.85],
        [np.rint(weight / 5) * 5, np.rint(weight), np.rint(2 * weight) / 2],
        np.round(weight, 1),
    )
    values = {
        "heart_rate": np.rint(rng.normal(80 + 6 * severity, 13)),
        "systolic": heaped(rng, rng.normal(132 - 4 * severity + 0.2 * (age - 60), 18), 10, 0.4, 1),
        "potassium": np.round(rng.normal(4.1 + 0.1 * severity, 0.5), 1),
        "creatinine": np.round(np.exp(rng.normal(0.05 + 0.2 * severity, 0.4)), 2),
        "glucose": np.rint(np.exp(rng.normal(4.8 + 0.1 * severity, 0.3))),
        "albumin": np.round(rng.normal(3.9 - 0.25 * severity, 0.4), 1),
        "hemoglobin": np.round(rng.normal(12.4 + sex - 0.4 * severity, 1.7), 1),
        "temperature": np.round(rng.normal(36.9 + 0.1 * severity, 0.6), 1),
        "weight": weight,
        "height": height,
        "age": age,
    }
    frame = {"sex": np.array(SEXES)[sex]}
    for name, (kind, low, high) in NUMBERS.items():
        bounded = np.clip(values[name], low, high)
        frame[name] = bounded.astype(np.int64) if kind == "integer" else bounded
    died = rng.random(rows) < 1 / (1 + np.exp(2.2 - severity))
    return pd.DataFrame(frame | {"died": np.array(["no", "yes"])[died.astype(int)]})


def heaped(
    rng: np.random.Generator, values: np.ndarray, heap: float, share: float, unit: float
) -> np.ndarray:
    """Round a share of values to a heap, the others to a unit."""
    width = np.where(rng.random(len(values)) < share, heap, unit)
    return np.rint(values / width) * width


def schema(rows: int) -> Schema:
    """Return the public facts of the table: bounds as a form has them, and no steps."""
    fields = [category("sex", SEXES)]
    for name, (kind, low, high) in NUMBERS.items():
        constraints = {"minimum": low, "maximum": high, "required": True}
        fields.append({"name": name, "type": kind, "constraints": constraints})
    fields.append(category("died", ["no", "yes"]))
    for field in fields:
        field.setdefault("dpsynth", {})["bounds_basis"] = BASIS
    size = {"value": rows, "basis": "simulated"}
    return Schema.from_dict(
        {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "name": "patients",
            "missingValues": [""],
            "fields": fields,
            "dpsynth": {"version": 1, "population": size, "rows": size},
        }
    )


def category(name: str, values: list[str]) -> dict:
    """Return the field of a column of categories."""
    constraints = {"enum": values, "required": True}
    other = {"on_unknown": values[0]}
    return {"name": name, "type": "string", "constraints": constraints, "dpsynth": other}


def grains(values: np.ndarray) -> np.ndarray:
    """Return the share of each of `GRAINS`: the coarsest that divides a value."""
    ticks = np.rint(values * 1000).astype(np.int64)
    which = np.argmax([ticks % grain == 0 for grain in GRAINS], axis=0)
    return np.bincount(which, minlength=len(GRAINS)) / len(ticks)


def scores(real: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, float]:
    """Return C2ST, TVD of grains and TVD1."""
    tables = [
        frame.assign(**{name: (frame[name] == frame_value) for name, frame_value in LABELS})
        for frame in (real, drawn)
    ]
    numbers = np.concatenate([table.to_numpy(dtype=np.float64) for table in tables])
    labels = np.repeat([0, 1], [len(real), len(drawn)])
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    told = cross_val_predict(model, numbers, labels, cv=folds(labels), method="predict_proba")[:, 1]
    apart = [
        np.abs(grains(real[name].to_numpy()) - grains(drawn[name].to_numpy())).sum() / 2
        for name in NUMBERS
    ]
    codes = []
    for frame in (real, drawn):
        columns = []
        for name in NUMBERS:
            cuts = np.unique(np.quantile(real[name], np.linspace(0, 1, 11)[1:-1]))
            columns.append(np.searchsorted(cuts, frame[name].to_numpy(), side="left"))
        codes.append(np.stack(columns, axis=1))
    return {
        "C2ST": float(roc_auc_score(labels, told)),
        "TVD of grains": float(np.mean(apart)),
        "TVD1": mean_tvd(*codes, 1),
        "TVD2": mean_tvd(*codes, 2),
    }


LABELS = (("sex", "F"), ("died", "no"))


def folds(labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut the rows into three random parts, each to be judged by the others."""
    part = np.random.default_rng(0).integers(0, 3, len(labels))
    return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(3)]


def main() -> None:
    """Fit, sample and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=7_300)
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--models", default="mixture")
    parser.add_argument("--repeats", type=int, default=1)
    chosen = parser.parse_args()
    real, facts = patients(chosen.rows, seed=1), schema(chosen.rows)
    names = "C2ST | TVD of grains | TVD1 | TVD2"
    print(f"| model | epsilon | {names} | fit, s |\n|---|---|---|---|---|---|---|")
    again = scores(real, patients(chosen.rows, seed=2))
    print("| the process again | | " + " | ".join(f"{v:.3f}" for v in again.values()) + " | |")
    for model in chosen.models.split(","):
        for epsilon in map(float, chosen.epsilons.split(",")):
            for _ in range(chosen.repeats):
                start = time.perf_counter()
                run = fitting.fit(
                    real,
                    facts,
                    epsilon=epsilon,
                    delta=1e-6,
                    dataset="patients",
                    model=model,
                    without_ledger=True,
                )
                seconds = time.perf_counter() - start
                scored = scores(real, run.sample(len(real)))
                values = " | ".join(f"{value:.3f}" for value in scored.values())
                print(f"| {model} | {epsilon:g} | {values} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
