"""The processes of quality.py: some at a time, each ending in a line of results or in a failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quality_results import SCORES, SECONDS, Key, append_line

Command = Callable[[Key, Path], list[str]]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run_all(keys: list[Key], results: Path, command: Command, *, jobs: int) -> list[Key]:
    """Run a process for each key, some at a time, and append what each finds; returns failures.

    Args:
        keys: in the order in which they start.
        results: file that lines are appended to.
        command: of a key and a file, which it leaves its findings in as a JSON object.
        jobs: processes at a time.
    """
    waiting, failed = list(reversed(keys)), []
    running: dict[Key, tuple[subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                key = waiting.pop()
                scratch = tempfile.TemporaryDirectory(dir=results.parent)
                with (Path(scratch.name) / "log").open("wb") as log:
                    child = subprocess.Popen(
                        command(key, Path(scratch.name).resolve() / "found.json"),
                        stdout=log,
                        stderr=log,
                        env=os.environ | ONE_THREAD,
                        start_new_session=True,  # so that its scorer ends with it
                    )
                running[key] = child, scratch
            for key in [key for key, (child, _) in running.items() if child.poll() is not None]:
                child, scratch = running.pop(key)
                with scratch:
                    if not _keep(key, child.returncode, Path(scratch.name), results):
                        failed.append(key)
            time.sleep(0.1 if running else 0)
    finally:
        for child, scratch in running.values():
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            scratch.cleanup()
    return failed


def _keep(key: Key, status: int, scratch: Path, results: Path) -> bool:
    """Append what a process found and show it, or show why there is nothing."""
    found = scratch / "found.json"
    if status != 0 or not found.exists():
        last = (scratch / "log").read_text(errors="replace").strip().splitlines()[-1:]
        print("FAILED", *key, f"(status {status})", *last, file=sys.stderr, flush=True)
        return False
    line = {"key": key, **json.loads(found.read_text())}
    append_line(results, line)
    show = [f"{name} {line[name]:.4f}" for name in (*SECONDS, *SCORES) if name in line]
    print(*key, *show, flush=True)
    return True
