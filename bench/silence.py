"""How long the commands are silent: the longest time without a change of the progress line.

Runs the commands on the made-up hospital extract of the tests (42 columns, 8 000 patients) with
standard error on a pseudo-terminal, and notes when each piece of it arrives::

    python bench/silence.py                      # run, then fit, sample, evaluate, audit, compare
    python bench/silence.py run --folder out/    # one command; keep its files
    python bench/silence.py --most 2             # exit code 1 if one is silent for longer

For each command it prints the whole time, and the longest silence of each stage that the line
named. A silence counts for the stage that was named before it. ``(start)`` is from the start of the
process to its first sign, ``(end)`` from its last sign to its exit. All times are in seconds.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.hospital_extract import PATIENTS, hospital_extract  # noqa: E402

SCHEMA = ROOT / "tests" / "support" / "hospital.schema.yaml"
BUDGET = ("--dataset", "hospital", "--epsilon", "3", "--delta", "1e-6")
START, END = "(start)", "(end)"
_LABEL = re.compile(r"^(?:\x1b\[\S*?[A-Za-z])*(?P<stage>[a-z][^\[\r\n]*?\S)\s+(?:\[|\d+ s|$)")


@dataclass
class Heard:
    """What a command showed, and when.

    Attributes:
        seconds: from start to exit.
        code: exit code of the command.
        silences: longest silence by stage, in seconds.
    """

    seconds: float = 0.0
    code: int = 0
    silences: dict[str, float] = field(default_factory=dict)

    def note(self, stage: str, seconds: float) -> None:
        """Keep a silence if it is the longest of its stage."""
        self.silences[stage] = max(seconds, self.silences.get(stage, 0.0))

    @property
    def longest(self) -> float:
        """The longest silence of all stages, in seconds."""
        return max(self.silences.values())


def listen(arguments: list[str], environment: dict[str, str], log: Path | None = None) -> Heard:
    """Run a command of dpsynth, and time the pieces of its standard error.

    Args:
        arguments: of dpsynth.
        environment: of the process.
        log: file for what was shown, each piece after the second in which it came.
    """
    master, slave = pty.openpty()
    heard, stage, shown = Heard(), START, []
    started = last = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    while True:
        try:
            piece = os.read(master, 65_536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        now = time.monotonic()
        heard.note(stage, now - last)
        last = now
        shown.append(f"{now - started:9.2f}  {piece!r}\n")
        for line in re.split(r"[\r\n]+", piece):
            if match := _LABEL.match(line):
                stage = match["stage"]
    heard.code = process.wait()
    os.close(master)
    heard.seconds = time.monotonic() - started
    heard.note(END, time.monotonic() - last)
    if log is not None:
        log.write_text("".join(shown))
    return heard


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands, in the order in which each finds what it needs."""
    extract, split = str(folder / "extract.csv"), folder / "bundle.work" / "split"
    train, holdout = str(split / "train.csv"), str(split / "holdout.csv")
    run, other, table = (str(folder / name) for name in ("one", "two", "synthetic.parquet"))
    schema = str(SCHEMA)
    fitted = [str(folder / "bundle.work" / "fitted.schema.yaml"), train, *BUDGET]
    return {
        "run": ["run", schema, extract, *BUDGET, "-o", str(folder / "bundle")],
        "fit": ["fit", *fitted, "-o", run],
        "fit two": ["fit", *fitted, "--model", "independent", "-o", other],
        "sample": ["sample", run, "-o", table],
        "evaluate": [
            *("evaluate", run, train, "--synthetic", table, "--holdout", holdout),
            *("-o", str(folder / "evaluated")),
        ],
        "audit": [
            *("audit", run, train, "--synthetic", table, "--holdout", holdout),
            *("-o", str(folder / "audited")),
        ],
        "compare": [
            *("compare", fitted[0], train, f"mixture={run}", f"independent={other}"),
            *("--holdout", holdout, "-o", str(folder / "compared")),
        ],
        "schema check": ["schema", "check", schema, extract],
    }


def main() -> int:
    """Measure the commands that were asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure the longest silence of the commands.")
    parser.add_argument("names", nargs="*", help="commands to measure; default: all")
    parser.add_argument("--folder", type=Path, help="keep the files there, and use those it has")
    parser.add_argument("--patients", type=int, default=PATIENTS)
    parser.add_argument("--most", type=float, help="longest silence allowed, in seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "extract.csv").exists():
            hospital_extract(options.patients).write(folder / "extract.csv")
        environment = {
            **os.environ,
            "COLUMNS": "80",
            "PYTHONPATH": str(ROOT),
            "DPSYNTH_LEDGER": str(folder / "ledger.sqlite"),
        }
        if not (folder / "ledger.sqlite").exists():
            create = [sys.executable, "-m", "dpsynth", "ledger", "create"]
            subprocess.run(create, env=environment, check=True, stdout=subprocess.DEVNULL)
        silent = False
        for name, arguments in commands(folder).items():
            if options.names and name not in options.names:
                continue
            heard = listen(arguments, environment, folder / f"{name.replace(' ', '-')}.log")
            print(f"{name}: {heard.seconds:.1f} s, exit code {heard.code}")
            for stage, seconds in heard.silences.items():
                print(f"  {seconds:7.2f} s  {stage}")
            sys.stdout.flush()
            silent = silent or (options.most is not None and heard.longest > options.most)
    return int(silent)


if __name__ == "__main__":
    sys.exit(main())
