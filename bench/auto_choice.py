"""When does which generator do best? What the rule of ``auto`` rests on.

usage: auto_choice.py [--units 3000,6000,12000,24000,48000] [--tables cardio,brfss2015,diabetes130]
                      [--epsilons 1,3,10] [--seeds 1] [--work DIR] [--show]

Needs DPSYNTH_DATA (see bench/README.md). Fits the mixture, a network that learns from it, and one
that is trained by DP-SGD to a random part of each table, of each size, a row as the unit, and
scores what they sample against the whole training split: so all are held against what a larger
study would have seen. Resumable: one line a fit in DIR/results.jsonl. With --show, prints the table
of what is there, the best of each line (TSTR minus TVD3), and what the present rule takes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from quality import TABLES, UNSET, below_one_in, prepared, score
from table_parts import DELTA, draw, part_of, part_schema

from dpsynth.encoding.codec import Codec
from dpsynth.models.base import Domain
from dpsynth.models.presets import choose
from dpsynth.models.registry import NETWORK
from dpsynth.privacy.plan import PrivacyBudget
from dpsynth.synthesis import fitting

MODELS = ("mixture", "distilled", NETWORK)
MEASURES = ("tvd1", "tvd2", "tvd3", "tstr_hgb", "c2st_auc")
ROWS = 20_000  # synthetic rows of each fit


def one_fit(folder: Path, units: int, epsilon: float, model: str, seed: int) -> dict[str, Any]:
    """Fit a part of the table, and score the sample against all of it."""
    with part_of(folder, units, seed) as (scratch, schema):
        start = time.perf_counter()
        run = fitting.fit(
            scratch / "train.csv",
            schema,
            epsilon=epsilon,
            delta=below_one_in(units, DELTA),
            dataset="benchmark",
            model=model,
            without_ledger=True,
        )
        seconds = round(time.perf_counter() - start, 1)
        drawn = draw(run, schema, scratch / "synthetic.csv", ROWS)
        figures = score(folder, drawn, folder / "auto-reference.json")
    return {"seconds": seconds} | {name: figures[name] for name in MEASURES if name in figures}


def chosen_by_rule(folder: Path, units: int, epsilon: float) -> str:
    """Return what ``auto`` chooses for such a part."""
    schema = part_schema(folder, units)
    domain = Domain.of(schema, Codec(schema))
    return choose(domain, PrivacyBudget(epsilon, below_one_in(units, DELTA)))[0]


def show(results: Path, tables: Path) -> None:
    """Print one line a table, size and epsilon: each measure of all, and what the rule says."""
    values: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = defaultdict(dict)
    for line in map(json.loads, results.read_text().splitlines()):
        place = (line["table"], line["units"], line["epsilon"])
        values[place].setdefault(line["model"], []).append(line)
    lines, lost = 0, 0.0
    print("| table | units | epsilon | " + " | ".join(MEASURES) + " | best | auto |")
    print("|---" * (len(MEASURES) + 5) + "|")
    for (table, units, epsilon), found in sorted(values.items()):
        if set(found) != set(MODELS):
            continue
        means = [
            {name: mean(line[name] for line in found[model] if name in line) for name in MEASURES}
            for model in MODELS
        ]
        worth = [one["tstr_hgb"] - one["tvd3"] for one in means]
        rule = chosen_by_rule(tables / table, units, epsilon)
        lines, lost = lines + 1, lost + max(worth) - worth[MODELS.index(rule)]
        cells = " | ".join(" / ".join(f"{one[name]:.4f}" for one in means) for name in MEASURES)
        best = MODELS[worth.index(max(worth))]
        print(f"| {table} | {units} | {epsilon:g} | {cells} | {best} | {rule} |")
    print(f"\n{' / '.join(MODELS)}; the rule loses {lost:.3f} against the best in {lines} lines")


def main() -> None:
    """Do what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--units", default="3000,6000,12000,24000,48000")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/auto"))
    parser.add_argument("--show", action="store_true", help="print what is there")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    results, tables = options.work / "results.jsonl", prepared(options.work)
    if tables is None:
        print(UNSET)
        return
    if options.show:
        show(results, tables)
        return
    lines = results.read_text().splitlines() if results.exists() else []
    keys = ("table", "units", "epsilon", "model", "seed")
    done = {tuple(line[key] for key in keys) for line in map(json.loads, lines)}
    for seed in range(options.seeds):
        for units in map(int, options.units.split(",")):
            for table in options.tables.split(","):
                for epsilon in map(float, options.epsilons.split(",")):
                    for model in MODELS:
                        key = (table, units, epsilon, model, seed)
                        if key in done:
                            continue
                        scores = one_fit(tables / table, units, epsilon, model, seed)
                        line = dict(zip(keys, key, strict=True)) | scores
                        with results.open("a") as file:
                            file.write(json.dumps(line) + "\n")
                        print(line, flush=True)


if __name__ == "__main__":
    main()
