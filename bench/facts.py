"""Score the facts of synthetic tables: what never happens, what is strong, with averages beside.

usage: facts.py [--tables cardio,wards] [--epsilons 1,3,10] [--fits 3] [--model auto] [--jobs N]
                [--code FOLDER --label NAME] [--against NAME] [--show] [--work DIR]

Fits each table, samples as many rows as it has, and scores the same rows by scorer/facts.py, by
scorer/facts_wards.py where the truth is known, and by scorer/evaluate.py (TVD2, TSTR, C2ST). Real
held-out rows are scored beside. All but `wards` need DPSYNTH_DATA (see bench/README.md).
`diabetes130` and `brfss2015` are cut to 20 000 rows; `wards` are simulated stays of 5 000
patients, and `wards-declared` the same with rules and a formula.

`--code` fits with dpsynth from another checkout, under the name of `--label`. `--against` adds, for
each figure, the share of the distance from the mean of that name's fits to the held-out rows that
is closed. Resumable: a fit whose line is in DIR/facts.jsonl is not repeated; `--show` fits none.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
import yaml
from convert import convert
from quality import UNSET, below_one_in, commit, prepared, score_beside
from quality_jobs import run_all
from quality_results import Key, key_of, read_lines

HERE = Path(__file__).parent
CUT = 20_000  # rows
PATIENTS = 5_000  # of `wards`
TABLES = ("cardio", "diabetes130", "brfss2015", "wards", "wards-declared")
TARGETS = {
    "cardio": ("cardio",),
    "diabetes130": ("diabetesMed",),
    "brfss2015": ("Diabetes_binary", "Stroke"),
    "wards": ("died",),
}
BEST_ZERO = ("never", "never_rows", "beyond", "levels", "wrong_signs", "impossible", "formula")
BEST_ZERO += ("missing", "coefs")
BEST_ONE = ("seldom", "often", "strongest", "slope", "coefs_slope", "xor")
AVERAGES = ("tvd2", "tstr_hgb", "c2st_auc")
SHOWN = ("never", "never_rows", "seldom", "often", "strongest", "beyond", "levels", "slope")
SHOWN += ("wrong_signs", *AVERAGES, "fit_cpu_s", "impossible", "formula", "missing")
SHOWN += ("coefs_slope", "xor")
HELD_OUT = "held-out"


def made(work: Path, tables: Sequence[str]) -> Path | None:
    """Make the tables once; returns their folder, None where real ones are wanted and not there."""
    out = work / "facts-tables"
    simulated = all(name.startswith("wards") for name in tables)
    real = None if simulated else prepared(work)
    if real is None and not simulated:
        return None
    for name in tables:
        if not (out / name / "table.schema.json").exists():
            part = out / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            if name.startswith("wards"):
                _simulated(part, declared=name.endswith("declared"))
            else:
                assert real is not None
                _cut(real / name, part, None if name == "cardio" else CUT)
            shutil.rmtree(out / name, ignore_errors=True)
            part.rename(out / name)
    return out


def _cut(source: Path, part: Path, rows: int | None) -> None:
    """Take random rows of a prepared table; each is a unit."""
    train = pd.read_csv(source / "train.csv", dtype=str, keep_default_na=False)
    train = train if rows is None else train.sample(rows, random_state=1)
    train.to_csv(part / "train.csv", index=False)
    for name in ("test.csv", "schema.json"):
        shutil.copy(source / name, part)
    schema = convert(part / "schema.json", rows_as_units=True).to_dict()
    for size in ("population", "rows"):
        schema["dpsynth"][size]["value"] = len(train)
    (part / "table.schema.json").write_text(json.dumps(schema))


def _simulated(part: Path, *, declared: bool) -> None:
    """Simulate hospital stays, and describe them for the scorer."""
    command = [sys.executable, "sim_wards.py", str(part.resolve()), str(PATIENTS), "1"]
    command += ["--declared"] if declared else []
    subprocess.run(command, cwd=HERE / "scorer", check=True, stdout=subprocess.DEVNULL)
    schema = yaml.safe_load((part / "wards.schema.yaml").read_text())
    columns = {}
    for field in schema["fields"][2:]:
        facts = field.get("constraints", {})
        own: dict[str, Any] = {"nullable": not facts.get("required", False)}
        if field["type"] == "string":
            own |= {"kind": "categorical", "categories": facts["enum"]}
        elif field["type"] == "date":
            continue  # the scorer knows none
        else:
            kind = "int" if field["type"] == "integer" else "float"
            own |= {"kind": "numeric", "dtype": kind}
            own |= {"min": facts["minimum"], "max": facts["maximum"]}
        columns[field["name"]] = own
    described = {"name": "wards", "target": "died", "unit": "patient", "columns": columns}
    (part / "schema.json").write_text(json.dumps(described))
    (part / "table.schema.json").write_text(json.dumps(schema))


def scorer(program: str, *arguments: str) -> dict[str, Any]:
    """Run a program of the scorer on one table; returns what it prints of it."""
    done = subprocess.run(
        [sys.executable, program, *arguments],
        cwd=HERE / "scorer",
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def scores(table: str, folder: Path, synthetic: Path, scratch: Path) -> dict[str, Any]:
    """Score one table of rows by all programs."""
    train, rows = str((folder / "train.csv").resolve()), str(synthetic.resolve())
    known = [name for name in TARGETS if table.startswith(name)][0]
    targets = [part for target in TARGETS[known] for part in ("--target", target)]
    drop = ["--drop", "patient,stay,patient_nbr"]
    found = scorer("facts.py", "--real", train, "--synth", rows, *drop, *targets)
    effects = found.pop("effects", {}).values()
    for name in ("slope", "wrong_signs"):
        own = [one[name] for one in effects if one[name] is not None]
        found |= {name: mean(own)} if own else {}
    if known == "wards":
        found |= scorer("facts_wards.py", str((folder / "truth.json").resolve()), rows)
    averages = score_beside(folder, synthetic, scratch)
    found |= {name: averages[name] for name in AVERAGES}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def one_fit(key: Key, tables: Path, code: Path | None, scratch: Path) -> dict[str, Any]:
    """Fit by the command line of a checkout, sample, score."""
    _, table, model, epsilon, _ = key
    folder = tables / table
    train, synthetic, run = folder / "train.csv", scratch / "synthetic.csv", scratch / "run"
    rows = sum(1 for _ in train.open()) - 1
    schema = json.loads((folder / "table.schema.json").read_text())
    delta = below_one_in(schema["dpsynth"]["population"]["value"], 1e-6)
    environment = dict(os.environ)
    if code is not None:
        environment["PYTHONPATH"] = str(code.resolve())

    def dpsynth(*arguments: object) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "dpsynth", *map(str, arguments)]
        subprocess.run(command, cwd=scratch, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime"))

    fit = ("fit", (folder / "table.schema.json").resolve(), train.resolve(), "--dataset", table)
    budget = ("--epsilon", epsilon, "--delta", delta, "--model", model, "--no-ledger")
    seconds = {"fit_cpu_s": dpsynth(*fit, *budget, "-o", run)}
    seconds["sample_cpu_s"] = dpsynth("sample", run, "--rows", rows, "-o", synthetic)
    rounded = {name: round(value, 2) for name, value in seconds.items()}
    return {"commit": commit()} | rounded | scores(table, folder, synthetic, scratch)


def one_floor(key: Key, tables: Path, scratch: Path) -> dict[str, Any]:
    """Score real held-out rows; what a model of real rows reaches stands for TSTR.

    They are told from themselves here, so there is no C2ST.
    """
    folder = tables / key[1]
    held_out = scratch / "synthetic.csv"
    shutil.copy(folder / "test.csv", held_out)
    found = scores(key[1], folder, held_out, scratch)
    real = json.loads((scratch / "reference.json").read_text())
    os.replace(scratch / "reference.json", folder / "reference.json")
    del found["c2st_auc"]
    return {"commit": commit()} | found | {"tstr_hgb": real["trtr_hgb"]}


def closed(name: str, before: float, now: float, held_out: float) -> float | None:
    """Return the share of the distance to held-out rows that is closed.

    A figure that was at least as good as theirs has no such distance.

    Example:
        >>> closed("never", 0.10, 0.04, 0.0)
        0.6
    """
    best = 0.0 if name in BEST_ZERO else 1.0
    old, new, theirs = (abs(value - best) for value in (before, now, held_out))
    return round((old - new) / (old - theirs), 3) if old - theirs > 1e-3 else None


def print_report(lines: Iterable[Mapping[str, Any]], label: str, against: str | None) -> None:
    """Print the means of fits, and the shares that are closed."""
    groups: dict[tuple[str, str, float | str], list[Mapping[str, Any]]] = {}
    for line in lines:
        name, table, model, epsilon, _ = key_of(dict(line))
        groups.setdefault((name, table, epsilon if model != HELD_OUT else HELD_OUT), []).append(
            line
        )
    means = {
        key: {name: mean(one[name] for one in found) for name in SHOWN if name in found[0]}
        for key, found in groups.items()
    }
    print("| code | table | epsilon | fits | " + " | ".join(SHOWN) + " |")
    print("|---" * (len(SHOWN) + 4) + "|")
    for key in sorted(means, key=lambda key: (key[1], str(key[2]), key[0])):
        own = [f"{means[key][name]:.4g}" if name in means[key] else "" for name in SHOWN]
        print("| " + " | ".join([*map(str, key), str(len(groups[key])), *own]) + " |")
    if against is None:
        return
    figures = [name for name in SHOWN if name in (*BEST_ZERO, *BEST_ONE)]
    print("\n| closed: table | epsilon | " + " | ".join(figures) + " |")
    print("|---" * (len(figures) + 2) + "|")
    for name, table, epsilon in sorted(means, key=str):
        old, theirs = means.get((against, table, epsilon)), means.get((HELD_OUT, table, HELD_OUT))
        if name != label or old is None or theirs is None:
            continue
        now = means[name, table, epsilon]
        shares = [
            closed(one, old[one], now[one], theirs[one]) if one in now and one in old else None
            for one in figures
        ]
        cells = ["" if share is None else f"{share:.2f}" for share in shares]
        print(f"| {table} | {epsilon:g} | " + " | ".join(cells) + " |")


def main() -> int:
    """Run what is missing and print a report; returns 1 where a fit failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--code", type=Path, help="a checkout to fit with")
    parser.add_argument("--label", default="now", help="name of what is fitted")
    parser.add_argument("--against", help="name of the fits to compare with")
    parser.add_argument("--show", action="store_true", help="fit none")
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    names = chosen.tables.split(",")
    if unknown := {*names} - {*TABLES}:
        parser.error(f"'{min(unknown)}' is none of {', '.join(TABLES)}")
    tables = made(chosen.work, names)
    if tables is None:
        print(UNSET)
        return 0
    if chosen.one:
        key, scratch = tuple(chosen.one), chosen.found.parent
        floor = key[0] == HELD_OUT
        found = (
            one_floor(key, tables, scratch) if floor else one_fit(key, tables, chosen.code, scratch)
        )
        chosen.found.write_text(json.dumps(found))
        return 0
    results = chosen.work / "facts.jsonl"
    floors: list[Key] = [(HELD_OUT, table, HELD_OUT, 0.0, 0) for table in names]
    epsilons = [float(text) for text in chosen.epsilons.split(",")]
    fits: list[Key] = [
        (chosen.label, table, chosen.model, epsilon, fit)
        for fit, table, epsilon in product(range(chosen.fits), names, epsilons)
    ]
    known = {key_of(line) for line in read_lines(results)}
    due = [] if chosen.show else [key for key in (*floors, *fits) if key not in known]
    work = str(chosen.work.resolve())
    code = [] if chosen.code is None else ["--code", str(chosen.code.resolve())]

    def command(key: Key, found: Path) -> list[str]:
        own = [sys.executable, __file__, "--work", work, "--tables", key[1], *code]
        return [*own, "--one", json.dumps(key), "--found", str(found)]

    failed = run_all(due, results, command, jobs=chosen.jobs)
    print_report(read_lines(results), chosen.label, chosen.against)
    if failed:
        print(f"{len(failed)} failed; run again to repeat those alone", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
