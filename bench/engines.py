"""Seconds to read and code a private table on each engine, side by side in one run.

    python bench/engines.py                              # a million rows
    python bench/engines.py --rows 10000000 --turns 1
    python bench/engines.py --engines "local 1" "dask 2"
    python bench/engines.py --shards                     # read into shards, and count all pairs

Engines: local pools of 1 and 2 processes, Dask clusters of 1 and 2 worker processes on this
machine, and Spark with 2 tasks at once, if pyspark and Java are installed. Clusters run before the
clock starts, as an office's do; a local pool starts its processes each time, as `dpsynth fit` does.
Each engine reads the file in turn, several times, and the codes are compared; with ``--shards``,
the exact counts of all pairs of columns in parts of 16. Processor seconds are those of this process
and of all that it has started. Bytes are what the loopback interface carried: nothing else should
use it meanwhile.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
from reading_workers import MEMORY, write_table

from dpsynth._util.engines import Answers, DaskEngine, Engine, local_engine
from dpsynth._util.workers import Work
from dpsynth.encoding import Codec, Coding, Lookup, coded_rows, read_shards
from dpsynth.privacy import ChosenHistograms, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

Ints = npt.NDArray[Any]
PARTS = 16  # of each column, whose pairs are counted
Opening = Callable[[], AbstractContextManager[Engine]]


def processor() -> float:
    """Seconds of this process and of all processes below it, alive or not."""
    whole = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in whole)
    for child in psutil.Process().children(recursive=True):
        try:
            seconds += sum(child.cpu_times()[:4])  # its own, and of those that it waited for
        except psutil.Error:
            continue
    return seconds


def carried() -> int:
    """Bytes that the loopback interface has carried."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


@contextmanager
def dask(workers: int) -> Iterator[Engine]:
    """A cluster of Dask on this machine, each worker a process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        memory_limit=0,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        engine = DaskEngine(cluster.scheduler_address)
        engine.check()
        yield engine


class SparkEngine:
    """Pieces as rows of a table of numbers, done by `mapInPandas`; for this comparison only."""

    distant = True

    def __init__(self, session: Any, at_once: int) -> None:
        """Take a session that runs."""
        self.session, self.at_once = session, at_once

    def results(self, work: Work[Any], count: int) -> Answers[Any]:
        """Make a partition of each piece, and take the answers as Spark gives them back."""
        import pickle

        def answers(frames: Any) -> Any:
            import pandas as pd

            for frame in frames:
                for number in frame["id"]:
                    packed = pickle.dumps(work(int(number)), protocol=5)
                    yield pd.DataFrame({"id": [number], "answer": [packed]})

        numbers = self.session.range(0, count, 1, count)
        done = numbers.mapInPandas(answers, schema="id long, answer binary")
        for row in done.collect():  # all at once: an iterator would do partitions one by one
            yield int(row["id"]), pickle.loads(bytes(row["answer"]))


@contextmanager
def spark(tasks: int) -> Iterator[Engine]:
    """A session of Spark on this machine, with so many tasks at once."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(f"local[{tasks}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.maxResultSize", "4g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield SparkEngine(session, tasks)
    finally:
        session.stop()


ENGINES: dict[str, Opening] = {
    "local 1": lambda: nullcontext(local_engine(1)),
    "local 2": lambda: nullcontext(local_engine(2)),
    "dask 1": partial(dask, 1),
    "dask 2": partial(dask, 2),
    "spark 2": partial(spark, 2),
}


def counts(path: Path, schema: Schema, engine: Engine, folder: Path) -> Ints:
    """Read a table into shards, and count all pairs of columns; the same for all engines."""
    codec, entropy = Codec(schema), SeededEntropy(1)
    source, most = open_table(path, schema), schema.unit.max_rows
    parts = [np.arange(size) * PARTS // size for size in codec.sizes]
    cells = [Lookup(place, cut.astype(np.uint16)) for place, cut in enumerate(parts)]
    pairs = list(combinations(range(len(cells)), 2))
    event = ChosenHistograms("pairs", len(pairs), most, 1e9)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        rows = read_shards(source, codec, schema, entropy, Path(place), engine=engine)
        return np.concatenate(rows.recoded(cells).counts(pairs, [PARTS] * len(cells), event))


def codes(path: Path, schema: Schema, engine: Engine) -> Ints:
    """Read and code a table into memory."""
    coding = Coding(schema, Codec(schema))
    return coded_rows(open_table(path, schema), coding, engine=engine).codes


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--shards", action="store_true", help="choose and count rows in shards too")
    chosen = parser.parse_args()
    schema = Schema.load("demo")
    figures: dict[str, list[tuple[float, float, int]]] = {name: [] for name in chosen.engines}
    expected = None
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "table.csv"
        written = write_table(path, chosen.rows, "csv")
        print(f"{written:,} rows of {len(schema.modelled)} columns, {path.stat().st_size:,} bytes")
        for turn in range(chosen.turns):
            for name in chosen.engines:
                opened = time.perf_counter()
                with ENGINES[name]() as engine:
                    started = time.perf_counter() - opened
                    busy, moved, begun = processor(), carried(), time.perf_counter()
                    if chosen.shards:
                        found = counts(path, schema, engine, Path(folder))
                    else:
                        found = codes(path, schema, engine)
                    wall = time.perf_counter() - begun
                    figures[name].append((wall, processor() - busy, carried() - moved))
                if expected is None:
                    expected = found
                elif not np.array_equal(expected, found):
                    raise SystemExit(f"{name} found others")
                del found
                print(
                    f"turn {turn + 1}, {name}: {wall:.1f} s, started in {started:.1f} s", flush=True
                )
    print("| engine | seconds | processor seconds | bytes on the network | times the local pool |")
    print("|---|---|---|---|---|")
    for name, turns in figures.items():
        wall, busy, moved = (min(one[place] for one in turns) for place in range(3))
        peer = figures.get(f"local {name.split()[1]}", turns)
        least = [min(one[place] for one in peer) for place in range(2)]
        ratios = f"{wall / least[0]:.2f} in seconds, {busy / least[1]:.2f} in processor seconds"
        print(f"| {name} | {wall:.1f} | {busy:.1f} | {moved:,} | {ratios} |")


if __name__ == "__main__":
    main()
