"""What several processes of torchrun gain: whole fits of one and of two, in turns.

Both fit the same simulated table under the same plan; one process has as many threads as there are
ranks, each rank has one. Prints a markdown table of wall clock and processor seconds, start
included. The steps are as they ship, so one repeat takes about three minutes on two cores.

    python bench/ranks.py [--rows 50000] [--ranks 2] [--repeats 3] [--model autoregressive]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dpsynth.ledger.ledger import Ledger
from dpsynth.tables.simulated import simulate


def fit(folder: Path, name: str, start: list[str], threads: int, model: str) -> tuple[float, float]:
    """Fit in a new folder ``name``; return seconds of the clock and of processors."""
    home = folder / name
    home.mkdir()
    Ledger.create(home / "ledger.sqlite")
    words = "fit demo ../source.csv --dataset a --epsilon 2 --delta 1e-7 -o run --quiet".split()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", *start, "dpsynth", *words, "--model", model],
        cwd=home,
        env=os.environ
        | {"DPSYNTH_LEDGER": str(home / "ledger.sqlite"), "OMP_NUM_THREADS": str(threads)},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", choices=("autoregressive", "tvae"), default="autoregressive")
    wanted = parser.parse_args()
    torchrun = f"torch.distributed.run --standalone --nproc-per-node={wanted.ranks} -m".split()
    ways = {
        f"1 process, {wanted.ranks} threads": (list[str](), wanted.ranks),
        f"{wanted.ranks} ranks, 1 thread each": (torchrun, 1),
    }
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(wanted.rows, seed=1).to_csv(folder / "source.csv", index=False)
        for repeat in range(wanted.repeats):
            for number, (way, (start, threads)) in enumerate(ways.items()):
                taken[way].append(fit(folder, f"{repeat}-{number}", start, threads, wanted.model))
    print("| fit | wall clock | processor seconds |\n|---|---:|---:|")
    for way, seconds in taken.items():
        wall, used = (statistics.median(each) for each in zip(*seconds, strict=True))
        print(f"| {way} | {wall:.1f} s | {used:.1f} s |")


if __name__ == "__main__":
    main()
