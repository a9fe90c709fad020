"""All attacks on real tables: epsilon 1, epsilon 10, and a model that learned by heart.

Needs the tables of docs/benchmarks.md (DPSYNTH_DATA names their folder). For each table: one
person in five is set aside, `autoregressive` is fitted to the others at each epsilon, a table of as
many rows is drawn, and the whole audit is made, canaries included. The last generator has no noise
and knows a part of the rows by heart (`dpsynth.models.auditing.leaky`); its source are those rows
alone.

Prints the findings of each audit with its run time, and one table of all at the end.

    python bench/audits.py [--tables cardio,diabetes130] [--epsilons 1,10] [--seed 1]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpsynth.assessment.attack_audit import Real, Trained, audit
from dpsynth.assessment.evaluation import Candidate
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.cohort import read_cohort
from dpsynth.ledger.ledger import Ledger
from dpsynth.models.auditing.leaky import Overfitted
from dpsynth.models.base import Domain
from dpsynth.privacy.entropy import OsEntropy
from dpsynth.privacy.plan import NOMINAL_BUDGET, NonPrivatePlan
from dpsynth.schema.schema import Schema
from dpsynth.synthesis.fitting import fit
from dpsynth.synthesis.preparation import prepare
from dpsynth.synthesis.sample_log import record_sample
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables.splitting import split_file
from dpsynth.tables.table import open_table, write_table

FILES = {"cardio": "cardio.csv.gz", "diabetes130": "diabetes130.csv.gz"}
DELTA = 1e-6
LEARNED = 4_000  # units that the overfitted model knows
ROWS = 50_000  # of each synthetic table


def main() -> None:
    """Audit all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default=",".join(FILES))
    parser.add_argument("--epsilons", default="1,10", help="of the private fits")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = Path(os.environ.get("DPSYNTH_DATA", "../shared/data"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    summary: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.tables.split(","):
            wanted = [float(epsilon) for epsilon in options.epsilons.split(",")]
            summary |= audits_of(
                name, data / FILES[name], Path(folder) / name, options.seed, wanted
            )
    print_table(summary)


def audits_of(
    name: str, source: Path, folder: Path, seed: int, epsilons: list[float]
) -> dict[str, dict[str, Any]]:
    """Audit the generators of one table."""
    schema = Schema.load(name)
    train, holdout = split_file(source, schema, folder / "split", holdout=0.2, seed=seed)
    made, ledger = {}, Ledger.create(folder / "ledger.sqlite")
    for epsilon in epsilons:
        run = folder / f"run-{epsilon:g}"
        fitted = fit(
            train,
            schema,
            epsilon=epsilon,
            delta=DELTA,
            dataset=f"{name}-{epsilon:g}",
            model="autoregressive",
            ledger=ledger,
            output=run,
        )
        table = folder / f"{epsilon:g}.parquet"
        write_table(Sampler.of(fitted).frames(ROWS, seed=seed), table, schema)
        record_sample(run, table, size=ROWS, seed=seed)
        real = Real(train, Candidate.of_run(run, table), holdout)
        title = f"{name}, epsilon {epsilon:g}"
        made[title] = audited(title, schema, real, Trained(run), seed)
    title = f"{name}, by heart"
    made[title] = audited(title, schema, by_heart(schema, train, holdout, seed), None, seed)
    return made


def by_heart(schema: Schema, train: Path, holdout: Path, seed: int) -> Real:
    """Let a network learn some units by heart."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.concat(open_table(train, schema).chunks(), ignore_index=True)
    others = pd.concat(open_table(holdout, schema).chunks(), ignore_index=True)
    key = schema.unit.column

    def some(table: pd.DataFrame) -> pd.DataFrame:
        if key is None:
            return table.iloc[rng.choice(len(table), LEARNED, replace=False)]
        units = rng.choice(table[key].unique(), LEARNED, replace=False)
        return table[table[key].isin(units)]

    frame, others = (some(table).reset_index(drop=True) for table in (frame, others))
    codec = Codec(schema)
    cohort = read_cohort(open_table(frame, schema), codec, schema, OsEntropy())
    plan = prepare(
        schema, epsilon=NOMINAL_BUDGET.epsilon, delta=NOMINAL_BUDGET.delta, model="autoregressive"
    ).plan
    generator = Overfitted(Domain.of(schema, codec)).fit(cohort, NonPrivatePlan(plan), OsEntropy())
    table = codec.decode(generator.sample(ROWS, rng), rng)
    return Real(frame, Candidate("by heart", table), others)


def audited(
    title: str, schema: Schema, real: Real, trained: Trained | None, seed: int
) -> dict[str, Any]:
    """Make one audit and print its findings."""
    started = time.perf_counter()
    document = audit(schema, real=real, trained=trained, seed=seed)
    document["wall"] = time.perf_counter() - started
    print(f"\n## {title}: {document['verdict']}, {document['wall']:.0f} s {document['seconds']}")
    for one in document["findings"]:
        print(f"{'FOUND' if one['found'] else '     '} {one['key']:<24} {one['sentence']}")
    for one in document["powers"]:
        if one["key"].startswith("training"):
            print(f"      {one['key']:<24} {one['sentence']}")
    for one in document["controls"]:
        if not one["passed"]:
            print(f"CONTROL FAILED {one['key']} {one['attack']}: {one['sentence']}")
    print(flush=True)
    return document


def print_table(summary: dict[str, dict[str, Any]]) -> None:
    """Print the leading figures of all audits side by side."""
    keys = [
        *("closer", "auc:distance", "auc:density", "auc:queries", "auc:ensemble", "tpr:ensemble"),
        *("epsilon:distance", "linkability", "singling_out_many", "training_epsilon_black"),
        "training_epsilon_white",
    ]
    print("| measure | " + " | ".join(summary) + " |")
    print("|---|" + "---|" * len(summary))
    for key in keys:
        cells = []
        for document in summary.values():
            one = document["measures"].get(key)
            cells.append("" if one is None else f"{one['value']:.3f}")
        print(f"| {key} | " + " | ".join(cells) + " |")
    walls = [f"{document['wall']:.0f}" for document in summary.values()]
    print("| seconds | " + " | ".join(walls) + " |")


if __name__ == "__main__":
    main()
