"""Seconds to read and code a private table, by one process and by several, side by side.

    python bench/reading_workers.py                       # a million rows, 1 and 2 processes
    python bench/reading_workers.py --rows 10000000 --workers 1 2 4 8

Tables are of the demo's columns; the file lies in memory if there is room. Each number of
processes reads it in turn, several times, and the codes are compared.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from dpsynth._util.engines import local_engine
from dpsynth.encoding import Codec, CodedRows, Coding, coded_rows
from dpsynth.schema import Schema
from dpsynth.tables import open_table, simulate

MEMORY = Path("/dev/shm")


def read(path: Path, schema: Schema, workers: int) -> tuple[CodedRows, float, float]:
    """Read once; return the rows, seconds that passed, and processor seconds of all processes."""
    table, coding = open_table(path, schema), Coding(schema, Codec(schema))
    before, start = processor(), time.perf_counter()
    rows = coded_rows(table, coding, engine=local_engine(workers))
    return rows, time.perf_counter() - start, processor() - before


def processor() -> float:
    """Seconds of this process and of those that it has waited for."""
    whole = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in whole)


def write_table(path: Path, rows: int, kind: str) -> int:
    """Write a table of simulated rows; return how many there are."""
    written = 0
    while written < rows:  # the same patients again under other keys
        frame = simulate(min(100_000, rows // 2 + 1), seed=written)
        frame = frame.head(rows - written)
        frame["patient_id"] = f"{written}-" + frame["patient_id"].astype(str)
        if kind == "csv":
            frame.to_csv(path, mode="a", header=not written, index=False)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            if not written:
                layout = pa.Schema.from_pandas(frame, preserve_index=False)
                writer = pq.ParquetWriter(path, layout)
            writer.write_table(pa.Table.from_pandas(frame, layout, preserve_index=False))
        written += len(frame)
    if kind == "parquet":
        writer.close()
    return written


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--kind", choices=("csv", "parquet"), default="csv")
    chosen = parser.parse_args()
    schema = Schema.load("demo")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / f"table.{chosen.kind}"
        written = write_table(path, chosen.rows, chosen.kind)
        print(f"{written:,} rows of {len(schema.modelled)} columns, {path.stat().st_size:,} bytes")
        print("| processes | seconds | processor seconds | rows a second | times as fast |")
        print("|---|---|---|---|---|")
        seconds: dict[int, list[tuple[float, float]]] = {count: [] for count in chosen.workers}
        codes = None
        for _ in range(chosen.turns):
            for count in chosen.workers:
                rows, wall, busy = read(path, schema, count)
                seconds[count].append((wall, busy))
                if codes is None:
                    codes = rows.codes
                elif not np.array_equal(codes, rows.codes):
                    raise SystemExit(f"{count} processes read other codes")
        first = min(wall for wall, _ in seconds[chosen.workers[0]])
        for count in chosen.workers:
            wall, busy = min(seconds[count])
            rate = written / wall
            print(f"| {count} | {wall:.1f} | {busy:.1f} | {rate:,.0f} | {first / wall:.2f} |")


if __name__ == "__main__":
    main()
