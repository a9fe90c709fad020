"""What it costs to leave rows in DuckDB: checks, statistics and fits, beside reading the rows.

usage: warehouse.py [--rows 1000000]

Rows of the demo's simulated cohort, without the column of diagnoses, whose codes are rolled up, are
written into a DuckDB file. Each task runs both ways, in a
process of its own, and takes seconds of the clock and of the processor, all threads of DuckDB
included. Most of a fit is the mixture, which is the same both ways.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {
    "statistics": [
        {"name": "groups", "count": "patients", "by": ["sex", {"age": [40, 65]}]},
        {"name": "pressure", "mean": "sbp", "by": ["sex"]},
        {"name": "ages", "quantiles": "age"},
    ],
}
BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-7, "dataset": "bench", "without_ledger": True}
TASKS = ("check", "statistics", "independent", "mixture")


def schema_document() -> dict[str, Any]:
    """Return the demo's schema without what SQL does not code."""
    from dpsynth.schema import Schema

    document = Schema.load("demo").to_dict()
    document["fields"] = [one for one in document["fields"] if one["name"] != "diagnosis"]
    own = document["dpsynth"]
    own["rules"] = [rule for rule in own["rules"] if "diagnosis" not in str(rule)]
    return document


def work(task: str, address: str, *, staying: bool) -> None:
    """Carry a task out."""
    from dpsynth import inspection
    from dpsynth.schema import Schema
    from dpsynth.stats import StatisticsRequest, statistics
    from dpsynth.synthesis import Execution, fit

    schema = Schema.from_dict(schema_document())
    if task == "check":
        inspection.check(address, schema, in_warehouse=staying)
    elif task == "statistics":
        statistics(
            address,
            StatisticsRequest.from_dict(REQUEST | {"schema": schema_document()}),
            in_warehouse=staying,
            **BUDGET,
        )
    else:
        there = Execution(in_warehouse=staying)
        fit(address, schema, model=task, execution=there, **BUDGET)


def main() -> None:
    """Print a line of JSON for each task and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        begun = time.monotonic()
        work(chosen.one[0], chosen.one[1], staying=chosen.one[2] == "warehouse")
        seconds = round(time.monotonic() - begun, 1)
        spent = round(sum(os.times()[:2]), 1)
        print(json.dumps({"seconds": seconds, "processor": spent}))
        return
    import duckdb

    from dpsynth.tables import simulate

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.duckdb"
        frame = simulate(chosen.rows // 2, seed=1).iloc[: chosen.rows]
        with duckdb.connect(str(path)) as connection:
            connection.register("frame", frame)
            connection.execute(
                "CREATE TABLE stays AS SELECT * EXCLUDE (diagnosis, visit_date), "
                "CAST(visit_date AS DATE) AS visit_date FROM frame"
            )
        for task in TASKS:
            for way in ("rows", "warehouse"):
                line = [sys.executable, __file__, "--one", task, f"{path}#stays", way]
                done = subprocess.run(line, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(done.stderr[-400:], file=sys.stderr)
                    continue
                found = json.loads(done.stdout.splitlines()[-1])
                head = {"task": task, "way": way, "rows": len(frame)}
                print(json.dumps(head | found), flush=True)


if __name__ == "__main__":
    main()
