"""What a fit costs as rows grow: processor seconds, seconds, and memory of all its processes.

    python bench/scaling.py                                   # 10^5 and 10^6 rows, 22 columns
    python bench/scaling.py --rows 10000000 --columns 50 --workers 2
    python bench/scaling.py --in-memory                       # the same, without shards
    python bench/scaling.py --model autoregressive            # a network, by DP-SGD

A made-up table of patients with some three rows each is written to Parquet piece by piece, and
fitted by a process of its own, with coded rows in shards. Prints a line of JSON for
each number of rows, and in the end the slope of the cost per row (reading and histograms) on
log-log axes: 0 is flat. Starting and fitting the mixture depend on the rows' number but little.
Memory is what the process and its workers take together, every 0.2 seconds, in two ways: `pss`
counts pages of files that are mapped into memory, which the system takes back when it needs them;
`anonymous` does not.
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

import numpy as np

EPSILON, DELTA = 8.0, 1e-9  # so many units that pairs are counted
PIECE = 200_000
STAGES = (
    "start",
    "reading",
    "histograms",
    "mixture",
    "warming up",
    "training",
)  # the last two: networks


def patients_of(rows: int) -> int:
    """Return how many patients there are, about: a round number."""
    return int(float(f"{rows / 3:.0e}"))


def schema_of(rows: int, columns: int) -> dict[str, Any]:
    """Half numbers, of 200, 1000 or 4000 values, and half categories."""
    fields: list[dict[str, Any]] = [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}
    ]
    for number in range(columns):
        name = f"c{number:02}"
        if number % 2:
            listed = [f"k{code}" for code in range(3 + number % 9)]
            own = {"bounds_basis": "made up"}
            constraints: dict[str, Any] = {"enum": listed}
            fields.append({"name": name, "type": "string", "constraints": constraints})
        else:
            own = {"bounds_basis": "made up"}
            constraints = {"minimum": 0, "maximum": (199, 999, 3999)[number % 3]}
            fields.append({"name": name, "type": "integer", "constraints": constraints})
        fields[-1]["dpsynth"] = own
    number_of = {"basis": "made up"}
    table = {
        "version": 1,
        "population": number_of | {"value": patients_of(rows)},
        "rows": number_of | {"value": rows},
        "max_rows": number_of | {"value": 4},
    }
    return {"fields": fields, "missingValues": [""], "dpsynth": table}


def write(path: Path, rows: int, columns: int) -> None:
    """Write a table piece by piece; the rows of a patient are apart."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(1), None
    for start in range(0, rows, PIECE):
        count = min(PIECE, rows - start)
        kind = rng.normal(size=count)
        cells: dict[str, Any] = {
            "patient": pa.array(rng.integers(0, patients_of(rows), count)).cast(pa.string())
        }
        for number in range(columns):
            mixed = kind * (number % 5) / 4 + rng.normal(size=count)
            if number % 2:
                size = 3 + number % 9
                codes = np.clip((mixed + 2.5) / 5 * size, 0, size - 1).astype(np.int32)
                listed = pa.array([f"k{code}" for code in range(size)])
                cells[f"c{number:02}"] = pa.DictionaryArray.from_arrays(codes, listed).cast(
                    "string"
                )
            else:
                top = (199, 999, 3999)[number % 3]
                cells[f"c{number:02}"] = np.clip((mixed + 4) / 8 * top, 0, top).astype(np.int64)
        table = pa.table(cells)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def one(path: str, shards: str | None, workers: int, model: str) -> None:
    """Fit once, in this process, and print what each stage took."""
    from dpsynth import Execution, fit

    found: dict[str, list[float]] = {}

    def progress(stage: str, done: float) -> None:
        if done == 0.0 or stage not in found:
            found.setdefault(stage, [time.perf_counter(), sum(os.times()[:4])])

    schema = Path(path).with_suffix(".json")
    begin = time.perf_counter(), sum(os.times()[:4])
    fit(
        path,
        schema,
        epsilon=EPSILON,
        delta=DELTA,
        dataset="made up",
        model=model,
        without_ledger=True,
        execution=Execution(workers=workers, shards=shards),
        progress=progress,
    )
    end = time.perf_counter(), sum(os.times()[:4])
    stages = [stage for stage in STAGES[1:] if stage in found]
    marks = [begin, *(found[stage] for stage in stages), end]
    result = {"seconds": end[0] - begin[0], "processor": end[1] - begin[1]}
    for stage, first, last in zip(["start", *stages], marks[:-1], marks[1:], strict=True):
        result[f"{stage}_seconds"] = last[0] - first[0]
        result[f"{stage}_processor"] = last[1] - first[1]
    print(json.dumps(result))


def memory(pid: int) -> tuple[int, int]:
    """Return what a process and all that it started take, in bytes: PSS, and its anonymous part."""
    pids, whole, anonymous = [pid], 0, 0
    for own in pids:
        try:
            for task in Path(f"/proc/{own}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
            for line in Path(f"/proc/{own}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    whole += int(line.split()[1]) * 1024
                if line.startswith("Pss_Anon:"):
                    anonymous += int(line.split()[1]) * 1024
        except OSError:
            continue
    return whole, anonymous


def measure(
    path: Path, shards: Path | None, workers: int, model: str, timeout: float
) -> dict[str, float]:
    """Fit in a process of its own and watch its memory."""
    given = [str(path), "" if shards is None else str(shards), str(workers), model]
    process = subprocess.Popen(
        [sys.executable, __file__, "--one", *given],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    peak, peak_anonymous, start = 0, 0, time.perf_counter()
    disk = 0
    while process.poll() is None:
        whole, anonymous = memory(process.pid)
        peak, peak_anonymous = max(peak, whole), max(peak_anonymous, anonymous)
        if shards is not None and shards.is_dir():
            disk = max(disk, sum(f.lstat().st_size for f in shards.glob("*/*") if f.exists()))
        if time.perf_counter() - start > timeout:
            process.kill()
        time.sleep(0.2)
    assert process.stdout is not None
    result: dict[str, float] = json.loads(process.stdout.read())
    return result | {"pss": peak, "anonymous": peak_anonymous, "disk": disk}


def main() -> None:
    """Print a line for each number of rows, and the slope."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=22)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--model", default="mixture")
    parser.add_argument("--folder", type=Path, help="for the tables and the shards")
    parser.add_argument("--timeout", type=float, default=3600.0)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(chosen.one[0], chosen.one[1] or None, int(chosen.one[2]), chosen.one[3])
        return
    costs = []
    for rows in chosen.rows:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            path = Path(folder) / "table.parquet"
            path.with_suffix(".json").write_text(json.dumps(schema_of(rows, chosen.columns)))
            write(path, rows, chosen.columns)
            shards = None if chosen.in_memory else Path(folder) / "shards"
            found = measure(path, shards, chosen.workers, chosen.model, chosen.timeout)
            per_row = (found["reading_processor"] + found["histograms_processor"]) / rows
            costs.append(per_row)
            line = {"rows": rows, "columns": chosen.columns, "workers": chosen.workers}
            line |= {
                "model": chosen.model,
                "file": path.stat().st_size,
                "in_shards": not chosen.in_memory,
            }
            line |= {"microseconds_a_row": per_row * 1e6} | found
            print(
                json.dumps(
                    {
                        key: round(value, 2) if isinstance(value, float) else value
                        for key, value in line.items()
                    }
                ),
                flush=True,
            )
    if len(costs) > 1:
        slope = np.polyfit(np.log(chosen.rows), np.log(costs), 1)[0]
        print(json.dumps({"slope_of_cost_per_row": round(float(slope), 3)}))


if __name__ == "__main__":
    main()
