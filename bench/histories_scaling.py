"""Measure how seconds and memory of the generator of histories grow with the number of patients.

usage: OMP_NUM_THREADS=1 histories_scaling.py [--patients 1000,3000] [--epsilon 3] [--model auto]

Patients are of the simulated clinic, in CSV files; the schema is `clinic` with its population set
to their number. Each number of patients has a process of its own, which reads, fits, draws as many
patients and writes them. Modules are loaded before, and are in the memory, not in the seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.synthesis import Sampler, fit, prepare
from dpsynth.tables import simulate_cohort, write_linked

PATIENTS = "1000,3000,10000,30000,100000"
DELTA = 1e-6
STAGES = ("read", "fit", "draw", "write")
READING = "reading"  # the stage that a fit reports while it reads


class Clock:
    """Processor seconds, wall seconds and the most memory so far (MiB), by stage."""

    def __init__(self) -> None:
        """Start in no stage."""
        self.found = {stage: [0.0, 0.0, 0.0] for stage in STAGES}
        self.stage, self.worked, self.start = "", time.process_time(), time.monotonic()

    def enter(self, stage: str) -> None:
        """End the current stage, and begin another one."""
        worked, now = time.process_time(), time.monotonic()
        if self.stage:
            cells = self.found[self.stage]
            cells[0] += worked - self.worked
            cells[1] += now - self.start
            cells[2] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.stage, self.worked, self.start = stage, worked, now


def schema_of(patients: int) -> LinkedSchema:
    """Return the schema of the clinic, for so many patients."""
    document = LinkedSchema.load("clinic").to_dict()
    document["dpsynth"]["population"] = {"value": patients, "basis": "the simulation"}
    return LinkedSchema.from_dict(document)


def simulated(folder: Path, patients: int) -> None:
    """Write the tables of simulated patients into a new folder."""
    folder.mkdir()
    for name, table in simulate_cohort(patients, seed=1).items():
        table.to_csv(folder / f"{name}.csv", index=False)


def measured(folder: Path, patients: int, epsilon: float, model: str) -> dict[str, list[float]]:
    """Read, fit, draw and write; return what each stage took.

    Reading includes the coding of rows. It ends when the fit reports another stage.
    """
    schema = schema_of(patients)
    prepare(schema, epsilon=epsilon, delta=DELTA, model=model).generator()
    clock = Clock()
    clock.enter("read")

    def progress(stage: str, part: float) -> None:
        if stage != READING and clock.stage == "read":
            clock.enter("fit")

    run = fit(
        folder / "source",
        schema,
        epsilon=epsilon,
        delta=DELTA,
        dataset="clinic",
        model=model,
        without_ledger=True,
        progress=progress,
    )

    def blocks() -> Iterator[dict[str, pd.DataFrame]]:
        drawn = Sampler.of(run).frames(patients, seed=1)
        while True:
            clock.enter("draw")
            block = next(drawn, None)
            clock.enter("write")
            if block is None:
                return
            yield block

    write_linked(blocks(), folder / "drawn", published_tables(schema))
    clock.enter("")
    return clock.found


def slope(patients: list[int], seconds: list[float]) -> float:
    """Return the slope of the logarithm of seconds over that of patients, by least squares."""
    return float(np.polyfit(np.log(patients), np.log(np.maximum(seconds, 1e-3)), 1)[0])


def main() -> None:
    """Measure each number of patients in a process of its own; print a table and slopes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", default=PATIENTS)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--simulate", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder and options.simulate:
        return simulated(options.folder / "source", int(options.patients))
    if options.folder:
        arguments = (options.folder, int(options.patients), options.epsilon, options.model)
        return print(json.dumps(measured(*arguments)))
    sizes = [int(size) for size in options.patients.split(",")]
    print("| patients | visits and values | " + " | ".join(STAGES) + " | wall | MiB |")
    print("| ---: " * (len(STAGES) + 4) + "|")
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            one, rows = _apart(Path(folder), size, options)
        found.append(one)
        worked = [f"{one[stage][0]:.1f}" for stage in STAGES]
        wall, memory = sum(one[s][1] for s in STAGES), max(one[s][2] for s in STAGES)
        print(f"| {size} | {rows} | {' | '.join(worked)} | {wall:.0f} | {memory:.0f} |", flush=True)
        by_stage = ", ".join(f"{stage} {one[stage][2]:.0f}" for stage in STAGES)
        print(f"{size} patients, MiB after each stage: {by_stage}", file=sys.stderr, flush=True)
    for name, first in (("all", 0), ("the largest two", len(sizes) - 2)):
        worked = [slope(sizes[first:], [one[s][0] for one in found[first:]]) for s in STAGES]
        totals = [sum(one[s][0] for s in STAGES) for one in found[first:]]
        cells = " | ".join(f"{value:.2f}" for value in worked)
        print(f"| slope, {name} |  | {cells} | {slope(sizes[first:], totals):.2f} (sum) |  |")


def _apart(
    folder: Path, patients: int, options: argparse.Namespace
) -> tuple[dict[str, list[float]], int]:
    """Simulate in one process, measure in another; count the rows of visits and values."""
    command = [sys.executable, __file__, "--patients", str(patients), "--folder", str(folder)]
    command += ["--epsilon", str(options.epsilon), "--model", options.model]
    subprocess.run([*command, "--simulate"], check=True)
    rows = 0
    for name in ("visits", "labs"):
        with (folder / "source" / f"{name}.csv").open("rb") as file:
            rows += sum(1 for _ in file) - 1
    shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(shown.stdout.splitlines()[-1]), rows


if __name__ == "__main__":
    main()
