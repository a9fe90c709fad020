"""What `dpsynth plan` says that a table carries, beside what a fit then gives.

usage: capacity.py [--parts brfss2015:400:8,cardio:1000:8,...] [--epsilon 3] [--work DIR] [--show]
       capacity.py --forecasts    beside `plan --forecast`, on shipped schemas; needs no data
       capacity.py --simulate 40  beside fits of random schemas; needs no data

A part is TABLE:PATIENTS:COLUMNS. Needs DPSYNTH_DATA for parts (see bench/README.md): patients and
columns of a real table are drawn, and fitted by `auto` up to 1 000 patients, by `mixture` beyond.
Each column is held against the gates of an evaluation: its distance, and that of its pairs, beyond
the distance by chance. The numbers in `dpsynth/synthesis/capacity.py` come from fits like those of
--simulate alone.
Resumable: one line a fit in DIR/KIND.jsonl. With --show, prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.codec import Codec
from dpsynth.eval.core.paired import Bins
from dpsynth.forecasts.errors import Errors, keys_of
from dpsynth.forecasts.forecast import Setting, simulate_fit
from dpsynth.forecasts.rows import assumed
from dpsynth.models.base import silent
from dpsynth.schema.column import Declared
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.capacity import COLUMN_GATE, PAIR_GATE, capacity
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables.table import open_table
from dpsynth.tables.unit_keys import Keys

DELTA = 1e-6
PARTS = (
    "brfss2015:400:8,brfss2015:1000:15,brfss2015:5000:15,brfss2015:20000:22,"
    "cardio:400:8,cardio:1000:8,cardio:5000:11,cardio:20000:11,"
    "diabetes130:400:30,diabetes130:1000:15,diabetes130:5000:30,diabetes130:20000:30"
)
FORECASTS = (
    "brfss2015:1000:15,brfss2015:5000:22,cardio:1000:8,cardio:5000:11,"
    "diabetes130:5000:15,demo:3000:15"
)
SMALL = 1_000  # patients up to which `auto` is fitted
SEED = 7  # of the columns and patients of a part

Floats = npt.NDArray[np.float64]


def part_schema(table: str, units: int, columns: int) -> Schema:
    """Return the schema of so many patients, and of columns that are drawn."""
    whole = Schema.load(table)
    names = [column.name for column in whole.modelled]
    rng = np.random.default_rng([SEED, units, columns])
    chosen = set(rng.permutation(names)[:columns].tolist())
    document = whole.to_dict()
    document["fields"] = [
        field for field in document["fields"] if field["name"] in chosen or _is_key(field)
    ]
    rules = document["dpsynth"].pop("rules", [])
    kept = [
        rule for rule, own in zip(rules, whole.rules, strict=False) if chosen >= set(own.columns)
    ]
    if kept:
        document["dpsynth"]["rules"] = kept
    schema = Schema.from_dict(document)
    rows = max(units, round(whole.rows.value * units / whole.population.value, -2))
    size, count = Declared(units, "the benchmark"), Declared(int(rows), "the benchmark")
    return replace(schema, population=size, rows=count)


def _is_key(field: dict[str, Any]) -> bool:
    role = field.get("dpsynth", {}).get("role", ())
    return bool({"unit", "order", "drop"} & set([role] if isinstance(role, str) else role))


def part_rows(table: str, schema: Schema) -> pd.DataFrame:
    """Return the rows of so many patients of a real table."""
    path = Path(os.environ["DPSYNTH_DATA"]) / f"{table}.csv.gz"
    frame = pd.concat(list(open_table(path, schema).chunks()), ignore_index=True)
    of_row = np.unique(Keys(schema).units(frame), return_inverse=True)[1]
    seats = np.random.default_rng(SEED).permutation(int(of_row.max()) + 1)[of_row]
    return frame[seats < schema.population.value]


def chances(source: npt.NDArray[np.uint16], codec: Codec, pairs: Any) -> tuple[Floats, Floats]:
    """Return the distance of columns and of pairs that as many rows have by chance."""
    bins = Bins.of(source, codec)
    cut, sizes = bins.cut(source), bins.sizes

    def by_chance(*together: int) -> float:
        keys = keys_of([cut[j] for j in together], [sizes[j] for j in together])
        shares = np.bincount(keys) / len(keys)
        return float(np.sqrt(2 * shares * (1 - shares) / np.pi / len(keys)).sum() / 2)

    columns = np.array([by_chance(j) for j in range(len(sizes))])
    return columns, np.array([by_chance(i, j) for i, j in pairs])


def within_gates(errors: Errors, chance: tuple[Floats, Floats]) -> list[bool]:
    """Say which columns are within the gates of an evaluation, alone and with the others."""
    beyond = errors.of_pairs - chance[1]
    found = []
    for j, error in enumerate(errors.columns - chance[0]):
        own = [value for value, pair in zip(beyond, errors.pairs, strict=True) if j in pair]
        found.append(bool(error <= COLUMN_GATE and np.mean(own or [0.0]) <= PAIR_GATE))
    return found


def of_part(part: str, epsilon: float) -> Setting:
    """Return what would be fitted to a part of a table."""
    table, units, columns = part.split(":")
    model = "auto" if int(units) <= SMALL else "mixture"
    return Setting(part_schema(table, int(units), int(columns)), epsilon, DELTA, model)


def of_forecast(part: str, epsilon: float) -> Setting:
    """Return what a forecast would be of."""
    return replace(of_part(part, epsilon), model="mixture")


def of_seed(part: str, _: float) -> Setting:
    """Return a random schema and a random budget."""
    rng = np.random.default_rng(int(part))
    schema = random_schema(rng)
    return Setting(schema, float(rng.choice([1.0, 3.0, 3.0, 10.0])), DELTA, "mixture")


def came(errors: list[Errors], within: list[bool]) -> dict[str, Any]:
    """Return what was measured, for a line."""
    return {
        "columns": float(np.mean([one.mean_of_columns for one in errors])),
        "pairs": float(np.mean([one.mean_of_pairs for one in errors])),
        "within": within,
    }


def measured(part: str, setting: Setting) -> dict[str, Any]:
    """Fit a part of a real table."""
    schema = setting.schema
    frame = part_rows(part.partition(":")[0], schema)
    run = fitting.fit(
        frame,
        schema,
        epsilon=setting.epsilon,
        delta=DELTA,
        dataset="benchmark",
        model=setting.model,
        without_ledger=True,
    )
    codec = Codec(schema)
    source = codec.encode(frame)
    errors = Errors.between(source, Sampler.of(run).codes(len(source), seed=1), codec)
    return came([errors], within_gates(errors, chances(source, codec, errors.pairs)))


def forecast(_: str, setting: Setting) -> dict[str, Any]:
    """Make the first figures of a forecast: two fits to rows of the typical assumption."""
    source = assumed(setting.schema, Codec(setting.schema))[0]
    return came([simulate_fit(setting, source, seed, silent) for seed in range(2)], [])


def simulated(part: str, setting: Setting) -> dict[str, Any]:
    """Fit a random schema to rows of the typical assumption."""
    source = assumed(setting.schema, Codec(setting.schema))[0]
    return came([simulate_fit(setting, source, int(part), silent)], [])


def random_schema(rng: np.random.Generator) -> Schema:
    """Return a schema of nobody: 6 to 30 columns of codes and numbers, 300 to 20 000 patients."""
    basis = {"dpsynth": {"bounds_basis": "simulated"}}
    fields: list[dict[str, Any]] = []
    for place in range(int(rng.choice([6, 8, 10, 15, 20, 30]))):
        levels = int(rng.choice([2, 2, int(rng.integers(3, 13)), int(rng.integers(13, 40)), 0, 0]))
        limits: dict[str, Any] = {"required": True} if rng.random() < 0.5 else {}
        if levels:
            limits["enum"] = [f"v{level}" for level in range(levels)]
        else:
            limits |= {"minimum": 0, "maximum": int(rng.choice([12, 30, 100, 300]))}
        kind = "string" if levels else "integer"
        fields.append({"name": f"c{place}", "type": kind, "constraints": limits} | basis)
    size = {"value": int(float(f"{np.exp(rng.uniform(5.7, 9.9)):.2g}")), "basis": "simulated"}
    facts = {"version": 1, "source": "simulated", "population": size, "rows": size}
    return Schema.from_dict({"name": "simulated", "fields": fields, "dpsynth": facts})


def show(lines: list[dict[str, Any]], setting_of: Callable[[str, float], Setting]) -> None:
    """Print one line a part, and what holds over all of them."""
    print(
        "| part | patients | columns | epsilon | model | one column: came | foreseen "
        "| a pair: came | foreseen | called carried | right |"
    )
    print("|---" * 11 + "|")
    carried = right = near = 0
    for line in lines:
        setting = setting_of(line["part"], line["epsilon"])
        prepared = setting.prepared()
        found = capacity(prepared)
        cells = [line["part"].partition(":")[0], f"{found.population:,}", f"{len(found.columns)}"]
        cells += [f"{setting.epsilon:g}", prepared.model]
        for key, value in (("columns", found.error), ("pairs", found.pairs)):
            ratio = value / line[key]
            near += abs(ratio - 1) <= 0.25
            cells += [f"{line[key]:.4f}", f"{value:.4f} ({ratio:.2f})"]
        called = [column.carried for column in found.columns]
        kept = sum(a and b for a, b in zip(called, line["within"], strict=False))
        if line["within"]:
            carried, right = carried + sum(called), right + kept
        cells += [f"{sum(called)} of {len(called)}", str(kept) if line["within"] else ""]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"within 25 %: {near} of {2 * len(lines)}")
    if carried:
        print(f"called carried and within the gates: {right} of {carried}")


def main() -> None:
    """Do what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts")
    parser.add_argument("--forecasts", action="store_true")
    parser.add_argument("--simulate", type=int, metavar="NUMBER")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--work", type=Path, default=Path("build/capacity"))
    parser.add_argument("--show", action="store_true", help="print what is there")
    options = parser.parse_args()
    job, setting_of = measured, of_part
    parts = (options.parts or PARTS).split(",")
    if options.forecasts:
        job, setting_of, parts = forecast, of_forecast, (options.parts or FORECASTS).split(",")
    if options.simulate:
        job, setting_of = simulated, of_seed
        parts = [str(number) for number in range(options.simulate)]
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.work / f"{job.__name__}.jsonl"
    lines = (
        [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    )
    if options.show:
        show(lines, setting_of)
        return
    if job is measured and "DPSYNTH_DATA" not in os.environ:
        print("skipped: DPSYNTH_DATA is not set; name the folder of the real tables there")
        return
    done = {(line["part"], line["epsilon"]) for line in lines}
    for part in parts:
        if (part, options.epsilon) not in done:
            line = {"part": part, "epsilon": options.epsilon} | job(
                part, setting_of(part, options.epsilon)
            )
            with results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            show([line], setting_of)


if __name__ == "__main__":
    main()
