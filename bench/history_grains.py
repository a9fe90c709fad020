"""Are the numbers of linked tables written as in their source? On simulated patients.

usage: history_grains.py [--patients 7300] [--epsilons 1,3] [--repeats 1]

Patients have a height that is heaped at 5 cm, an age, visits with a whole pulse, a systolic
pressure that is heaped at 10 and a temperature of one decimal, and two tests, one whole and one of
one decimal. The schema declares bounds and no steps. Prints for each number the total variation
distance between the shares of grains (the coarsest of 10, 5, 1, .5, .1, .05, .01, .001 that a value
is a multiple of), with the events of the grains and, as before, without them; then the distance of
the deciles, a mean over numbers. No real row is involved.
"""

from __future__ import annotations

import argparse
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from granularity import grains, heaped

from dpsynth.models.histories import settings
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import fit

BASIS = "bounds of the simulated process"
COLUMNS = ("age", "height", "pulse", "systolic", "temperature", "glucose", "potassium")
MOST = 8  # rows of a patient in a table


def number(name: str, low: float, high: float) -> dict[str, Any]:
    """Return the field of a number; it has no step."""
    bounds = {"minimum": low, "maximum": high, "required": True}
    return {
        "name": name,
        "type": "number",
        "constraints": bounds,
        "dpsynth": {"bounds_basis": BASIS},
    }


def package(patients: int) -> LinkedSchema:
    """Return the public facts."""
    key = {"name": "id", "type": "string"}
    foreign = [{"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}]
    most = {"max_rows": {"value": MOST, "basis": BASIS}}
    bounds = {"glucose": (20, 600), "potassium": (1, 10)}
    tests = {
        name: {"minimum": low, "maximum": high, "required": True, "bounds_basis": BASIS}
        for name, (low, high) in bounds.items()
    }
    own = [key, number("age", 18, 105), number("height", 120, 220)]
    visits = [
        key,
        {"name": "visit", "type": "integer"},
        number("pulse", 30, 250),
        number("systolic", 60, 260),
        number("temperature", 30, 45),
    ]
    labs = [
        key,
        {"name": "day", "type": "integer"},
        {"name": "test", "type": "string"},
        {"name": "value", "type": "number"},
    ]
    series = {"column": "test", "value": "value", "tests": tests}
    return LinkedSchema.from_dict(
        {
            "name": "ward",
            "resources": [
                {"name": "patients", "schema": {"primaryKey": "id", "fields": own}},
                {
                    "name": "visits",
                    "schema": {"foreignKeys": foreign, "fields": visits},
                    "dpsynth": {"order": "visit"} | most,
                },
                {
                    "name": "labs",
                    "schema": {"foreignKeys": foreign, "fields": labs},
                    "dpsynth": {"time": "day", "series": series} | most,
                },
            ],
            "dpsynth": {
                "version": 1,
                "patients": "patients",
                "population": {"value": patients, "basis": BASIS},
                "window": {"first": 0, "last": 1000, "basis": BASIS},
            },
        }
    )


def cohort(patients: int, seed: int) -> dict[str, pd.DataFrame]:
    """Draw patients: each has a level of her own, around which her values lie."""
    rng = np.random.default_rng(seed)
    keys = np.arange(patients).astype(str)
    own = pd.DataFrame(
        {
            "id": keys,
            "age": np.clip(np.rint(rng.normal(62, 16, patients)), 18, 105),
            "height": heaped(rng, rng.normal(169, 9, patients), 5, 0.35, 1),
        }
    )
    counts = np.clip(1 + rng.poisson(1.5, patients), 1, MOST)
    who = np.repeat(np.arange(patients), counts)

    def around(mean: float, between: float, within: float, rows: Any) -> Any:
        return rng.normal(mean, between, patients)[rows] + rng.normal(0, within, len(rows))

    visits = pd.DataFrame(
        {
            "id": keys[who],
            "visit": np.concatenate([np.arange(count) for count in counts]),
            "pulse": np.rint(around(80, 10, 6, who)),
            "systolic": heaped(rng, around(130, 15, 8, who), 10, 0.4, 1),
            "temperature": np.round(around(36.9, 0.2, 0.5, who), 1),
        }
    )
    labs = []
    for test, (mean, between, within, decimals) in {
        "glucose": (110, 20, 10, 0),
        "potassium": (4.1, 0.2, 0.4, 1),
    }.items():
        rows = np.repeat(np.arange(patients), np.clip(rng.poisson(2, patients), 0, MOST))
        value = np.round(around(mean, between, within, rows), decimals)
        days = rng.integers(0, 900, len(rows))
        labs.append(pd.DataFrame({"id": keys[rows], "day": days, "test": test, "value": value}))
    return {"patients": own, "visits": visits, "labs": pd.concat(labs, ignore_index=True)}


def values(tables: dict[str, pd.DataFrame]) -> list[np.ndarray]:
    """Return the numbers of each of `COLUMNS`."""
    labs = tables["labs"]
    found = [tables["patients"][name] for name in COLUMNS[:2]]
    found += [tables["visits"][name] for name in COLUMNS[2:5]]
    found += [labs["value"][labs["test"] == name] for name in COLUMNS[5:]]
    return [column.to_numpy(dtype=np.float64) for column in found]


def apart(real: dict[str, pd.DataFrame], drawn: dict[str, pd.DataFrame]) -> list[float]:
    """Return the distance of grains of each number, their mean, and that of deciles."""
    distances, deciles = [], []
    for one, other in zip(values(real), values(drawn), strict=True):
        distances.append(float(np.abs(grains(one) - grains(other)).sum() / 2))
        cuts = np.unique(np.quantile(one, np.linspace(0, 1, 11)[1:-1]))
        shares = [
            np.bincount(np.searchsorted(cuts, v), minlength=11) / len(v) for v in (one, other)
        ]
        deciles.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return [*distances, float(np.mean(distances)), float(np.mean(deciles))]


def main() -> None:
    """Fit, sample and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", type=int, default=7_300)
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--repeats", type=int, default=1)
    chosen = parser.parse_args()
    real, schema = cohort(chosen.patients, seed=1), package(chosen.patients)
    names = (*COLUMNS, "mean", "TVD1")
    print("| grains | epsilon | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
    again = apart(real, cohort(chosen.patients, seed=2))
    print("| the process again | | " + " | ".join(f"{one:.3f}" for one in again) + " |")
    for epsilon in map(float, chosen.epsilons.split(",")):
        for counted in (False, True):
            plain = mock.patch.object(settings, "with_row_grains", lambda shares, _: tuple(shares))
            lines = []
            for _ in range(chosen.repeats):
                with mock.MagicMock() if counted else plain:
                    run = fit(
                        {name: table.astype(str) for name, table in real.items()},
                        schema,
                        epsilon=epsilon,
                        delta=1e-6,
                        dataset="ward",
                        model="cohort",
                        without_ledger=True,
                    )
                lines.append(apart(real, run.sample(chosen.patients)))
            words = "counted" if counted else "not counted"
            figures = " | ".join(f"{one:.3f}" for one in np.mean(lines, axis=0))
            print(f"| {words} | {epsilon:g} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
