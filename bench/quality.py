"""Fit generators on the prepared tables, score what they sample, and keep one line a fit.

usage: quality.py [--tables cardio,...] [--models independent,tvae] [--epsilons 3] [--seeds 1]
                  [--work DIR] [--delta 1e-5] [--unit patient|row]

Needs DPSYNTH_DATA (see bench/README.md). Resumable: a fit whose line is in DIR/results.jsonl is
not repeated. The noise is never seeded, so "seed" only numbers the repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from convert import convert

HERE = Path(__file__).parent


def prepared(work: Path) -> Path:
    """Split the tables once; returns the folder."""
    out = work / "tables"
    if not (out / "diabetes130" / "schema.json").exists():
        data = os.environ.get("DPSYNTH_DATA")
        if not data:
            sys.exit(
                "DPSYNTH_DATA is not set: name the folder of the real tables (bench/README.md)"
            )
        command = [sys.executable, "prepare.py", "--data", data, "--out", str(out.resolve())]
        subprocess.run(command, cwd=HERE / "scorer", check=True)
    return out


def score(folder: Path, synthetic: Path) -> dict[str, float]:
    """Run the scorer on one synthetic table."""
    command = [sys.executable, "evaluate.py", "--synth", str(synthetic.resolve())]
    for option, name in (("train", "train.csv"), ("test", "test.csv"), ("schema", "schema.json")):
        command += [f"--{option}", str((folder / name).resolve())]
    command += ["--cache", str((folder / "reference.json").resolve())]
    done = subprocess.run(command, cwd=HERE / "scorer", check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def one(
    folder: Path, work: Path, *, table: str, model: str, epsilon: float, delta: float, by_row: bool
) -> dict[str, float]:
    """Fit, sample as many rows as the training split has, score."""
    from dpsynth import pipeline
    from dpsynth.sampler import Sampler, fresh_seed
    from dpsynth.table import write_table

    schema = convert(folder / "schema.json", rows_as_units=by_row)
    rows = sum(1 for _ in (folder / "train.csv").open()) - 1
    start = time.perf_counter()
    run = pipeline.fit(
        folder / "train.csv",
        schema,
        epsilon=epsilon,
        delta=delta,
        dataset="benchmark",
        model=model,
        without_ledger=True,
    )
    fitted = time.perf_counter()
    synthetic = work / f"{table}-{model}.csv"
    frames = Sampler.of(run).frames(rows, seed=fresh_seed())
    write_table(frames, synthetic, schema, overwrite=True)
    sampled = time.perf_counter()
    seconds = {"fit_s": round(fitted - start, 2), "sample_s": round(sampled - fitted, 2)}
    return seconds | score(folder, synthetic)


def main() -> None:
    """Run what is missing and print a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="cardio,diabetes130,brfss2015")
    parser.add_argument("--models", default="independent,tvae")
    parser.add_argument("--epsilons", default="3")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--unit", choices=["patient", "row"], default="patient")
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    chosen = parser.parse_args()
    tables = prepared(chosen.work)
    ledger = chosen.work / "results.jsonl"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for table in chosen.tables.split(","):
        for model in chosen.models.split(","):
            for epsilon in map(float, chosen.epsilons.split(",")):
                for seed in range(chosen.seeds):
                    key = (table, chosen.unit, model, epsilon, chosen.delta, seed)
                    if key in done:
                        continue
                    result = one(
                        tables / table,
                        chosen.work,
                        table=table,
                        model=model,
                        epsilon=epsilon,
                        delta=chosen.delta,
                        by_row=chosen.unit == "row",
                    )
                    with ledger.open("a") as file:
                        file.write(json.dumps({"key": key, **result}) + "\n")
                    show = ("fit_s", "sample_s", "tvd1", "tvd2", "tvd3", "tstr_hgb", "c2st_auc")
                    print(*key, *(f"{name} {result[name]:.4f}" for name in show), flush=True)


if __name__ == "__main__":
    main()
