"""Evaluate each generator, other people's real rows, and chance, on the real tables.

usage: evaluations.py [--tables cardio,diabetes130] [--epsilon 3] [--work build/evaluations]

A table is split by unit: three fifths are the source, a fifth is the holdout, and a fifth stands
for a perfect generator: real rows of people who are neither in the source nor in the holdout.
Needs DPSYNTH_DATA (bench/README.md). Runs and evaluations are kept in the work folder, so that an
interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from dpsynth.schema.schema import Schema
from dpsynth.tables.table import open_table

KEYS = ("tvd1", "tvd2", "tvd3", "correlation", "missing", "queries", "c2st", "rules")
KINDS = ("tstr", "odds", "subgroup_worst_tvd2", "group_means")
MODELS = ("independent", "mixture", "autoregressive", "tvae", "ctgan")
DPSYNTH = str(Path(sys.executable).parent / "dpsynth")


def call(*arguments: str, environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; a failed gate is no failure here. Returns seconds and the peak in GiB."""
    start = time.perf_counter()
    done = subprocess.run(
        [DPSYNTH, *arguments, "-q"], env=environment, stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return time.perf_counter() - start, peak


def measure(table: str, data: str, epsilon: str, work: Path) -> None:
    """Print a line of figures for each candidate."""
    folder = work / table
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"DPSYNTH_LEDGER": str(folder / "ledger.sqlite")}
    if not (folder / "ledger.sqlite").exists():
        call("ledger", "create", environment=environment)
    if not (folder / "rest").exists():
        whole = f"{data}/{table}.csv.gz"
        options = ["--seed", "1", "-o"]
        call("split", table, whole, "--holdout", "0.2", *options, str(folder / "first"),
             environment=environment)  # fmt: skip
        call("split", table, str(folder / "first/train.csv.gz"), "--holdout", "0.25", *options,
             str(folder / "rest"), environment=environment)  # fmt: skip
    source, held = folder / "rest/train.csv.gz", folder / "first/holdout.csv.gz"
    people = folder / "people.csv"  # a synthetic table has no dialect of its own
    if not people.exists():
        chunks = open_table(folder / "rest/holdout.csv.gz", Schema.load(table)).chunks()
        pd.concat(chunks).to_csv(people, index=False)
    for name in (*MODELS, "other people"):
        output = folder / f"{name.replace(' ', '-')}.evaluation"
        spent = (float("nan"), float("nan"))
        if not output.exists():
            subject, synthetic = table, people
            if name in MODELS:
                run, synthetic = folder / name, folder / f"{name}.parquet"
                subject = str(run)
                if not run.exists():
                    call("fit", table, str(source), "--dataset", table, "--epsilon", epsilon,
                         "--delta", "1e-6", "--model", name, "-o", subject,
                         environment=environment)  # fmt: skip
                call("sample", subject, "--seed", "1", "-o", str(synthetic), "--force",
                     environment=environment)  # fmt: skip
            spent = call("evaluate", subject, str(source), "--synthetic", str(synthetic),
                         "--holdout", str(held), "-o", str(output),
                         environment=environment)  # fmt: skip
        measures = json.loads((output / "evaluation.json").read_text())["measures"]
        keys = [k for k in measures if k in KEYS or k.startswith(KINDS)]
        if name == MODELS[0]:
            print(f"\n{table}\n\n| candidate | {' | '.join(keys)} | s | GiB |")
            print("|---" * (len(keys) + 3) + "|")
        cells = [f"{measures[k]['value']:.4f}" if k in measures else "" for k in keys]
        print(f"| {name} | {' | '.join(cells)} | {spent[0]:.0f} | {spent[1]:.2f} |", flush=True)
    for name in ("reference", "chance"):
        cells = ["" if measures[k][name] is None else f"{measures[k][name]:.4f}" for k in keys]
        print(f"| ({name}) | {' | '.join(cells)} | | |", flush=True)


def main() -> None:
    """Measure each table in a process of its own, so that peaks of memory do not mix."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="cardio,diabetes130")
    parser.add_argument("--epsilon", default="3")
    parser.add_argument("--work", default="build/evaluations", type=Path)
    chosen = parser.parse_args()
    data = os.environ.get("DPSYNTH_DATA")
    if not data:
        sys.exit("DPSYNTH_DATA is not set: name the folder of the real tables (bench/README.md)")
    for table in chosen.tables.split(","):
        measure(table, data, chosen.epsilon, chosen.work)


if __name__ == "__main__":
    main()
