"""Print wall time and peak memory of `fit` and `sample` on the real tables, as a user runs them.

usage: real_tables.py [--model autoregressive] [--epsilon 3] [--delta 1e-6]

Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TABLES = ("diabetes130", "cardio", "brfss2015")


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; returns wall seconds and peak memory in MiB of the largest child so far."""
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    return wall, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def measure(table: str, data: str, model: str, epsilon: str, delta: str) -> None:
    """Fit and sample one table; runs in a process of its own, so that peaks do not mix."""
    dpsynth = str(Path(sys.executable).parent / "dpsynth")
    with tempfile.TemporaryDirectory() as work:
        environment = os.environ | {"DPSYNTH_LEDGER": f"{work}/ledger.sqlite"}
        subprocess.run([dpsynth, "ledger", "create", "-q"], env=environment, check=True)
        fit = [dpsynth, "fit", table, f"{data}/{table}.csv.gz", "--dataset", table, "-q"]
        fit += ["--epsilon", epsilon, "--delta", delta, "--model", model, "-o", f"{work}/run"]
        fit_s, fit_mib = timed(fit, environment)
        sample = [dpsynth, "sample", f"{work}/run", "--rows", "100000", "-q"]
        sample_s, sample_mib = timed([*sample, "-o", f"{work}/out.parquet"], environment)
        peak = max(fit_mib, sample_mib)
        print(f"| {table} | {model} | {fit_s:.1f} | {fit_mib:.0f} | {sample_s:.1f} | {peak:.0f} |")


def main() -> None:
    """Measure each table in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="autoregressive")
    parser.add_argument("--epsilon", default="3")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--table")
    chosen = parser.parse_args()
    data = os.environ.get("DPSYNTH_DATA")
    if not data:
        sys.exit("DPSYNTH_DATA is not set: name the folder of the real tables (bench/README.md)")
    if chosen.table:
        measure(chosen.table, data, chosen.model, chosen.epsilon, chosen.delta)
        return
    print("| table | model | fit s | fit MiB | sample 100 000 rows s | peak MiB |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for table in TABLES:
        subprocess.run([sys.executable, __file__, "--table", table, *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
