"""Kills, races and full disks against the command line: nothing lost, nothing left lying about.

    .venv/bin/python bench/faults.py                       # minutes
    .venv/bin/python bench/faults.py --kills 5 --races 4   # a first look
    .venv/bin/python bench/faults.py --seconds 120         # stop starting loops after two minutes

Kills: each command is ended by SIGKILL, SIGTERM, SIGHUP or SIGQUIT at a random moment. Then the
ledger must verify; temporary files with real rows must be for their owner alone; and the next
command must remove them. Races: processes fit under one cap, fit into one output, and sample into
one run. Disks: too small a limit on files, standard streams that are full or closed, and an output
folder that disappears during a fit. One line a loop; the status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = [sys.executable, "-m", "dpsynth"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
BUDGET = "--dataset demo --epsilon 1 --delta 1e-6 --model independent --quiet".split()
FIT = ["fit", "demo", "source.csv", *BUDGET, "-o"]
POLICY = """\
dpsynth_policy: 1
name: Faults
delta: 1.0e-5
caps: {total: {epsilon: 3, basis: "of this program"}}
"""
WELL_ENDED = (0, 2, 3, 4, 129, 131, 141, 143)


@dataclass
class Office:
    """A folder with a table, a run, a ledger, and what was found wrong.

    Attributes:
        folder: where commands run.
        found: what should not be, in words.
    """

    folder: Path
    found: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path) -> Office:
        """Simulate patients, and fit one run that samples and releases are made from."""
        from dpsynth.simulate import simulate

        simulate(3_000, seed=1).to_csv(folder / "source.csv", index=False)
        office = cls(folder)
        office.expect(FIT + ["run", "--publish-quality", "0.1"], 0)
        office.expect("sample run --rows 3000 -o table.parquet --quiet".split(), 0)
        return office

    def start(self, words: list[str], **more: object) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            env=os.environ | {"DPSYNTH_LEDGER": "ledger.sqlite", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,  # type: ignore[call-overload]
        )

    def run(self, words: list[str], **more: object) -> tuple[int, str, str]:
        """Carry a command out; return its exit code, output and messages."""
        process = self.start(words, **more)
        out, err = process.communicate(timeout=300)
        if process.returncode not in WELL_ENDED or "unexpected" in err or "Traceback" in err:
            self.found.append(f"{words[0]}: exit code {process.returncode}: {err.strip()[-200:]}")
        return process.returncode, out, err

    def expect(self, words: list[str], code: int) -> str:
        """Carry a command out that must end with this code."""
        got, out, err = self.run(words)
        if got != code:
            self.found.append(f"{' '.join(words[:3])}: {got} in place of {code}: {err[-300:]}")
        return out

    def spent(self) -> list[dict[str, object]]:
        """Verify the ledger, and return its entries."""
        self.expect(["ledger", "verify"], 0)
        self.expect(["ledger", "export", "-o", "ledger.json"], 0)
        document = json.loads((self.folder / "ledger.json").read_text())
        return list(document.get("entries", ()))

    def leftovers(self) -> list[Path]:
        """Return temporary names; those of private files must be for their owner alone."""
        tops = [path for path in self.folder.rglob(".tmp-*")]
        for top in tops:
            for path in (top, *top.rglob("*")) if top.is_dir() else (top,):
                private = "split" in top.name or "work" in str(path) or "internal" in top.name
                if private and path.is_file() and path.stat().st_mode & 0o077:
                    self.found.append(f"{path.name} in {top.name} is open to others")
        return tops


def kills(office: Office, count: int, rng: random.Random) -> Iterator[str]:
    """End each command at random moments."""
    commands: dict[str, Callable[[int], list[str]]] = {
        "split": lambda n: ["split", "demo", "source.csv", "-o", f"split{n}", "--quiet"],
        "fit": lambda n: [*FIT, f"run{n}"],
        "sample": lambda n: f"sample run --rows 30000 -o s{n}.csv --quiet".split(),
        "release": lambda n: f"release run -o bundle{n} --quiet".split(),
        "publish": lambda n: (
            f"evaluate run source.csv --synthetic table.parquet --publish -o int{n} -q"
        ).split(),
        "run": lambda n: ["run", "demo", "source.csv", *BUDGET, "-o", f"whole{n}"],
    }
    for name, words in commands.items():
        left = 0
        for number in range(count):
            process = office.start(words(number))
            time.sleep(rng.uniform(0.5, 8.0))
            process.send_signal(rng.choice(SIGNALS))
            _, err = process.communicate(timeout=300)
            if "Traceback" in err or "unexpected" in err:
                office.found.append(f"{name}, ended by a signal: {err.strip()[-200:]}")
            left += len(office.leftovers())
            office.spent()
            office.expect(["split", "demo", "source.csv", "-o", f"next-{name}{number}", "-q"], 0)
            if still := [path.name for path in office.folder.glob(".tmp-*")]:
                office.found.append(f"{name}: the next command left {still}")
        yield f"kills of {name:<10} {count:>4}   left behind for the next command: {left}"


def races(office: Office, count: int) -> Iterator[str]:
    """Let processes compete for a cap, an output, and the list of samples."""
    processes = [office.start([*FIT, "contested"]) for _ in range(count)]
    codes = sorted(_ended(processes))
    if codes != [0] + [2] * (count - 1):
        office.found.append(f"fits into one output ended with {codes}")
    yield f"fits into one output {count:>4}   ended with 0: {codes.count(0)}"
    before = len(json.loads((office.folder / "run" / "samples.json").read_text())["samples"])
    processes = [
        office.start(f"sample run --rows 50 -o r{n}.csv --quiet".split()) for n in range(count)
    ]
    done = _ended(processes).count(0)
    after = len(json.loads((office.folder / "run" / "samples.json").read_text())["samples"])
    if after - before != done or done != count:
        office.found.append(f"{count} samples at once: {done} ended, {after - before} recorded")
    yield f"samples into one run {count:>4}   recorded: {after - before}"
    with tempfile.TemporaryDirectory() as name:
        other = Office(Path(name), office.found)
        (other.folder / "source.csv").write_bytes((office.folder / "source.csv").read_bytes())
        (other.folder / "policy.yaml").write_text(POLICY)
        words = [*FIT, "first", "--policy", "policy.yaml"]
        other.expect(words, 0)
        other.expect("ledger policy policy.yaml".split(), 0)
        processes = [other.start([*FIT, f"c{n}"]) for n in range(count)]
        codes = _ended(processes)
        entries = [e for e in other.spent() if e.get("counts", True)]
        total = sum(float(str(e["epsilon"])) for e in entries)
        if set(codes) - {0, 4}:
            office.found.append(f"fits under one cap ended with {sorted(codes)}")
        if total > 3:
            office.found.append(f"a cap of 3 was overspent: {total:g}")
        yield f"fits under one cap   {count:>4}   admitted: {codes.count(0)}, epsilon {total:g}"


def disks(office: Office) -> Iterator[str]:
    """Take the room, the folder or standard output away."""
    entries = len(office.spent())

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    code, _, err = office.run([*FIT, "toolarge"], preexec_fn=small)
    if code not in (2, 4):
        office.found.append(f"a file limit: exit code {code}: {err[-200:]}")
    if len(office.spent()) != entries:
        office.found.append("a fit without room for its run was charged")
    yield f"a fit without room        exit code {code}"
    for shell in (">/dev/full", ">&-", "2>/dev/full", "2>&-", "| true"):
        line = f"{sys.executable} -m dpsynth ledger show {shell}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=office.folder,
            env=os.environ | {"DPSYNTH_LEDGER": "ledger.sqlite"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 2, 141) or "Traceback" in done.stderr:
            office.found.append(f"ledger show {shell}: {done.returncode} {done.stderr[-200:]}")
    yield "standard streams closed, full, broken   5"
    folder = office.folder / "going"
    folder.mkdir()
    process = office.start([*FIT, "going/run"])
    while process.poll() is None and not list(folder.glob(".tmp-claim-*")):
        time.sleep(0.01)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    _, err = process.communicate(timeout=300)
    lost = len(office.spent()) > entries and "saved as" not in err
    if process.returncode not in (0, 2) or (process.returncode == 2 and lost):
        office.found.append(f"a folder that disappeared: {process.returncode}: {err[-300:]}")
    yield f"a folder that disappears  exit code {process.returncode}"


def _ended(processes: list[subprocess.Popen[str]]) -> list[int]:
    for process in processes:
        process.communicate(timeout=600)
    return [process.returncode for process in processes]


def main() -> None:
    """Run the loops; print a table, and what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="of each command")
    parser.add_argument("--races", type=int, default=8, help="processes at once")
    parser.add_argument("--seconds", type=float, default=3600, help="start no loop after that")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        office = Office.open(Path(name))
        loops = (
            races(office, options.races),
            disks(office),
            kills(office, options.kills, random.Random(options.seed)),
        )
        for loop in loops:
            for line in loop:
                print(line, flush=True)
                if time.monotonic() > end:
                    break
    # what a write to the ledger costs, and how many writers it serves: bench/faults_ledger.py
    for one in office.found:
        print(f"FOUND: {one}")
    print(f"{len(office.found)} findings")
    sys.exit(bool(office.found))


if __name__ == "__main__":
    main()
