"""The length of a stay: two dates with a rule, and the same dates as an interval.

Simulates an extract of 8 000 patients with one or two stays each, fits it both ways, and prints the
mean, the median and the 99th percentile of the stay in days, beside the source. No real table is
needed:

    python bench/intervals.py --epsilon 3 --runs 3
    python bench/intervals.py --extract --epsilon 3 --runs 5

With `--extract`, the table is the made-up extract of a German hospital that the tests use, 33
columns and 8 000 patients, with its stays declared as an interval.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.schema import Schema

PATIENTS = 8_000
LONGEST = 90  # days
MEAN = 4.4  # days
FIRST = np.datetime64("2016-01-01")
DAYS = 4 * 365
WARDS = ("medicine", "surgery", "oncology", "paediatrics", "neurology")
DIAGNOSES = ("circulatory", "respiratory", "injury", "neoplasm", "digestive", "other")
DEPARTURES = ("home", "transfer", "rehabilitation", "died")


def simulated(seed: int) -> pd.DataFrame:
    """Simulate stays whose length depends on ward and age, log-normal within a ward."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(PATIENTS), 1 + (rng.random(PATIENTS) < 0.44))
    rows = len(patient)
    born = (rng.normal(58, 18, PATIENTS).clip(0, 104) * 365.25).astype(int)[patient]
    sex = rng.choice(["F", "M"], PATIENTS)[patient]
    day = rng.integers(0, DAYS, rows)
    day -= ((day + 4) % 7 >= 5) * rng.integers(0, 3, rows)  # fewer on weekends
    admitted = FIRST + day.clip(0)
    ward = rng.choice(len(WARDS), rows, p=[0.4, 0.3, 0.12, 0.08, 0.1])
    scale = np.array([0.0, -0.2, 0.5, -0.4, 0.3])[ward] + (born / 365.25 - 58) / 120
    stay = np.exp(scale + rng.normal(0, 0.8, rows))
    stay = np.rint(stay * MEAN / stay.mean()).clip(0, LONGEST).astype(int)
    height = np.where(sex == "M", 177, 164) + rng.normal(0, 7, rows)
    weight = 25 * (height / 100) ** 2 * np.exp(rng.normal(0, 0.15, rows))
    return pd.DataFrame(
        {
            "patient": patient,
            "sex": sex,
            "ward": np.array(WARDS)[ward],
            "diagnosis": rng.choice(DIAGNOSES, rows, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.15]),
            "born": admitted - born,
            "admitted": admitted,
            "discharged": admitted + stay,
            "weight": weight.clip(30, 250).round(),
            "height": height.clip(120, 210).round(),
            "haemoglobin": rng.normal(13, 1.8, rows).clip(3, 22).round(1),
            "creatinine": np.exp(rng.normal(-0.1, 0.4, rows)).clip(0.1, 15).round(1),
            "emergency": np.where(rng.random(rows) < 0.55, "true", "false"),
            "departure": rng.choice(DEPARTURES, rows, p=[0.8, 0.1, 0.07, 0.03]),
        }
    ).astype(str)


def schema(*, intervals: bool) -> Schema:
    """Declare the extract, with the dates as two dates and a rule, or as intervals."""

    def number(name: str, low: float, high: float, step: float) -> dict[str, object]:
        return {
            "name": name,
            "type": "number",
            "constraints": {"minimum": low, "maximum": high, "required": True},
            "dpsynth": {"step": step, "bounds_basis": "device"},
        }

    def text(name: str, values: tuple[str, ...]) -> dict[str, object]:
        constraints = {"enum": list(values), "required": True}
        own = {"bounds_basis": "form"}
        return {"name": name, "type": "string", "constraints": constraints, "dpsynth": own}

    def day(name: str, low: str, high: str, own: dict[str, object]) -> dict[str, object]:
        bounds = {} if intervals and own else {"minimum": low, "maximum": high}
        return {
            "name": name,
            "type": "date",
            "constraints": {"required": True, **bounds},
            "dpsynth": {"bounds_basis": "protocol", **(own if intervals else {})},
        }

    stay = {"after": "admitted", "longest": LONGEST}
    age = {"before": "admitted", "longest": 110, "unit": "a"}
    return Schema.from_dict(
        {
            "name": "stays",
            "fields": [
                {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
                text("sex", ("F", "M")),
                text("ward", WARDS),
                text("diagnosis", DIAGNOSES),
                day("born", "1906-01-01", "2019-12-31", age),
                day("admitted", "2016-01-01", "2019-12-31", {}),
                day("discharged", "2016-01-01", "2020-03-30", stay),
                number("weight", 30, 250, 1),
                number("height", 120, 210, 1),
                number("haemoglobin", 3, 22, 0.1),
                number("creatinine", 0.1, 15, 0.1),
                {"name": "emergency", "type": "boolean", "constraints": {"required": True}},
                text("departure", DEPARTURES),
            ],
            "dpsynth": {
                "version": 1,
                "max_rows": {"value": 2, "basis": "protocol"},
                "population": {"value": PATIENTS, "basis": "protocol"},
                "rows": {"value": 12_000, "basis": "protocol"},
                "rules": [] if intervals else ["admitted <= discharged", "born <= admitted"],
            },
        }
    )


def figures(frame: pd.DataFrame) -> dict[str, float]:
    """Return what is said about the stays of a table."""
    dates = {name: pd.to_datetime(frame[name]) for name in ("born", "admitted", "discharged")}
    stay = (dates["discharged"] - dates["admitted"]).dt.days.to_numpy()
    age = (dates["admitted"] - dates["born"]).dt.days.to_numpy() / 365.25
    return of_stays(stay) | {"mean age": age.mean()}


def of_stays(stay: np.ndarray) -> dict[str, float]:
    """Return mean, median, 99th percentile and longest of stays in days; share beyond the bound."""
    return {
        "mean": stay.mean(),
        "median": np.median(stay),
        "p99": np.quantile(stay, 0.99),
        "longest": stay.max(),
        "beyond": float((stay > LONGEST).mean()),
    }


def of_extract(options: argparse.Namespace) -> pd.DataFrame:
    """Fit the extract of the tests, with its stays as an interval."""
    root = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(root))
    from tests.support.hospital_extract import hospital_extract

    facts = Schema.load(root / "tests" / "support" / "hospital.schema.yaml")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for run in range(options.runs):
            extract = hospital_extract(seed=run + 1)
            path = extract.write(Path(folder) / "extract.csv")
            rows.append({"table": "source"} | of_stays(extract.truth["stay"].to_numpy()))
            for model in options.models:
                began = time.perf_counter()
                fitted = dpsynth.fit(
                    path,
                    facts,
                    epsilon=options.epsilon,
                    delta=1e-6,
                    dataset="extract",
                    model=model,
                    without_ledger=True,
                )
                table = fitted.sample(20_000, seed=run)
                gone, came = (
                    pd.to_datetime(table[name], format="%d.%m.%Y")
                    for name in ("Entlassdatum", "Aufnahmedatum")
                )
                found = of_stays((gone - came).dt.days.to_numpy())
                seconds = {"seconds": time.perf_counter() - began}
                rows.append({"table": fitted.model} | found | seconds)
    return pd.DataFrame(rows)


def of_simulation(options: argparse.Namespace) -> pd.DataFrame:
    """Fit the simulated extract, with two dates and with an interval."""
    rows = []
    for run in range(options.runs):
        source = simulated(run)
        rows.append({"table": "source"} | figures(source))
        for intervals in (False, True):
            for model in options.models:
                began = time.perf_counter()
                fitted = dpsynth.fit(
                    source,
                    schema(intervals=intervals),
                    epsilon=options.epsilon,
                    delta=1e-6,
                    dataset="stays",
                    model=model,
                    without_ledger=True,
                )
                table = fitted.sample(20_000, seed=run)
                name = f"{'interval' if intervals else 'two dates'}, {fitted.model}"
                seconds = {"seconds": time.perf_counter() - began}
                rows.append({"table": name} | figures(table) | seconds)
    return pd.DataFrame(rows)


def main() -> None:
    """Fit, sample and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["auto"])
    parser.add_argument("--extract", action="store_true")
    options = parser.parse_args()
    frame = of_extract(options) if options.extract else of_simulation(options)
    print(frame.round(3).to_string(index=False))
    print(f"\nmeans over {options.runs} runs, epsilon {options.epsilon:g}")
    print(frame.groupby("table", sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
