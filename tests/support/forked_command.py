"""Commands in processes forked from the tests': killed at will, and without seconds of imports."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import TextIO

from dpsynth.cli import main


class ForkedCommand:
    """A command in a process of its own, in a folder; its output can be read, line by line.

    ``patch`` is Python that the process runs first.
    """

    def __init__(self, patch: str, words: list[str], folder: Path, **environment: str) -> None:
        """Start it."""
        reading, writing = os.pipe()
        sys.stdout.flush()  # what is written so far is not written twice
        sys.stderr.flush()
        self.process = multiprocessing.get_context("fork").Process(
            target=_run, args=(patch, words, folder, environment, writing)
        )
        self.process.start()
        os.close(writing)
        self.output: TextIO = os.fdopen(reading)

    def end(self, number: int) -> None:
        """Send a signal, and wait for the end."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
        self.process.join(60)
        assert self.process.exitcode is not None

    def close(self) -> None:
        """End it, if it goes on."""
        self.process.kill()
        self.process.join()
        self.output.close()


def _run(
    patch: str, words: list[str], folder: Path, environment: dict[str, str], writing: int
) -> None:
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.update(environment)
    exec(patch, {"__name__": "patch"})
    main(words)
