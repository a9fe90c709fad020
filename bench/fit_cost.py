"""Compare what a fit was estimated to take, before its charge, with what it takes.

usage: OMP_NUM_THREADS=1 fit_cost.py [--sizes 10x1000,30x30000] [--models auto,mixture]
    [--patients 1000,10000] [--linked auto,cohort] [--epsilon 3] [--stages]

A size is columns x rows of a simulated table, whose columns are categories, whole numbers and
measurements in turn; a table that would have too many bins has categories alone. Linked tables are
those of the simulated clinic. Each fit has a process of its own. Its seconds run from the charge to
the end of the fit, of the processor and by the clock. On a machine that others use, compare those
of the processor. Memory is the most that the process has held, its libraries included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.schema import LinkedSchema, Schema, load_any
from dpsynth.synthesis import fit, fitting, prepare
from dpsynth.synthesis.fit_cost import estimated
from dpsynth.tables import simulate_cohort

SIZES = "10x1000,30x30000,100x10000,500x3000,2000x1000"
MODELS = "auto,independent,mixture,distilled,autoregressive,tvae,ctgan"
PATIENTS, LINKED = "1000,10000", "cohort,distilled,autoregressive"
DELTA = 1e-6
KINDS = (4, 121, 10_001)  # values of a column, in turn
WIDE = 16  # bins of a column, about
MOST_BINS = 10_000
TABLE, SCHEMA = "table.csv", "table.schema.json"


def values_of(columns: int) -> list[int]:
    """Return the number of values of each column."""
    mixed = [KINDS[place % len(KINDS)] for place in range(columns)]
    whole = sum(min(values, WIDE) for values in mixed)
    return mixed if whole <= MOST_BINS else [KINDS[0]] * columns


def simulated(folder: Path, columns: int, rows: int) -> None:
    """Write a table and its schema: each column follows one of a few hidden traits."""
    rng = np.random.default_rng(1)
    traits = rng.standard_normal((rows, 5))
    table, fields = {}, []
    for place, values in enumerate(values_of(columns)):
        trait = traits[:, place % 5] + rng.standard_normal(rows)
        drawn = np.clip(((trait + 4) / 8 * values).astype(int), 0, values - 1)
        name, category = f"c{place}", values == KINDS[0]
        bounds = {"minimum": 0, "maximum": values - 1}
        table[name] = drawn
        fields.append(
            {
                "name": name,
                "type": "string" if category else "integer",
                "constraints": {"required": True}
                | ({"enum": [str(code) for code in range(values)]} if category else bounds),
                "dpsynth": {"bounds_basis": "simulated"}
                | ({"on_unknown": "0"} if category else {}),
            }
        )
    pd.DataFrame(table).to_csv(folder / TABLE, index=False)
    size = {"value": rows, "basis": "simulated"}
    document = {
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "name": "columns",
        "fields": fields,
        "dpsynth": {"version": 1, "population": size, "rows": size},
    }
    (folder / SCHEMA).write_text(json.dumps(document))


def simulated_patients(folder: Path, patients: int) -> None:
    """Write the tables of simulated patients, and their schema."""
    document = LinkedSchema.load("clinic").to_dict()
    document["dpsynth"]["population"] = {"value": patients, "basis": "the simulation"}
    (folder / SCHEMA).write_text(json.dumps(document))
    (folder / "source").mkdir()
    for name, table in simulate_cohort(patients, seed=1).items():
        table.to_csv(folder / "source" / f"{name}.csv", index=False)


class Stages:
    """Seconds by stage, from what is said before the charge: of the processor, and by the clock."""

    def __init__(self) -> None:
        """Wait for the first call."""
        self.marks: list[tuple[str, float, float]] = []

    def __call__(self, stage: str, part: float) -> None:
        """Begin a stage, where another one was at work."""
        if not self.marks or self.marks[-1][0] != stage:
            self.marks.append((stage, time.process_time(), time.monotonic()))

    def seconds(self) -> dict[str, list[float]]:
        """Return the seconds of each stage; the last one ends now."""
        self("", 1.0)
        found: dict[str, list[float]] = {}
        for (stage, *begun), (_, *ended) in zip(self.marks, self.marks[1:], strict=False):
            cells = found.setdefault(stage, [0.0, 0.0])
            cells[0] += ended[0] - begun[0]
            cells[1] += ended[1] - begun[1]
        return found


def measured(folder: Path, model: str, epsilon: float) -> dict[str, Any]:
    """Estimate, then fit; return what each said, in seconds and bytes."""
    schema = load_any(folder / SCHEMA)
    prepared = prepare(schema, epsilon=epsilon, delta=DELTA, model=model)
    prepared.generator()
    cost = estimated(prepared)
    stages = Stages()
    linked = not isinstance(schema, Schema)
    run: Any = fit if linked else fitting.fit
    run(
        folder / ("source" if linked else TABLE),
        schema,
        epsilon=epsilon,
        delta=DELTA,
        dataset="bench",
        model=model,
        without_ledger=True,
        progress=stages,
        advise=lambda sentence: stages("charge", 0.0),
    )
    seconds = stages.seconds()
    return {
        "model": prepared.model,
        "estimate": [cost.seconds, cost.bytes],
        "worked": sum(one[0] for one in seconds.values()),
        "wall": sum(one[1] for one in seconds.values()),
        "bytes": _most_bytes(),
        "stages": {stage: round(one[0], 1) for stage, one in seconds.items()},
        "parts": {name: round(value, 1) for name, value in cost.parts.items()},
    }


def _most_bytes() -> int:
    """Return the most memory that this process has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def cases(options: argparse.Namespace) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the sizes: what to call them, how to simulate them, and the models to fit."""
    for size in filter(None, options.sizes.split(",")):
        yield size, ["--simulate", *size.split("x")], options.models.split(",")
    for patients in filter(None, options.patients.split(",")):
        yield f"{patients} patients", ["--simulate", patients], options.linked.split(",")


def child(*arguments: str) -> str:
    """Run this script in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, text=True, stdout=subprocess.PIPE
    )
    return done.stdout


def main() -> None:
    """Print a line for each fit: estimates, truths, and how many times too long or too short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--patients", default=PATIENTS)
    parser.add_argument("--linked", default=LINKED)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--stages", action="store_true", help="also the seconds of each stage")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--simulate", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.simulate:
        flat = len(options.simulate) > 1
        return (simulated if flat else simulated_patients)(options.folder, *options.simulate)
    if options.folder:
        return print(json.dumps(measured(options.folder, options.models, options.epsilon)))
    print(
        "| size | model | estimate, s | processor, s | clock, s | ratio | estimate, MB | truth, MB "
        "| ratio |\n| --- | --- " + "| ---: " * 7 + "|"
    )
    for name, simulate, models in cases(options):
        with tempfile.TemporaryDirectory() as folder:
            where = ["--folder", folder]
            child(*where, *simulate)
            for model in models:
                one = json.loads(
                    child(*where, "--models", model, "--epsilon", str(options.epsilon))
                )
                seconds, size = one["estimate"]
                print(
                    f"| {name} | {one['model']} | {seconds:.1f} | {one['worked']:.1f} "
                    f"| {one['wall']:.1f} | {seconds / one['worked']:.2f} | {size / 1e6:.0f} "
                    f"| {one['bytes'] / 1e6:.0f} | {size / one['bytes']:.2f} |",
                    flush=True,
                )
                if options.stages:
                    print(f"  {one['stages']}\n  {one['parts']}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
