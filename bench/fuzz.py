"""Feed bad files to everything that reads one, and judge what comes back.

usage: fuzz.py [--inputs 100000] [--targets schema,csv] [--seed 0] [--minutes 60]
               [--engine chance|atheris]

A failure is an exception that no reader documents, no answer in time, too much memory, a traceback,
or a private cell in a message, on the screen or in a log (fuzz_oracle.py). Failing inputs are kept
in build/fuzz/ with their seeds. Exit code 1 if one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz_targets import Target

BATCH = 10_000  # inputs of all targets in one round
KEPT = Path("build/fuzz")
MEMORY = 1024  # MiB that a child may take
MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
MAX_FAILURES = 25  # of a target; more of the same teach nothing


@dataclass
class Tally:
    """What became of the inputs of a target."""

    inputs: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, told: dict[str, Any]) -> None:
        """Count one input."""
        self.inputs += 1
        self.outcomes[told["outcome"]] += 1
        self.slowest = max(self.slowest, (told["seconds"], told["number"]))
        if told["failure"] is not None:
            self.failures.append((told["number"], told["failure"], told["said"]))


def fuzz(
    target: Target, numbers: range, tally: Tally, chosen: argparse.Namespace, scratch: Path
) -> None:
    """Run inputs of one target in children; a child that dies is a failure of its input."""
    from fuzz_children import Died, told_by
    from fuzz_failures import keep_fatal

    start, before, first = time.perf_counter(), _processor(), numbers.start
    while first < numbers.stop and len(tally.failures) < MAX_FAILURES:
        work = _engine(chosen)(
            target,
            range(first, numbers.stop),
            chosen.seed,
            chosen.seconds,
            scratch / "input",
            chosen.kept,
        )
        patience = max(60.0, 6 * chosen.seconds)
        try:
            for told in told_by(work, memory=chosen.memory, patience=patience):
                tally.add(told)
                first = told["number"] + 1
                if len(tally.failures) >= MAX_FAILURES:
                    break
            else:
                first = numbers.stop
        except Died as death:
            seed = f"{chosen.seed}:{target.name}:{first}"
            told = {"number": first, "outcome": "Died", "seconds": 0.0}
            tally.add(told | {"failure": str(death), "said": f"seed {seed}"})
            if chosen.engine == "chance":
                make = partial(target.make, Random(seed))
                keep_fatal(chosen.kept / f"{target.name}-{first}", make, seed, str(death))
            first += 1
    tally.seconds += time.perf_counter() - start
    tally.processor += _processor() - before


def _engine(chosen: argparse.Namespace) -> Any:
    from fuzz_engines import by_chance, by_coverage

    return by_coverage if chosen.engine == "atheris" else by_chance


def _processor() -> float:
    """Return the processor time of all children that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def batches(targets: list[Target], inputs: int, rounds: int) -> Iterator[tuple[Target, range]]:
    """Divide inputs among targets, and those of each target among rounds."""
    whole = sum(target.share for target in targets)
    ends = [round(inputs * sum(t.share for t in targets[:i]) / whole) for i in range(len(targets))]
    counts = [end - start for start, end in zip(ends, [*ends[1:], inputs], strict=True)]
    for turn in range(rounds):
        for target, count in zip(targets, counts, strict=True):
            yield target, range(count * turn // rounds, count * (turn + 1) // rounds)


def show(name: str, tally: Tally) -> None:
    """Print a line of a target, and what failed."""
    rate = tally.inputs / tally.seconds if tally.seconds else 0.0
    text = ", ".join(f"{kind} {count}" for kind, count in tally.outcomes.most_common())
    seconds, number = tally.slowest
    print(
        f"{name:8} {tally.inputs:6} inputs  {tally.seconds:6.0f} s  {rate:4.0f}/s  "
        f"{tally.processor:6.0f} s of the processor; slowest {seconds:.2f} s (number {number}); "
        f"{text}",
        flush=True,
    )
    for number, failure, where in tally.failures:
        print(f"  FAILED {name} {number}: {failure}\n    {where[:300]!r}", flush=True)


def main() -> None:
    """Fuzz."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--targets", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=10.0, help="longest time of an input")
    parser.add_argument("--memory", type=int, default=MEMORY, help="MiB beyond what is loaded")
    parser.add_argument("--engine", choices=("chance", "atheris"), default="chance")
    parser.add_argument("--kept", type=Path, default=KEPT)
    chosen = parser.parse_args()
    chosen.kept = chosen.kept.resolve()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # others reserve GiBs of address space
    _load(parser, guided=chosen.engine == "atheris")
    from fuzz_children import told_by
    from fuzz_good import Good, make
    from fuzz_targets import targets

    from dpsynth.tables import checks

    checks.CHUNK = 8  # rows, so that small tables have several chunks
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY_DISK) as name:
        scratch = Path(name)
        good = scratch / "good"
        good.mkdir()
        list(told_by(lambda tell: make(good), memory=2**16, patience=300.0))
        made = targets(Good.at(good))
        wanted = chosen.targets.split(",") if chosen.targets else [one.name for one in made]
        if unknown := set(wanted) - {one.name for one in made}:
            parser.error(f"no target is called {', '.join(sorted(unknown))}")
        tallies = {name: Tally() for name in wanted}
        rounds = 1 if chosen.engine == "atheris" else -(-chosen.inputs // BATCH)
        among = [one for one in made if one.name in tallies]
        for target, numbers in batches(among, chosen.inputs, rounds):
            if time.perf_counter() - start < 60 * chosen.minutes:
                fuzz(target, numbers, tallies[target.name], chosen, scratch)
                _progress(tallies, chosen.inputs)
        for target in among:
            show(target.name, tallies[target.name])
    inputs = sum(tally.inputs for tally in tallies.values())
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(
        f"{inputs} inputs in {time.perf_counter() - start:.0f} s, seed {chosen.seed}: "
        + (f"{failed} failed; they are kept in {chosen.kept}" if failed else "none failed")
    )
    sys.exit(1 if failed else 0)


def _progress(tallies: dict[str, Tally], inputs: int) -> None:
    """Say on a terminal how far all is."""
    if sys.stderr.isatty():
        done = sum(tally.inputs for tally in tallies.values())
        print(f"\r{done} of {inputs} inputs ", end="", file=sys.stderr, flush=True)


def _load(parser: argparse.ArgumentParser, *, guided: bool) -> None:
    """Import all of dpsynth, so that no input waits for it; and what tells which lines it runs."""
    instrumented: Any = contextlib.nullcontext()
    if guided:
        try:
            import atheris
        except ImportError:
            parser.error("atheris is not installed: pip install atheris")
        instrumented = atheris.instrument_imports(include=["dpsynth"])
    with instrumented:
        import dpsynth

        for found in pkgutil.walk_packages(dpsynth.__path__, "dpsynth."):
            if found.name != "dpsynth.__main__":
                importlib.import_module(found.name)
    importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


if __name__ == "__main__":
    main()
