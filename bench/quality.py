"""Fit generators on the prepared tables, score what they sample, and keep one line a fit.

usage: quality.py [--quick] [--jobs N] [--tables cardio:row,diabetes130]
                  [--models autoregressive,auto] [--epsilons 1,3,10] [--seeds 3] [--delta 1e-5]
                  [--work DIR]

Needs DPSYNTH_DATA (see bench/README.md). Resumable: a fit whose line is in DIR/results.jsonl is
not repeated. The noise is never seeded, so "seed" only numbers the repeats. Each fit is a process
with one thread, so that its seconds compare however many run side by side. The model `ceiling`
scores the real rows as the bins of a fit leave them: no fit can do better with these bins.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

from ceiling import ceiling
from convert import convert
from quality_jobs import run_all
from quality_results import BOOTSTRAP, CEILING, SCORES, Key, key_of, read_lines

HERE = Path(__file__).parent
TABLES = {"cardio": ("row",), "diabetes130": ("row", "patient"), "brfss2015": ("row",)}
UNSET = (
    "skipped: DPSYNTH_DATA is not set; name the folder of the real tables there (bench/README.md)"
)


def prepared(work: Path) -> Path | None:
    """Split the tables once; returns their folder, None where no folder of tables is named."""
    out = work / "tables"
    if (out / "diabetes130" / "schema.json").exists():
        return out
    data = os.environ.get("DPSYNTH_DATA")
    if not data:
        return None
    for table in TABLES:
        if not (Path(data) / f"{table}.csv.gz").is_file():
            sys.exit(f"DPSYNTH_DATA names '{data}', which holds no {table}.csv.gz")
    part = work / "tables.part"  # renamed when whole: a split cut short is made again
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    data, target = str(Path(data).resolve()), str(part.resolve())
    command = [sys.executable, "prepare.py", "--data", data, "--out", target]
    subprocess.run(command, cwd=HERE / "scorer", check=True)
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    return out


def score(folder: Path, synthetic: Path, cache: Path) -> dict[str, Any]:
    """Run the scorer on one synthetic table; a measure it could not take is an error."""
    command = [sys.executable, "evaluate.py", "--synth", str(synthetic.resolve())]
    for option, name in (("train", "train.csv"), ("test", "test.csv"), ("schema", "schema.json")):
        command += [f"--{option}", str((folder / name).resolve())]
    command += ["--cache", str(cache.resolve())]
    done = subprocess.run(command, cwd=HERE / "scorer", capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise RuntimeError(f"the scorer failed: {' '.join(last)}")
    result: dict[str, Any] = json.loads(done.stdout)
    missing = [name for name in SCORES if name not in result]
    if missing:
        raise RuntimeError(f"the scorer gave no {missing[0]}: {result.get('c2st_error', '')}")
    return result


def score_beside(folder: Path, synthetic: Path, scratch: Path) -> dict[str, Any]:
    """Score with a copy of the reference beside the table: only the floors write that one."""
    cache = scratch / "reference.json"
    if (folder / cache.name).exists():
        shutil.copy(folder / cache.name, cache)
    return score(folder, synthetic, cache)


def commit() -> str | None:
    """Return the version of the code as git describes it; None outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=HERE,
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def below_one_in(population: int, delta: float) -> float:
    """Return delta, or the largest of its tenths that a table of so many units may be fitted at."""
    while delta * population >= 1:
        delta = float(f"{delta / 10:.6g}")
    return delta


def one_fit(key: Key, tables: Path, scratch: Path) -> dict[str, Any]:
    """Fit, sample as many rows as the training split has, score.

    The ceiling is not fitted: all its seconds are of sampling.
    """
    from dpsynth._util.seeds import fresh_seed
    from dpsynth.models.registry import NAMES, generator_class
    from dpsynth.synthesis import fitting
    from dpsynth.synthesis.sampler import Sampler
    from dpsynth.tables.table import write_table

    table, unit, model, epsilon, delta, _ = key
    folder = tables / table
    schema = convert(folder / "schema.json", rows_as_units=unit == "row")
    rows = sum(1 for _ in (folder / "train.csv").open()) - 1
    for name in NAMES:
        generator_class(name)  # importing the libraries is no part of the fit's time
    version = commit()
    delta = below_one_in(schema.population.value, delta)
    start = fitted = time.perf_counter()
    if model == CEILING:
        frames = iter([ceiling(folder / "train.csv", schema, epsilon=epsilon, delta=delta)])
    else:
        run = fitting.fit(
            folder / "train.csv",
            schema,
            epsilon=epsilon,
            delta=delta,
            dataset="benchmark",
            model=model,
            without_ledger=True,
        )
        fitted = time.perf_counter()
        frames, model = Sampler.of(run).frames(rows, seed=fresh_seed()), run.model
    write_table(frames, scratch / "synthetic.csv", schema, overwrite=True)
    sampled = time.perf_counter()
    seconds = {"fit_s": round(fitted - start, 2), "sample_s": round(sampled - fitted, 2)}
    facts = {"commit": version, "model": model}
    return facts | seconds | score_beside(folder, scratch / "synthetic.csv", scratch)


def one_floor(key: Key, tables: Path, scratch: Path) -> dict[str, Any]:
    """Score a bootstrap of the training rows, and keep the scorer's reference for the fits.

    The reference holds the other floor: the distances of the test split, binned and compared as a
    synthetic table is. Nothing else of a table scored against itself would mean anything.
    """
    import numpy as np
    import pandas as pd

    folder, cache = tables / key[0], scratch / "reference.json"
    train = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    drawn = np.random.default_rng(0).integers(0, len(train), len(train))
    train.iloc[drawn].to_csv(scratch / "synthetic.csv", index=False)
    result = {"commit": commit()} | score(folder, scratch / "synthetic.csv", cache)
    os.replace(cache, folder / "reference.json")
    return result


def wanted(
    tables: list[tuple[str, str]],
    models: list[str],
    epsilons: list[float],
    *,
    seeds: int,
    delta: float,
) -> list[Key]:
    """Name every fit, all of the first seed before the second: part of them is of use already."""
    return [
        (table, unit, model, epsilon, delta, seed)
        for seed, (table, unit), epsilon, model in product(range(seeds), tables, epsilons, models)
    ]


def tables_named(text: str) -> list[tuple[str, str]]:
    """Read ``table:unit,...``; a table without a unit stands for all that it has."""
    pairs = []
    for name in text.split(","):
        table, _, unit = name.partition(":")
        if table not in TABLES or (unit and unit not in TABLES[table]):
            known = ", ".join(f"{name}:{unit}" for name in TABLES for unit in TABLES[name])
            raise argparse.ArgumentTypeError(f"'{name}' is none of {known}")
        pairs += [(table, unit) for unit in ([unit] if unit else TABLES[table])]
    return pairs


def main() -> int:
    """Run what is missing; returns 1 where a fit failed."""
    from dpsynth.models.registry import AUTO, NAMES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=tables_named)
    parser.add_argument("--models", default=",".join(NAMES), help=f"also {AUTO}, {CEILING}")
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--quick", action="store_true", help="cardio alone, one seed")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    tables = prepared(chosen.work)
    if tables is None:
        print(UNSET)
        return 0
    if chosen.one:
        measure = one_floor if chosen.one[1] == "floor" else one_fit
        measured = measure(tuple(chosen.one), tables, chosen.found.parent)
        chosen.found.write_text(json.dumps(measured))
        return 0

    pairs = chosen.tables or tables_named("cardio" if chosen.quick else ",".join(TABLES))
    models = chosen.models.split(",")
    known = (*NAMES, AUTO, CEILING)
    if unknown := set(models) - {*known}:
        parser.error(f"'{min(unknown)}' is none of {', '.join(known)}")
    fits = wanted(
        pairs,
        models,
        [float(epsilon) for epsilon in chosen.epsilons.split(",")],
        seeds=chosen.seeds or (1 if chosen.quick else 3),
        delta=chosen.delta,
    )
    results = chosen.work / "results.jsonl"
    done = {key_of(line) for line in read_lines(results)}
    floors: list[Key] = [
        (table, "floor", BOOTSTRAP)
        for table in dict.fromkeys(table for table, _ in pairs)
        if (table, "floor", BOOTSTRAP) not in done
        or not (tables / table / "reference.json").exists()
    ]
    due = [key for key in fits if key not in done]
    print(f"{len(due)} of {len(fits)} fits to do, results in {results}", flush=True)

    def command(key: Key, measured: Path) -> list[str]:
        child = [sys.executable, str(Path(__file__).resolve()), "--work", str(chosen.work)]
        return [*child, "--one", json.dumps(key), "--found", str(measured)]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fits end too
    failed = run_all(floors, results, command, jobs=chosen.jobs)
    failed += run_all(due, results, command, jobs=chosen.jobs)
    if failed:
        print(f"{len(failed)} failed; run again to repeat those alone", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
