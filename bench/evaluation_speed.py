"""Print seconds and peak memory of an evaluation: 100 000 rows of 50 columns, three such tables.

usage: evaluation_speed.py [--rows 100000] [--columns 50] [--workers 2] [--audit]

With several workers, the parts have no times of their own. --audit attacks the same tables as well.
"""

from __future__ import annotations

import argparse
import resource
import time

import distance_speed
import pandas as pd

from dpsynth.eval.attacks.audit import attacked
from dpsynth.eval.core.tables import Tables
from dpsynth.eval.evaluation import evaluation
from dpsynth.eval.gates import gates
from dpsynth.eval.report.page import internal_page
from dpsynth.schema.schema import Schema

BASIS = "made up for a benchmark"


def schema_of(columns: int) -> Schema:
    """Declare half numeric and half categorical columns; a target, a group, a unit."""
    fields = [{"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}]
    for place in range(columns):
        facts: dict[str, object] = {"bounds_basis": BASIS}
        if place == 1:
            facts["role"] = "target"
        if place == 3:
            facts["role"] = "group"
        number = place % 2 == 0
        levels = ["no", "yes"] if place == 1 else [f"c{i}" for i in range(2 + place % 9)]
        constraints = {"minimum": -40, "maximum": 40} if number else {"enum": levels}
        fields.append(
            {
                "name": f"x{place}",
                "type": "number" if number else "string",
                "constraints": constraints,
                "dpsynth": facts | ({"step": 0.1} if number else {}),
            }
        )
    many = {"value": 50_000, "basis": BASIS}
    facts = {
        "version": 1,
        "max_rows": {"value": 4, "basis": BASIS},
        "population": many,
        "rows": many,
    }
    return Schema.from_dict({"name": "speed", "fields": fields, "dpsynth": facts})


def table(schema: Schema, rows: int, seed: int) -> pd.DataFrame:
    """Draw rows from a few common factors, two of a unit, with missing cells."""
    drawn = distance_speed.table(schema, rows, seed, factors=4)
    drawn.insert(0, "unit", [f"{seed}-{row // 2}" for row in range(rows)])
    return drawn


def main() -> None:
    """Time reading, each part, and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--audit", action="store_true")
    chosen = parser.parse_args()
    schema = schema_of(chosen.columns)
    source, drawn, held = (table(schema, chosen.rows, seed) for seed in (1, 2, 3))
    stages: list[tuple[str, float]] = []

    def stage(name: str, part: float = 0.0) -> None:
        if not stages or stages[-1][0] != name:
            stages.append((name, time.perf_counter()))

    stage("reading")
    tables = Tables.read(schema, source, drawn, held)
    document = evaluation(tables, limits=gates(), workers=chosen.workers, progress=stage)
    if chosen.audit:
        claim = (3.0, 1e-6)
        attacked(tables, claim=claim, seed=0, workers=chosen.workers, progress=stage)
    stage("page")
    page = internal_page(document | {"dpsynth": "", "run": None})
    stage("end")
    print("| stage | seconds |\n|---|---|")
    for (name, start), (_, end) in zip(stages[:-1], stages[1:], strict=True):
        print(f"| {name} | {end - start:.1f} |")
    print(f"| all | {stages[-1][1] - stages[0][1]:.1f} |")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in used)
    own, other = (one.ru_maxrss / 2**20 for one in used)
    print(f"\nprocessor {processor:.1f} s, page {len(page.encode()) / 1e6:.1f} MB")
    print(f"peak memory {own:.2f} GiB, of the largest worker {other:.2f} GiB")


if __name__ == "__main__":
    main()
