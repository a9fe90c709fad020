"""Measure seconds and memory of the commands on linked tables of many patients, by `latent`.

usage: scale_of_histories.py [--patients 1000,10000,100000] [--steps fit,sample,...] [--workers 2]

Patients have sex, age and follow-up, death, visits with three numbers, and 12 laboratory tests on
days of the visits: about 20 rows each, made up. Each step is one command, with a ledger of its own.
Prints processor seconds of all its processes together, seconds, and the most memory of one process.
Starting Python and loading libraries, about 2 seconds, is in each of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

FOLLOWED, BASIS = 1826, {"bounds_basis": "made up"}
TESTS = {
    f"test {letter}": (5 * place + 10, place + 2) for place, letter in enumerate("abcdefghijkl")
}
STEPS = ("fit", "sample", "evaluate", "release", "verify")


def number(name: str, low: float, high: float, step: float = 1) -> dict[str, object]:
    """Declare a column of numbers."""
    bounds = {"minimum": low, "maximum": high, "required": True}
    kind = "integer" if step == 1 else "number"
    facts = BASIS if step == 1 else BASIS | {"step": step}
    return {"name": name, "type": kind, "constraints": bounds, "dpsynth": facts}


def words(name: str, *levels: str) -> dict[str, object]:
    """Declare a column of words."""
    return {
        "name": name,
        "type": "string",
        "constraints": {"enum": [*levels], "required": True},
        "dpsynth": BASIS,
    }


def package(patients: int) -> dict[str, object]:
    """Declare the tables of so many patients."""
    key = {"name": "pid", "type": "string"}
    day = {"name": "day", "type": "integer"}

    def table(name: str, fields: list[dict[str, object]], **facts: object) -> dict[str, object]:
        to = {"fields": ["pid"], "reference": {"resource": "patients", "fields": ["pid"]}}
        schema = {"foreignKeys": [to], "fields": [key, day, *fields]}
        return {"name": name, "schema": schema, "dpsynth": {"time": "day", **facts}}

    tests = {
        name: {"minimum": 0, "maximum": 200, "step": 1, "bounds_basis": "made up"} for name in TESTS
    }
    person = [words("sex", "F", "M"), number("age", 18, 95), number("followed", 0, FOLLOWED)]
    visits = [number("weight", 30, 200), number("pressure", 60, 240), number("pain", 0, 10)]
    length = [number("nights", 0, 20)]
    values = [{"name": "test", "type": "string"}, {"name": "value", "type": "number"}]
    return {
        "name": "scale",
        "resources": [
            {"name": "patients", "schema": {"primaryKey": "pid", "fields": [key, *person]}},
            table("visits", length + visits, max_rows={"value": 20, "basis": "made up"}),
            table(
                "labs",
                values,
                max_rows={"value": 30, "basis": "made up"},
                series={"column": "test", "value": "value", "tests": tests},
                inside={"table": "visits", "length": "nights"},
            ),
            table("events", [words("event", "death")], once="event"),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "person": {"name": "patient"},
            "population": {"value": patients, "basis": "made up"},
            "window": {"first": 0, "last": FOLLOWED, "basis": "made up"},
            "end": "followed",
            "ended_by": "death",
        },
    }


def write(folder: Path, patients: int) -> int:
    """Write the tables, and their schema beside them; returns the number of rows."""
    rng = np.random.default_rng(1)
    who = np.arange(patients)
    age, woman = rng.integers(18, 96, patients), rng.random(patients) < 0.5
    died = rng.random(patients) < age / 400
    followed = np.where(died, rng.integers(30, FOLLOWED, patients), FOLLOWED)
    ill = rng.standard_normal(patients)
    visits = np.repeat(who, np.minimum(1 + rng.poisson(3 * np.exp(0.3 * ill)), 20))
    day = np.floor(rng.random(len(visits)) * (followed[visits] + 1)).astype(int)
    order = np.lexsort((day, visits))
    visits, day = visits[order], day[order]
    kept = np.append(True, (np.diff(visits) != 0) | (np.diff(day) != 0))
    visits, day = visits[kept], day[kept]

    def drawn(rows: np.ndarray, mean: float, sd: float, low: float, high: float) -> np.ndarray:
        level = ill[rows] + rng.standard_normal(patients)[rows] + rng.standard_normal(len(rows))
        return np.clip(np.rint(mean + sd * level), low, high).astype(int)

    tables = {
        "patients": {
            "pid": [f"p{one}" for one in who],
            "sex": np.where(woman, "F", "M"),
            "age": age,
            "followed": followed,
        },
        "visits": {
            "pid": [f"p{one}" for one in visits],
            "day": day,
            "nights": np.minimum(rng.integers(0, 4, len(day)), followed[visits] - day),
            "weight": drawn(visits, 75, 8, 30, 200),
            "pressure": drawn(visits, 130, 10, 60, 240),
            "pain": drawn(visits, 3, 1.5, 0, 10),
        },
        "events": {
            "pid": [f"p{one}" for one in who[died]],
            "day": followed[died],
            "event": "death",
        },
    }
    labs = []
    for place, (name, (mean, sd)) in enumerate(TESTS.items()):
        taken = np.flatnonzero(rng.random(len(visits)) < (0.55 if place < 6 else 0.15))
        values = drawn(visits[taken], mean, sd, 0, 200)
        labs.append(
            pd.DataFrame({"pid": visits[taken], "day": day[taken], "test": name, "value": values})
        )
    whole = pd.concat(labs).sort_values(["pid", "day", "test"])
    whole["pid"] = [f"p{one}" for one in whole["pid"]]
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
    whole.to_csv(folder / "labs.csv", index=False)
    (folder.parent / "scale.package.yaml").write_text(yaml.safe_dump(package(patients)))
    return len(visits) + len(whole) + int(died.sum())


def commands(folder: Path, workers: str) -> dict[str, list[str]]:
    """Return the words of each step."""
    schema, source, run = folder / "scale.package.yaml", folder / "source", folder / "run"
    cohort, bundle = folder / "cohort", folder / "bundle"
    some = ["--workers", workers] if workers else []
    found: dict[str, list[object]] = {
        "fit": [schema, source, "--dataset", "scale", "--epsilon", 3, "--delta", 1e-6]
        + ["--model", "latent", "-o", run],
        "sample": [run, "--seed", 1, "-o", cohort, *some],
        "evaluate": [run, source, "--synthetic", cohort, "-o", folder / "internal"],
        "release": [run, "--table", cohort, "-o", bundle],
        "verify": [bundle],
    }
    return {name: [name, *map(str, words)] for name, words in found.items()}


def measured(arguments: list[str], ledger: Path) -> tuple[float, float, float, int]:
    """Run a command; returns processor seconds, seconds, MiB and its exit code."""
    environment = os.environ | {"DPSYNTH_LEDGER": str(ledger), "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    words = [sys.executable, "-m", "dpsynth", *arguments, "-q"]
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(sys.executable, words, environment, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    took, code = time.monotonic() - start, os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, took, used.ru_maxrss / 1024, code


def main() -> None:
    """Print a table of all steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", default="1000,10000,100000")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--workers", default="")
    options = parser.parse_args()
    print("| patients | rows | step | processor s | s | MiB |")
    print("| ---: | ---: | --- | ---: | ---: | ---: |")
    for patients in map(int, options.patients.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder, ledger = Path(name), Path(name, "ledger.sqlite")
            (folder / "source").mkdir()
            rows = write(folder / "source", patients)
            measured(["ledger", "create", str(ledger)], ledger)
            steps = commands(folder, options.workers)
            for step in options.steps.split(","):
                *figures, code = measured(steps[step], ledger)
                cells = " | ".join(
                    [f"{patients} | {rows} | {step}", *map("{:.0f}".format, figures)]
                )
                print(f"| {cells} |" + (f" exit code {code}" if code not in (0, 3) else ""))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
