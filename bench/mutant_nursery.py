"""Runs of pytest that begin with the libraries loaded: a process that loads them once, and forks.

Loading takes longer than most tests. The process imports libraries alone, nothing of dpsynth, which
each run imports from the copy that it tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_NURSERY = """
import importlib, json, os, signal, sys, time

for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except ImportError:
        pass


def run(order):
    os.setsid()
    # a background job of a shell ignores both
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(said, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.path[:] = [order["folder"], *(path for path in sys.path if path)]
    sys.argv = ["pytest", *order["arguments"]]
    import pytest

    return int(pytest.main(order["arguments"]))


for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = run(order)
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + order["limit"]
    ended, status = 0, 0
    while not ended and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not ended:
        os.waitpid(child, 0)
    print(json.dumps(os.waitstatus_to_exitcode(status) if ended else None), flush=True)
"""
_LIBRARIES = (
    *("numpy", "pandas", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "scipy.stats", "torch"),
    *(
        "opendp.measurements",
        "dp_accounting.pld.privacy_loss_distribution",
        "sklearn",
        "safetensors",
    ),
    *("sqlalchemy", "yaml", "click", "jinja2", "hypothesis", "pytest"),
)


class Nursery:
    """A process from which runs of pytest are forked, one at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it; libraries see this environment when they are loaded."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY, json.dumps(_LIBRARIES)],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def finished(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float
    ) -> tuple[int | None, str]:
        """Run pytest; give its exit code, None after the time limit, and what it said.

        It has a process group of its own, of which nothing is left in the end.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.NamedTemporaryFile(prefix="said-") as said:
            order = {
                "arguments": list(arguments),
                "folder": str(folder),
                "environment": dict(environment),
                "limit": limit,
                "said": said.name,
            }
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            code: int | None = json.loads(self._process.stdout.readline())
            return code, Path(said.name).read_text(errors="replace")
