"""What `performance.py` measures: each part yields figures beside a limit or a peer."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
BUDGET = {"epsilon": 3.0, "delta": 1e-6, "dataset": "bench", "without_ledger": True}


@dataclass(frozen=True)
class Figure:
    """One figure beside what it is held against.

    Attributes:
        what: was measured.
        value: of it.
        unit: of both values.
        beside: what it is held against, in words: a stated limit, or a peer in this run.
        other: the value of that.
    """

    what: str
    value: float
    unit: str
    beside: str
    other: float

    @property
    def ratio(self) -> float:
        """The value over that of the other."""
        return self.value / self.other if self.other else float("nan")


Figures = Iterator[Figure]


def seconds(command: list[str], repeats: int) -> float:
    """Return the least wall time of a command."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def start(quick: bool) -> Figures:
    """Cold start of the command line, beside Python itself."""
    repeats = 3 if quick else 7
    python = seconds([sys.executable, "-c", "pass"], repeats)
    for words in (
        ["--help"],
        ["fit", "--help"],
        ["plan", "demo", "--epsilon", "1", "--delta", "1e-6"],
    ):
        taken = seconds([sys.executable, "-m", "dpsynth", *words], repeats)
        yield Figure(f"dpsynth {' '.join(words)}", taken, "s", "python -c pass", python)


def codec(quick: bool) -> Figures:
    """Cells to codes and back, beside the target of two million cells a second."""
    import codec_speed

    rows, repeats = (16_384, 2) if quick else (65_536, 5)
    for name, schema in (
        ("48 columns", codec_speed.hospital()),
        ("numbers", codec_speed.laboratory()),
    ):
        for way, rate in codec_speed.measure(schema, rows, repeats).items():
            yield Figure(
                f"{way}, {name}", rate / 1e6, "million cells/s", "target", codec_speed.TARGET / 1e6
            )


def step(quick: bool) -> Figures:
    """A private step and its peers, beside a plain one."""
    import dpsgd_speed
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = [(128, 512, 1)] if quick else [(128, 512, 1), (128, 512, 8), (128, 4096, 1)]
    for width, units, rows in settings:
        codes = torch.randint(0, dpsgd_speed.CODES, (units, rows, dpsgd_speed.COLUMNS))
        found = dpsgd_speed.measure(width, codes, 1.0 if quick else 4.0, time.process_time)
        plain = found["plain"] or float("nan")
        for name, taken in found.items():
            if taken is not None and name != "plain":
                what = f"{name}, {units} units of {rows} rows"
                yield Figure(what, taken * 1e3, "ms", "plain torch step", plain * 1e3)


def _fit(model: str, rows: int) -> tuple[float, float]:
    """Return processor seconds and MiB of a fit on the simulated demo cohort."""
    from dpsynth.synthesis.fitting import fit
    from dpsynth.tables import simulate

    table = simulate(rows // 2, seed=1)
    before = time.process_time()
    fit(table, "demo", model=model, **BUDGET)
    return (time.process_time() - before) * 1e5 / len(table), peak()


def fits(quick: bool) -> Figures:
    """Processor seconds of a fit for 100 000 rows, at several sizes, beside the smallest."""
    sizes = (20_000, 60_000) if quick else (30_000, 100_000, 300_000)
    first = None
    for rows in sizes:
        taken, memory = _in_process("_fit", "mixture", rows)
        first = first or taken
        what = f"mixture, {rows:,} rows"
        yield Figure(f"{what}: for 100 000 rows", taken, "s", f"{sizes[0]:,} rows", first)
        yield Figure(f"{what}: memory", memory, "MiB", "limit", 1024.0)
    taken, memory = _in_process("_fit", "autoregressive", sizes[0])
    yield Figure(f"autoregressive, {sizes[0]:,} rows: memory", memory, "MiB", "limit", 1024.0)
    yield Figure(
        f"autoregressive, {sizes[0]:,} rows: for 100 000 rows", taken, "s", "mixture", first or 1.0
    )


def sampling(quick: bool) -> Figures:
    """Rows a second of processor time, beside the targets."""
    import sampler_speed

    from dpsynth.schema import Schema
    from dpsynth.tables import simulate

    demo = Schema.load("demo")
    for model, target in (("mixture", 200_000), ("autoregressive", 100_000)):
        rate = sampler_speed.speed(demo, simulate(3_000, seed=1), model)
        yield Figure(f"{model}, 15 columns", rate, "rows/s", "target at 12 columns", target)


def workers(quick: bool) -> Figures:
    """Reading and drawing by two processes, beside one: seconds of the clock."""
    import reading_workers

    from dpsynth.schema import Schema
    from dpsynth.synthesis import Sampler, write_drawn
    from dpsynth.synthesis.fitting import fit
    from dpsynth.tables import simulate

    rows = 300_000 if quick else 1_500_000
    run = fit(simulate(3_000, seed=1), "demo", model="mixture", **BUDGET)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "drawn.csv"
        taken = {}
        for count in (1, 2):
            begun = time.perf_counter()
            write_drawn(run, Sampler.of(run), path, rows, seed=1, workers=count, overwrite=True)
            taken[count] = time.perf_counter() - begun
        yield Figure(
            f"draw and write {rows:,} rows, 2 processes", taken[2], "s", "1 process", taken[1]
        )
        demo = Schema.load("demo")
        keyed = Path(folder) / "keyed.csv"
        reading_workers.write_table(keyed, rows, "csv")
        read = {count: reading_workers.read(keyed, demo, count)[1] for count in (1, 2)}
        yield Figure(
            f"read and code {rows:,} rows, 2 processes", read[2], "s", "1 process", read[1]
        )


def cluster(quick: bool) -> Figures:
    """Reading by two workers of Dask, beside two local processes: seconds of the clock."""
    import engines
    from reading_workers import write_table

    from dpsynth._util.engines import local_engine
    from dpsynth.encoding import Codec, Coding, coded_rows
    from dpsynth.schema import Schema
    from dpsynth.tables import open_table

    rows, demo = 100_000 if quick else 1_000_000, Schema.load("demo")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "table.csv"
        write_table(path, rows, "csv")
        coding, taken = Coding(demo, Codec(demo)), {}
        with engines.dask(2) as two:
            for name, engine in (("local", local_engine(2)), ("dask", two)):
                begun = time.perf_counter()
                coded_rows(open_table(path, demo), coding, engine=engine)
                taken[name] = time.perf_counter() - begun
    what = f"read and code {rows:,} rows, 2 Dask workers"
    yield Figure(what, taken["dask"], "s", "2 local processes", taken["local"])


def evaluation(quick: bool) -> Figures:
    """An evaluation and an audit of tables: seconds of the clock, beside the mixture's fit."""
    from dpsynth.eval.attacks.audit import attacked
    from dpsynth.eval.core import Tables
    from dpsynth.eval.evaluation import evaluation as evaluated
    from dpsynth.schema import Schema
    from dpsynth.synthesis.fitting import fit
    from dpsynth.tables import simulate

    people = 3_000 if quick else 15_000
    schema = Schema.load("demo")
    source, holdout = simulate(people, seed=1), simulate(people, seed=2)
    holdout["patient_id"] = "h" + holdout["patient_id"].astype(str)
    begun = time.perf_counter()
    run = fit(source, schema, model="mixture", **BUDGET)
    fitted = time.perf_counter() - begun
    tables = Tables.read(schema, source, run.sample(len(source)), holdout)

    def judge(count: int) -> None:
        evaluated(tables, limits=(), workers=count)

    def attack(count: int) -> None:
        options = {"claim": (3.0, 1e-6), "seed": 0, "progress": lambda stage, part: None}
        attacked(tables, workers=count, **options)

    for what, task in (("evaluation", judge), ("audit", attack)):
        found = {}
        for count in (1, 2):
            begun = time.perf_counter()
            task(count)
            found[count] = time.perf_counter() - begun
        words = f"{what} of {len(source):,} rows"
        yield Figure(words, found[1], "s", "fit of the mixture", fitted)
        yield Figure(f"{words}, 2 workers", found[2], "s", "1 worker", found[1])


PARTS: dict[str, Callable[[bool], Figures]] = {
    one.__name__: one for one in (start, codec, step, fits, sampling, workers, cluster, evaluation)
}


def peak() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux


def _in_process(name: str, *arguments: object) -> tuple[float, float]:
    """Call a function of this file in a process of its own."""
    code = f"import json, performance_parts as p; print(json.dumps(p.{name}(*{arguments!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, check=True, capture_output=True, text=True
    )
    first, second = json.loads(done.stdout.splitlines()[-1])
    return first, second
