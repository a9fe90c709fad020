"""Full disks, folders that close or disappear, and standard streams that nobody reads."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faults_office import COMMAND, FIT, Office

SIZES = (16, 64, 160, 400, 1000)  # kilobytes of a full disk
STREAMS = ("", ">&-", "2>&-", "<&-", ">/dev/full", "2>/dev/full", "| true")
SAVED = "saved as"


def disks(office: Office) -> Iterator[str]:
    """Take the room, the folder or standard output away; nothing paid for may be lost by that."""
    yield from limits(office)
    yield from streams(office)
    yield from full_disks(office)
    yield from closed(office)
    yield from gone(office)


def paid(office: Office, place: Path, fit: Callable[[], tuple[int, str, str]], name: str) -> str:
    """Fit where something will fail: either nothing is charged, or the run is somewhere."""
    before = len(office.entries())
    code, _, err = fit()
    charged = len(office.entries()) > before
    whole = code == 0 and (place / "run.json").is_file()
    if code == 0 and not whole:
        office.found.append(f"{name}: exit code 0 without a run")
    if charged and not whole and SAVED not in err:
        office.found.append(f"{name}: a charged run was lost: {code}: {err[-300:]}")
    if SAVED in err:
        saved = Path(err.partition(SAVED)[2].split(";")[0].strip())
        if not (office.folder / saved / "run.json").is_file():
            office.found.append(f"{name}: no run at {saved}")
        shutil.rmtree(saved if saved.is_absolute() else office.folder / saved, ignore_errors=True)
    return "charged, run kept" if charged else "not charged"


def limits(office: Office) -> Iterator[str]:
    """Fit with a small limit on files."""
    ends = []
    for number, maximum in enumerate((1_000, 40_000, 150_000, 400_000)):

        def small(maximum: int = maximum) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (maximum, maximum))

        name = f"limited{number}"
        words = [*FIT, name]
        ends.append(
            paid(
                office,
                office.folder / name,
                lambda words=words, small=small: office.run(words, preexec_fn=small),  # type: ignore[misc]
                f"a limit of {maximum} bytes",
            )
        )
    yield f"fits under a limit on files      {len(ends):>3}   not charged: {_no(ends)}"


def streams(office: Office) -> Iterator[str]:
    """Run commands with every combination of standard streams that are closed or full."""
    pairs = [" ".join(pair) for pair in itertools.combinations(STREAMS, 2)]
    lines = {
        "ledger show": [*pairs, "<&- >&- 2>&-"],
        "verify bundle": [*STREAMS, "<&- >&- 2>&-"],
        "sample run --rows 10 -o again.csv --force": ["<&- >&- 2>&-"],
    }
    count = 0
    for words, shells in lines.items():
        for shell in shells:
            pipe = "| true" in shell
            line = f"{' '.join(COMMAND)} {words} {shell.replace('| true', '')}"
            done = subprocess.run(
                ["bash", "-c", line + (" | true; exit ${PIPESTATUS[0]}" if pipe else "")],
                cwd=office.folder,
                env=office.environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            count += 1
            if done.returncode not in (0, 2, 5, 141) or "Traceback" in done.stderr:
                office.found.append(f"{words} {shell}: {done.returncode} {done.stderr[-200:]}")
    yield f"streams closed, full, broken     {count:>3}"


def full_disks(office: Office) -> Iterator[str]:
    """Write onto file systems that are too small, at every stage of a result."""
    with tempfile.TemporaryDirectory(prefix="faults-full-") as name, _mounted(name, 4096) as there:
        if not there:
            yield "full disks: left out, because this user cannot mount a tmpfs"
            return
    commands = {
        "fit": FIT,
        "sample": "sample run --rows 20000 --quiet -o".split(),
        "split": "split demo source.csv --quiet -o".split(),
        "release": "release run --quiet -o".split(),
        "evaluate": "evaluate run source.csv --synthetic table.parquet -q -o".split(),
    }
    for command, words in commands.items():
        ends = []
        for size in SIZES:
            with tempfile.TemporaryDirectory(prefix="faults-full-") as name:
                with _mounted(name, size):
                    target = Path(name, "out.csv" if command == "sample" else "out")
                    full = [*words, str(target)]
                    if command == "fit":
                        ends.append(
                            paid(office, target, lambda full=full: office.run(full), full[0])
                        )  # type: ignore[misc]
                    else:
                        ends.append(str(office.run(full)[0]))
                    if left := [path.name for path in Path(name).glob(".tmp-*")]:
                        office.found.append(f"{command} on {size} kB left {left}")
        yield f"{command:<10} on full disks         {len(ends):>3}   {', '.join(ends)}"
    for size in (64, 96, 200):
        with tempfile.TemporaryDirectory(prefix="faults-full-") as name, _mounted(name, size):
            ledger = {"env": office.environment | {"DPSYNTH_LEDGER": f"{name}/ledger.sqlite"}}
            office.run(["ledger", "create", f"{name}/ledger.sqlite"], **ledger)
            Path(name, "rest").write_bytes(b"0" * max(0, _free(name) - 4096))
            code, _, err = office.run([*FIT, f"full-ledger{size}"], **ledger)
            if (
                code not in (0, 2, 4)
                or (code == 0) != (office.folder / f"full-ledger{size}").is_dir()
            ):
                office.found.append(f"a ledger on a full disk: {code}: {err[-300:]}")
    yield "ledgers on full disks              3"


def closed(office: Office) -> Iterator[str]:
    """Make the folder of an output unchangeable while its fit works (chattr +i binds root too)."""
    ends = []
    for wait in (0.0, 0.1, 0.4, 0.8):
        folder = office.folder / f"closing{wait:g}"
        folder.mkdir()
        process = office.start([*FIT, f"{folder.name}/run"])
        _until_claimed(process, folder)
        time.sleep(wait)
        if not _immutable(folder, "+i"):
            process.communicate()
            yield "folders closed in between: left out, because chattr +i does not work here"
            return
        try:
            target = folder / "run"
            ends.append(
                paid(office, target, lambda p=process: office.ended(p, "closed folder"), "closed")  # type: ignore[misc]
            )
        finally:
            _immutable(folder, "-i")
    yield f"folders closed during a fit      {len(ends):>3}   {', '.join(ends)}"


def gone(office: Office) -> Iterator[str]:
    """Remove the folder of an output while its fit works."""
    folder = office.folder / "going"
    folder.mkdir()
    process = office.start([*FIT, "going/run"])
    _until_claimed(process, folder)
    shutil.rmtree(folder, ignore_errors=True)
    end = paid(office, folder / "run", lambda: office.ended(process, "gone folder"), "gone")
    yield f"a folder that disappears           1   {end}"


def _until_claimed(process: subprocess.Popen[str], folder: Path) -> None:
    while process.poll() is None and not list(folder.glob(".tmp-claim-*")):
        time.sleep(0.01)


def _no(ends: list[str]) -> int:
    return ends.count("not charged")


def _free(folder: str) -> int:
    return shutil.disk_usage(folder).free


def _immutable(folder: Path, flag: str) -> bool:
    try:
        done = subprocess.run(["chattr", flag, str(folder)], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


@contextmanager
def _mounted(folder: str, kilobytes: int) -> Iterator[bool]:
    """Mount a small tmpfs there; yield whether that could be done."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", folder]
    try:
        there = os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        there = False
    try:
        yield there
    finally:
        if there:
            subprocess.run(["umount", "-l", folder], check=True)
