"""How much of a synthetic table lies beyond the source's range, with and without fitted tails?

usage: tails.py [--tables stays,demo,cardio,diabetes130] [--epsilons 1,3] [--seeds 3]
    [--models mixture] [--ends kept,fitted] [--work DIR]

Fits each table twice a seed: with every cell as the projection leaves it, noise included (kept),
and as it is, with both ends of a column fitted (dpsynth/models/marginals/tails.py). Prints the
share of values beyond the source's lowest or highest populated cell (mean over numeric columns, and
the worst column), how far mean and 99th percentile are off (in standard deviations of the column;
mean over numeric columns), TVD of one and two columns on the source's deciles, and the AUROC of
gradient boosting that is trained on synthetic rows and tested on other real rows (TSTR). `stays`
and `demo` are simulated. The others are 3 000 rows of real tables, and need DPSYNTH_DATA (see
bench/README.md).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import numpy as np
import pandas as pd
from convert import convert
from quality import UNSET, prepared
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpsynth.encoding.codec import Codec
from dpsynth.eval.fidelity.summary import coarse, decile_edges, mean_tvd
from dpsynth.models.marginals import tails
from dpsynth.schema.column import Declared
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.tables.simulated import simulate

ROWS = 3_000  # of a real table
PATIENTS = 8_000
BASIS = "bounds of the simulated process"
Made = tuple[Schema, pd.DataFrame, pd.DataFrame]  # facts, source, other rows
FIGURES = ("outside", "worst", "mean", "p99", "tvd1", "tvd2", "tstr")
ENDS = {"kept": 10**9, "fitted": tails.MIN_CELLS}  # cells from which on they are fitted


def stays(seed: int, work: Path) -> Made:
    """Simulate an extract: stays of 4.4 days on average and 14 at most, bounded at 90; HbA1c."""
    tables = [_patients(PATIENTS, np.random.default_rng([seed, part])) for part in range(2)]
    size = {"value": PATIENTS, "basis": "simulated"}

    def number(name: str, kind: str, least: float, most: float, **own: float) -> dict[str, object]:
        limits = {"minimum": least, "maximum": most}
        return {"name": name, "type": kind, "constraints": limits, "dpsynth": dict(own)}

    def texts(name: str, *levels: str) -> dict[str, object]:
        limits = {"enum": list(levels), "required": True}
        return {"name": name, "type": "string", "constraints": limits, "dpsynth": {}}

    fields = [
        number("age", "integer", 0, 120),
        texts("sex", "f", "m"),
        texts("ward", *"abcdefgh"),
        number("stay", "integer", 0, 90),
        number("hba1c", "number", 3, 20, step=0.1),
        number("creatinine", "number", 0, 2000, step=1),
        number("systolic", "integer", 40, 300),
        texts("readmitted", "no", "yes"),
    ]
    for field in fields:
        field["dpsynth"] |= {"bounds_basis": BASIS}  # type: ignore[operator]
        if field["type"] == "string":
            field["dpsynth"] |= {"on_unknown": field["constraints"]["enum"][0]}  # type: ignore
    fields[-1]["dpsynth"] |= {"role": "target"}  # type: ignore[operator]
    table = {"version": 1, "population": size, "rows": size}
    document = {"name": "stays", "missingValues": [""], "fields": fields, "dpsynth": table}
    return Schema.from_dict(document), tables[0], tables[1]


def _patients(count: int, rng: np.random.Generator) -> pd.DataFrame:
    frail = rng.normal(size=count)
    age = np.clip(62 + 15 * rng.normal(size=count) + 4 * frail, 18, 97).astype(int)
    ward = rng.choice(8, count, p=[0.25, 0.2, 0.15, 0.13, 0.11, 0.08, 0.05, 0.03])
    stay = np.clip(1 + rng.poisson(3.4 * np.exp(0.25 * frail - 0.03)), 1, 14)
    hba1c = np.round(np.clip(4.6 + rng.gamma(2.2, 0.65, count) + 0.3 * frail, 4.2, 13.8), 1)
    creatinine = np.rint(
        np.clip(np.exp(4.4 + 0.35 * rng.normal(size=count) + 0.2 * frail), 30, 800)
    )
    systolic = np.rint(np.clip(rng.normal(122 + 0.2 * age, 17), 70, 220) / 2).astype(int) * 2
    odds = -1.4 + 0.7 * frail + 0.12 * (stay - 4.4) + 0.25 * (hba1c - 6)
    again = rng.random(count) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], count),
            "ward": np.array(list("abcdefgh"))[ward],
            "stay": stay,
            "hba1c": np.where(rng.random(count) < 0.44, np.nan, hba1c),
            "creatinine": creatinine,
            "systolic": systolic,
            "readmitted": np.where(again, "yes", "no"),
        }
    )


def demo(seed: int, work: Path) -> Made:
    """Simulate the demo cohort, several visits a patient."""
    path = Path(tails.__file__).parents[2] / "data_schemas" / "demo.schema.yaml"
    size = Declared(3_000, "simulated")
    schema = replace(Schema.load(path), population=size)
    return schema, simulate(3_000, seed=2 * seed), simulate(3_000, seed=2 * seed + 1)


def part(name: str) -> Callable[[int, Path], Made]:
    """Cut a real table to `ROWS` rows, each a unit."""

    def made(seed: int, work: Path) -> Made:
        tables = prepared(work)
        if tables is None:
            raise SystemExit(UNSET)
        folder, size = tables / name, Declared(ROWS, "the benchmark")
        schema = convert(folder / "schema.json", rows_as_units=True)
        train, test = (
            pd.read_csv(folder / f"{split}.csv", dtype=str, keep_default_na=False)
            for split in ("train", "test")
        )
        rows = np.random.default_rng([seed, ROWS]).permutation(len(train))[:ROWS]
        return replace(schema, population=size, rows=size), train.iloc[rows], test

    return made


TABLES = {
    "stays": stays,
    "demo": demo,
    "cardio": part("cardio"),
    "diabetes130": part("diabetes130"),
}


def scores(
    schema: Schema, real: pd.DataFrame, other: pd.DataFrame, drawn: pd.DataFrame
) -> dict[str, float]:
    """Return the figures of one synthetic table."""
    codec = Codec(schema)
    source, test, synthetic = (codec.encode(frame) for frame in (real, other, drawn))
    outside, means, lasts = [], [], []
    for j, cells in enumerate(codec.cells):
        if cells:
            values, own = (codes[codes[:, j] < cells, j] for codes in (synthetic, source))
            outside.append(((values < own.min()) | (values > own.max())).mean())
            means.append(abs(values.mean() - own.mean()) / own.std())
            lasts.append(abs(np.quantile(values, 0.99) - np.quantile(own, 0.99)) / own.std())
    edges = decile_edges(source, codec.cells)
    binned = [coarse(codes, edges) for codes in (source, synthetic)]
    found = {"outside": float(np.mean(outside)), "worst": float(max(outside))}
    found |= {"mean": float(np.mean(means)), "p99": float(np.mean(lasts))}
    found |= {f"tvd{ways}": mean_tvd(*binned, ways) for ways in (1, 2)}
    return found | {"tstr": _tstr(schema, codec, synthetic, test)}


def _tstr(schema: Schema, codec: Codec, train: np.ndarray, test: np.ndarray) -> float:
    [place] = [j for j, column in enumerate(schema.modelled) if "target" in column.roles]
    categories = [
        cells == 0 and size <= 255 for cells, size in zip(codec.cells, codec.sizes, strict=True)
    ]
    model = HistGradientBoostingClassifier(
        random_state=0,
        early_stopping=False,
        categorical_features=np.delete(categories, place),
    )
    inputs = [np.delete(codes, place, axis=1).astype(float) for codes in (train, test)]
    model.fit(inputs[0], train[:, place] == 1)
    return float(roc_auc_score(test[:, place] == 1, model.predict_proba(inputs[1])[:, 1]))


def main() -> None:
    """Fit, score, and print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default="mixture")
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ends", default=",".join(ENDS))
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    print("| table | model | epsilon | ends | " + " | ".join(FIGURES) + " |")
    print("|---" * (len(FIGURES) + 4) + "|", flush=True)
    for table in options.tables.split(","):
        for model in options.models.split(","):
            for epsilon in map(float, options.epsilons.split(",")):
                found = defaultdict(list)
                for seed in range(options.seeds):
                    schema, real, other = TABLES[table](seed, options.work)
                    for ends in options.ends.split(","):
                        with patch.object(tails, "MIN_CELLS", ENDS[ends]):
                            fitted = fitting.fit(
                                real,
                                schema,
                                epsilon=epsilon,
                                delta=1e-5,
                                dataset="tails",
                                model=model,
                                without_ledger=True,
                            )
                        found[ends].append(scores(schema, real, other, fitted.sample(len(real))))
                for ends, lines in found.items():
                    means = " | ".join(f"{mean(line[k] for line in lines):.4f}" for k in FIGURES)
                    print(f"| {table} | {model} | {epsilon:g} | {ends} | {means} |", flush=True)


if __name__ == "__main__":
    main()
