"""Print seconds and peak memory of exact nearest neighbours: 100 000 against 100 000 rows.

Twenty numeric columns and thirty categorical ones of 2 to 20 categories, each fifth one required,
the others with missing cells.

usage: OMP_NUM_THREADS=2 distance_speed.py [--rows 100000] [--neighbours 2]
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np
import pandas as pd

from dpsynth.eval.core.tables import Tables
from dpsynth.eval.distances import Metric, Product, nearest
from dpsynth.schema.schema import Schema

BASIS = "made up for a benchmark"
NUMERIC, CATEGORICAL, FACTORS = 20, 30, 4
CHECKED = 20  # queries that are searched a second time, by all distances in float64


def schema() -> Schema:
    """Declare numeric columns, then categorical ones of ever more categories."""
    fields = []
    for place in range(NUMERIC + CATEGORICAL):
        number = place < NUMERIC
        levels = [f"c{code}" for code in range(2 + (place - NUMERIC) % 19)]
        bounds = {"minimum": -40, "maximum": 40} if number else {"enum": levels}
        facts = {"bounds_basis": BASIS} | ({"step": 0.1} if number else {})
        constraints = bounds | {"required": place % 5 == 0}
        kind = "number" if number else "string"
        fields.append(
            {"name": f"x{place}", "type": kind, "constraints": constraints, "dpsynth": facts}
        )
    size = {"value": 100_000, "basis": BASIS}
    facts = {"version": 1, "population": size, "rows": size}
    return Schema.from_dict({"name": "distances", "fields": fields, "dpsynth": facts})


def table(facts: Schema, rows: int, seed: int, *, factors: int = FACTORS) -> pd.DataFrame:
    """Draw rows from a few common factors; 2 % of cells are missing where they may be."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rows, factors))
    weights = np.random.default_rng(0).normal(size=(len(facts.modelled), factors))
    columns: dict[str, object] = {}
    for column, weight in zip(facts.modelled, weights, strict=True):
        values = common @ weight + rng.normal(size=rows)
        if column.is_categorical:
            cuts = np.linspace(-2.5, 2.5, len(column.levels) + 1)[1:-1]
            cells = np.array(column.levels, dtype=object)[np.searchsorted(cuts, values)]
        else:
            cells = np.round(values * 3, 1)
        if column.nullable:
            cells[rng.random(rows) < 0.02] = None if column.is_categorical else np.nan
        columns[column.name] = cells
    return pd.DataFrame(columns)


def main() -> None:
    """Search, check some queries, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--neighbours", type=int, default=2)
    chosen = parser.parse_args()
    facts = schema()
    tables = Tables.read(facts, table(facts, chosen.rows, 1), table(facts, chosen.rows, 2))
    metric = Metric.of(tables.codec)
    queries, reference = metric.points(tables.synthetic), metric.points(tables.source)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    load, start, own = os.getloadavg()[0], time.perf_counter(), time.process_time()
    neighbours = nearest(metric, queries, reference, chosen.neighbours)
    seconds, own = time.perf_counter() - start, time.process_time() - own
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = np.arange(chosen.rows)
    for query in np.random.default_rng(0).choice(chosen.rows, CHECKED):
        every = metric.squared(queries, np.full(chosen.rows, query), reference, rows)
        if (np.sort(every)[: chosen.neighbours] != neighbours.squared[query]).any():
            raise SystemExit(f"query {query} has other neighbours")
    product = Product.of(metric, queries, reference)
    print("| rows | columns of the product | error | seconds | of both cores | GiB | before |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {chosen.rows} x {chosen.rows} | {product.width} | {product.error:.1e} | {seconds:.1f} "
        f"| {own:.1f} | {peak:.2f} | {before:.2f} |"
    )
    print(
        f"\nload of the machine before: {load:.2f}; threads: "
        f"{os.environ.get('OMP_NUM_THREADS', 'all')}; {CHECKED} queries checked"
    )


if __name__ == "__main__":
    main()
