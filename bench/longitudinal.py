"""Evaluate histories drawn by the generator of histories, of two real cohorts, and write the pages.

usage: longitudinal.py TABLE [--epsilon 3] [--patients N] [--seed 0] [--output FOLDER] [--public]

TABLE is nafld or diabetes130; DPSYNTH_DATA names the folder of the real tables. ``--patients``
repeats or cuts train and holdout to N patients together, for timings. ``internal.html`` and
``histories.json`` hold statistics of real patients: never release them.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from dpsynth.encoding import Histories, HistoryCodec, read_histories
from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.longitudinal.cohort import chosen
from dpsynth.eval.report import longitudinal_page
from dpsynth.models.histories import CohortGenerator, domain_of
from dpsynth.privacy import OsEntropy, PrivacyBudget, PrivacyPlan
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked

TEST = 5  # one patient in so many is held out
FLAT = Path(__file__).parents[1] / "data_schemas" / "diabetes130.schema.yaml"
CONSTANT = ("race", "gender")


def diabetes130() -> LinkedSchema:
    """Declare the patients of the flat schema, and their stays in order."""
    flat = yaml.safe_load(FLAT.read_text(encoding="utf-8"))
    fields = {field["name"]: field for field in flat["fields"]}
    order, unit = (
        next(f for f in fields.values() if (f.get("dpsynth") or {}).get("role") == role)
        for role in ("order", "unit")
    )
    key = {"name": unit["name"], "type": "string"}
    people = [fields[name] for name in CONSTANT]
    stays = [f for name, f in fields.items() if name not in (*CONSTANT, unit["name"])]
    stays = [{"name": f["name"], "type": f["type"]} if f is order else f for f in stays]
    reference = {"resource": "patients", "fields": [unit["name"]]}
    return LinkedSchema.from_dict(
        {
            "name": "diabetes130",
            "title": "Diabetes 130-US hospitals: patients and their stays",
            "resources": [
                {
                    "name": "patients",
                    "schema": {
                        "primaryKey": unit["name"],
                        "missingValues": flat["missingValues"],
                        "fields": [key, *people],
                    },
                    "dpsynth": {"repeated": True},
                },
                {
                    "name": "stays",
                    "schema": {
                        "foreignKeys": [{"fields": [unit["name"]], "reference": reference}],
                        "missingValues": flat["missingValues"],
                        "fields": [key, *stays],
                    },
                    "dpsynth": {
                        "order": order["name"],
                        "max_rows": {"value": 40, "basis": "a stated choice"},
                    },
                },
            ],
            "dpsynth": {
                "version": 1,
                "patients": "patients",
                "population": {"value": 71518, "basis": "Strack et al. 2014"},
            },
        }
    )


def tables_of(name: str, folder: str) -> tuple[LinkedSchema, dict[str, pd.DataFrame]]:
    """Return a schema and the tables as text."""

    def text(file: str) -> pd.DataFrame:
        return pd.read_csv(Path(folder) / file, dtype=str, keep_default_na=False)

    if name == "diabetes130":
        table = text("diabetes130.csv.gz")
        return diabetes130(), {"patients": table, "stays": table}
    files = {"patients": "nafld_patients", "labs": "nafld_labs", "events": "nafld_events"}
    return LinkedSchema.load("nafld"), {k: text(f"{v}.csv.gz") for k, v in files.items()}


def cohorts(name: str, folder: str) -> tuple[HistoryCodec, Histories, Histories]:
    """Read the tables, and deal patients into train and holdout."""
    schema, tables = tables_of(name, folder)
    codec = HistoryCodec(schema)
    whole = read_histories(open_linked(tables, schema), codec, OsEntropy())
    dealt = np.random.default_rng(0).permutation(len(whole)) % TEST == 0
    return codec, chosen(whole, np.flatnonzero(~dealt)), chosen(whole, np.flatnonzero(dealt))


def main() -> None:
    """Fit, draw, evaluate, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("nafld", "diabetes130"))
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--patients", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of draws and of the evaluation")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    codec, train, holdout = cohorts(options.table, os.environ["DPSYNTH_DATA"])
    generator = CohortGenerator(domain_of(codec))
    budget = PrivacyBudget(options.epsilon, 1e-5)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    start = time.monotonic()
    generator.fit(train, plan, plan.opened(OsEntropy()))
    print(f"fit {time.monotonic() - start:.0f} s", flush=True)
    rng = np.random.default_rng(options.seed)
    if options.patients:
        size = options.patients // TEST
        holdout = chosen(holdout, rng.integers(len(holdout), size=size))
        train = chosen(train, rng.integers(len(train), size=options.patients - size))
    drawn = generator.sample(len(train), rng)
    start, stages = time.monotonic(), []

    def progress(stage: str, part: float) -> None:
        stages.append((stage, time.monotonic()))

    found = evaluate_histories(codec, drawn, train, holdout, seed=options.seed, progress=progress)
    stages.append(("", time.monotonic()))
    for (stage, began), (_, ended) in zip(stages, stages[1:], strict=False):
        print(f"  {ended - began:6.1f} s  {stage}")
    print(f"evaluated {len(train)} patients in {time.monotonic() - start:.0f} s")
    for one in found.measures:
        if ":" not in one.key:
            print(f"{one.key:18} {_figures(one.estimate)}")
    print("\n".join(found.summary))
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "histories.json").write_text(found.to_json(), encoding="utf-8")
        for audience in ("internal", "public"):
            page = longitudinal_page(found, audience=audience)
            (options.output / f"{audience}.html").write_text(page, encoding="utf-8")


def _figures(estimate: Any) -> str:
    """Return a figure with its interval, that of held-out patients, and that of a bootstrap."""
    numbers = (estimate.value, estimate.low, estimate.high, estimate.reference, estimate.chance)
    texts = ["   -  " if number is None else f"{number:.4f}" for number in numbers]
    return f"{texts[0]} ({texts[1]}, {texts[2]})  holdout {texts[3]}  bootstrap {texts[4]}"


if __name__ == "__main__":
    main()
