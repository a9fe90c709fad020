"""Kills, races and full disks against the command line: nothing lost, nothing left lying about.

    .venv/bin/python bench/faults.py                       # a quarter of an hour
    .venv/bin/python bench/faults.py --kills 2 --races 4 --no-ledger   # a first look: minutes

Kills: each command is ended by SIGKILL, SIGTERM, SIGINT, SIGHUP or SIGQUIT at a random moment of
the time that it takes. (Ctrl-C before a command has begun shows where Python was.) Then the ledger
must verify, an output must be whole or absent, temporary files with real rows must be for their
owner alone, and the next command must remove them. Races: processes fit under one cap, fit into one
output, sample into one run, and carry out one work folder. Disks (faults_disks.py): too small a
limit on files, standard streams that are full or closed, full file systems, folders that close or
disappear during a fit. Ledger (faults_ledger.py): what a write costs at 10, 1 000 and 10 000
entries, and 220 writers at once. One line a loop; the status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import faults_ledger
from faults_disks import disks
from faults_office import BUDGET, FIT, Office

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
RUN = ["run", "demo", "source.csv", *BUDGET, "--no-attacks", "--canaries", "100", "-o"]
PUBLISH = "evaluate --synthetic table.parquet --publish -q -o".split()
POLICY = """\
dpsynth_policy: 1
name: Faults
delta: 1.0e-5
caps: {total: {epsilon: 1.8, basis: "of this program"}}
"""


def kills(office: Office, count: int, rng: random.Random) -> Iterator[str]:
    """End each command at random moments."""
    fits = [*FIT[:-1], "--publish-quality", "0.1", "-o"]
    commands: dict[str, Callable[[str], list[str]]] = {
        "split": lambda n: ["split", "demo", "source.csv", "-q", "-o", n],
        "fit": lambda n: [*FIT, n],
        "sample": lambda n: f"sample run --rows 30000 -q -o {n}.csv".split(),
        "release": lambda n: f"release run -q -o {n}".split(),
        "publish": lambda n: [*PUBLISH, f"int-{n}", f"q-{n}", "source.csv"],
        "run": lambda n: [*RUN, n],
    }
    for name, words in commands.items():
        times = max(1, count // 4) if name == "run" else count
        numbers = [f"{name}{number}" for number in range(times + 1)]
        if name == "publish":
            for number in numbers:
                office.expect([*fits, f"q-{number}"], 0)
        last = office.seconds(words(numbers.pop()), 0, 3)
        left = ended = 0
        for number in numbers:
            before = len(office.leftovers())
            begun = time.monotonic()
            process = office.start(words(number))
            try:
                process.wait(rng.uniform(0.05, 0.95) * last)
            except subprocess.TimeoutExpired:
                process.send_signal(rng.choice(SIGNALS))
            else:  # too late, and a better estimate of what it takes
                last = time.monotonic() - begun
            _, err = process.communicate(timeout=300)
            ended += process.returncode in (0, 3)
            loading = err.rstrip().endswith("KeyboardInterrupt") and ", in main" not in err
            if not loading and ("Traceback" in err or "unexpected" in err):
                office.found.append(f"{name}, ended by a signal: {err.strip()[-300:]}")
            left += len(office.leftovers()) - before
            _after_kill(office, name, number, words(number))
        yield f"kills of {name:<22} {times:>5}   had ended: {ended}, left behind: {left}"


def _after_kill(office: Office, name: str, number: str, words: list[str]) -> None:
    """See that a command that was killed can be given again, or go on, and leaves nothing."""
    entries = office.entries()  # the export is the next command in this folder
    if still := [path.name for path in office.folder.glob(".tmp-*")]:
        office.found.append(f"{name}: the next command left {still}")
    place = office.folder / number
    if name == "fit" and place.exists():
        office.expect(f"sample {number} --rows 10 -q -o of-{number}.csv".split(), 0)
        if entries[-1]["status"] in ("reserved", "reading"):
            office.expect(["ledger", "close", number], 0)
    elif name == "split" and place.exists():
        if {path.name for path in place.iterdir()} < {"train.csv", "holdout.csv"}:
            office.found.append(f"half a split in {place.name}")
    elif name == "release" and place.exists():
        office.expect(["verify", number], 0)
    elif name == "publish":
        office.expect(words, 0, 2, 3, 4)
    elif name == "run":
        code, _, err = office.run(words)
        if code == 4:
            code, _, err = office.run([*words, "--fit-again"])
        if code not in (0, 3):
            office.found.append(f"run does not go on: {code}: {err[-300:]}")
        office.expect(["verify", number], 0)
        if left := [str(path) for path in office.folder.glob(f"{number}*/**/.tmp-*")]:
            office.found.append(f"run that went on left {left}")


def races(office: Office, count: int) -> Iterator[str]:
    """Let processes compete for a cap, an output, the list of samples, and a work folder."""
    before = len(office.entries())
    codes = _together(office, [[*FIT, "contested"]] * count)
    charged = len(office.entries()) - before
    if codes != [0] + [2] * (count - 1) or charged != 1:
        office.found.append(f"fits into one output ended with {codes}, {charged} were charged")
    yield f"fits into one output            {count:>5}   done: {codes.count(0)}, charged: {charged}"
    before = _samples(office)
    words = [f"sample run --rows 50 -o r{n}.csv --quiet".split() for n in range(count)]
    done, after = _together(office, words).count(0), _samples(office)
    if after - before != done or done != count:
        office.found.append(f"{count} samples at once: {done} ended, {after - before} recorded")
    yield f"samples into one run            {count:>5}   recorded: {after - before}"
    before = len(office.entries())
    codes = _together(office, [[*RUN, "both"]] * 3)
    charged = len(office.entries()) - before
    if charged != 1 or set(codes) - {0, 2, 3}:
        office.found.append(f"three runs of one folder: {codes}, charged {charged}")
    yield f"runs of one work folder             3   ended with {codes}, charged: {charged}"
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        other = Office.open(Path(name), office.found)
        (other.folder / "policy.yaml").write_text(POLICY)
        other.expect("ledger policy policy.yaml".split(), 0)
        codes = _together(other, [[*FIT, f"c{n}"] for n in range(count)])
        entries = [entry for entry in other.entries() if entry["counts"]]
        admitted = 0  # by one fit after the other, under a policy of its own
        while other.run([*FIT, f"d{admitted}", "--dataset", "others"])[0] == 0:
            admitted += 1
        if set(codes) - {0, 4} or codes.count(0) != len(entries):
            office.found.append(f"fits under one cap ended with {codes}")
        if len(entries) != min(admitted, count):
            office.found.append(f"a cap for {admitted} fits admitted {len(entries)} at once")
        yield f"fits under one cap              {count:>5}   admitted: {len(entries)} of {admitted}"


def ledgers(office: Office, sizes: list[int], racers: int) -> Iterator[str]:
    """Measure what writes cost, and let many write at once."""
    figures = faults_ledger.measured(sizes, racers, faults_ledger.FITS)
    office.found += faults_ledger.findings(figures)
    for size, costs in figures["milliseconds of a write"].items():
        each = ", ".join(f"{name} {value:g}" for name, value in costs.items())
        yield f"ms of a write at {size:>6} entries: {each}"
    yield f"kilobytes an entry: {figures['kilobytes an entry']}"
    if "race" in figures:
        yield f"writers at once: {figures['race']}"


def _together(office: Office, commands: list[list[str]]) -> list[int]:
    processes = [office.start(words) for words in commands]
    return sorted(office.ended(process, "a race")[0] for process in processes)


def _samples(office: Office) -> int:
    return len(json.loads((office.folder / "run" / "samples.json").read_text())["samples"])


def main() -> None:
    """Run the loops; print a table, and what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="of each command; of run, a quarter")
    parser.add_argument("--races", type=int, default=8, help="processes at once")
    parser.add_argument("--sizes", type=int, nargs="*", default=faults_ledger.SIZES)
    parser.add_argument("--racers", type=int, default=faults_ledger.RACERS, help="ledger's writers")
    parser.add_argument("--only-kills", action="store_true", help="leave everything else out")
    parser.add_argument("--no-ledger", action="store_true", help="leave cost and crowd out")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    options = parser.parse_args()
    for number in SIGNALS[1:]:  # a job in the background ignores some, and so would its children
        signal.signal(number, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        office = Office.open(Path(name))
        office.expect([*FIT, "run"], 0)
        office.expect("sample run --rows 3000 -o table.parquet --quiet".split(), 0)
        office.expect("release run -o bundle --quiet".split(), 0)
        loops = [kills(office, options.kills, random.Random(options.seed))]
        if not options.only_kills:
            loops = [races(office, options.races), disks(office), *loops]
        if not (options.no_ledger or options.only_kills):
            loops.append(ledgers(office, options.sizes, options.racers))
        said = 0
        for loop in loops:
            for line in loop:
                print(line, flush=True)
                for one in office.found[said:]:
                    print(f"FOUND: {one}", flush=True)
                said = len(office.found)
    print(f"{len(office.found)} findings")
    sys.exit(bool(office.found))


if __name__ == "__main__":
    main()
