"""Forecasts of `dpsynth plan --forecast` beside what a fit then gives, on parts of real tables.

usage: forecast.py [--tables cardio,brfss2015,diabetes130] [--units 5000,30000] [--epsilons 1,3,10]
                   [--model mixture] [--work DIR] [--show]

Needs DPSYNTH_DATA (see bench/README.md). Each table is dealt into two parts by unit. The earlier
release is a run of `mixture` at epsilon 3 on one part. The outcome is a fit for real to the other
part, which the forecast does not see. Both are measured by the same distances. Resumable: one line
a setting in DIR/results.jsonl. With --show, prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.encoding.codec import Codec
from dpsynth.forecasts.errors import Errors
from dpsynth.forecasts.forecast import Setting, simulate_fit
from dpsynth.forecasts.rows import ForecastRows, assumed, earlier
from dpsynth.models.base import silent
from dpsynth.schema.column import Declared
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.preparation import prepare
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables.table import open_table
from dpsynth.tables.unit_keys import Keys

DELTA = 1e-6
EARLIER_EPSILON = 3.0
REPEATS = 2


def parts(table: str, units: int) -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Return the schema of a part, and the rows of two parts with so many units each."""
    schema = Schema.load(table)
    path = Path(os.environ["DPSYNTH_DATA"]) / f"{table}.csv.gz"
    frame = pd.concat(list(open_table(path, schema).chunks()), ignore_index=True)
    cells = Codec(schema).bounded(frame)
    for rule in schema.rules:
        lawful = np.asarray(rule.holds(cells))
        frame, cells = frame[lawful], cells[lawful]
    of_row = np.unique(Keys(schema).units(frame), return_inverse=True)[1]
    seats = np.random.default_rng(units).permutation(int(of_row.max()) + 1)[of_row]
    if seats.max() + 1 < 2 * units:
        raise SystemExit(f"{table} has fewer than {2 * units} units")
    first, second = frame[seats < units], frame[(seats >= units) & (seats < 2 * units)]
    rows = Declared(round(len(first), 2 - len(str(len(first)))), "the benchmark")
    schema = replace(schema, population=Declared(units, "the benchmark"), rows=rows)
    return schema, first, second


def outcome(schema: Schema, frame: pd.DataFrame, epsilon: float, model: str) -> Errors:
    """Fit for real, draw a table, and compare it with the rows."""
    run = fitting.fit(
        frame,
        schema,
        epsilon=epsilon,
        delta=DELTA,
        dataset="benchmark",
        model=model,
        without_ledger=True,
    )
    codec = Codec(schema)
    drawn = Sampler.of(run).codes(schema.rows.value, seed=1)
    return Errors.between(codec.encode(frame), drawn, codec)


def figures(fits: list[Errors]) -> dict[str, Any]:
    """Return the means of some fits, and what survived in the first."""
    return {
        "columns": float(np.mean([errors.mean_of_columns for errors in fits])),
        "pairs": float(np.mean([errors.mean_of_pairs for errors in fits])),
        "each": np.mean([errors.columns for errors in fits], axis=0).tolist(),
        "smallest": [fits[0].subgroups.smallest(ways) for ways in (1, 2, 3)],
        "by_size": fits[0].subgroups.by_size(),
    }


def measured(table: str, units: int, epsilon: float, model: str, work: Path) -> dict[str, Any]:
    """Forecast in both ways, then fit for real."""
    schema, frame, before = parts(table, units)
    folder = work / f"{table}-{units}"
    if not folder.exists():
        fitting.fit(
            before,
            schema,
            epsilon=EARLIER_EPSILON,
            delta=DELTA,
            dataset="benchmark",
            model="mixture",
            without_ledger=True,
            output=folder,
        )
    chosen = prepare(schema, epsilon=epsilon, delta=DELTA, model=model).model
    repeats = REPEATS if chosen == "mixture" else 1
    setting = Setting(schema, epsilon, DELTA, chosen)
    start = time.perf_counter()
    like = earlier(folder, schema, seed=0)
    found = {"like": figures([simulate_fit(setting, like, k, silent) for k in range(repeats)])}
    seconds = time.perf_counter() - start
    source: ForecastRows
    for source in assumed(schema, Codec(schema)):
        model = chosen if source.name == "typical" else "mixture"
        found[source.name] = figures(
            [simulate_fit(replace(setting, model=model), source, 0, silent)]
        )
    start = time.perf_counter()
    found["outcome"] = figures([outcome(schema, frame, epsilon, chosen) for _ in range(repeats)])
    spent = {"forecast_s": round(seconds, 1), "fit_s": round(time.perf_counter() - start, 1)}
    return {"chosen": chosen, **spent, **found}


def show(lines: list[dict[str, Any]]) -> None:
    """Print one line a setting: outcome, forecast and their ratio."""
    print(
        "| table | units | epsilon | model | columns: outcome | like | public | range | pairs: "
        "outcome | like | public | range | columns apart | smallest, 2 columns: outcome | like |"
    )
    print("|---" * 15 + "|")
    off: dict[str, list[float]] = {}
    for line in lines:
        cells = []
        for key in ("columns", "pairs"):
            real = line["outcome"][key]
            ways = [line[name][key] for name in ("narrow", "typical", "even")]
            cells.append(f"{real:.4f}")
            for name in ("like", "typical"):
                ratio = line[name][key] / real
                off.setdefault(f"{name}, {key}", []).append(ratio)
                cells.append(f"{line[name][key]:.4f} ({ratio:.2f})")
            cells.append(f"{min(ways):.4f} to {max(ways):.4f}")
        both = zip(line["like"]["each"], line["outcome"]["each"], strict=True)
        each = [a / max(b, 1e-9) for a, b in both]
        cells.append(f"{median(max(r, 1 / max(r, 1e-9)) for r in each):.2f}")
        cells += [str(line[name]["smallest"][1]) for name in ("outcome", "like")]
        place = f"{line['table']} | {line['units']} | {line['epsilon']:g} | {line['chosen']}"
        print(f"| {place} | {' | '.join(cells)} |")
    for name in ("like", "typical"):
        for figure in ("survive", "off", "inside"):
            both = [
                (real[figure], size[figure])
                for line in lines
                for real in line["outcome"]["by_size"]
                for size in line[name]["by_size"]
                if size["rows"] == real["rows"] <= 1000 and real[figure] and size[figure]
            ]
            apart = median(max(a / b, b / a) for a, b in both)
            most = max(abs(a - b) for a, b in both)
            print(f"{name}, {figure} by size: off by {apart:.2f} at the median, {most:.2f} at most")
    for name, ratios in off.items():
        within = sum(0.75 <= ratio <= 1.25 for ratio in ratios)
        print(
            f"{name}: within 25 % in {within} of {len(ratios)}, "
            f"{min(ratios):.2f} to {max(ratios):.2f}"
        )


def main() -> None:
    """Do what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default="cardio,brfss2015,diabetes130")
    parser.add_argument("--units", default="5000,30000")
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--model", default="mixture", help="also auto")
    parser.add_argument("--work", type=Path, default=Path("build/forecast"))
    parser.add_argument("--show", action="store_true", help="print what is there")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.work / "results.jsonl"
    lines = (
        [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    )
    if options.show:
        show(sorted(lines, key=lambda line: [line[key] for key in ("table", "units", "epsilon")]))
        return
    if "DPSYNTH_DATA" not in os.environ:
        print("skipped: DPSYNTH_DATA is not set; name the folder of the real tables there")
        return
    done = {(line["table"], line["units"], line["epsilon"], line["model"]) for line in lines}
    for epsilon in map(float, options.epsilons.split(",")):
        for units in map(int, options.units.split(",")):
            for table in options.tables.split(","):
                if (table, units, epsilon, options.model) in done:
                    continue
                line = {"table": table, "units": units, "epsilon": epsilon, "model": options.model}
                line |= measured(table, units, epsilon, options.model, options.work)
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                show([line])


if __name__ == "__main__":
    main()
