"""Work in child processes with bounded memory: one that dies or hangs costs one input, not all."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Tell = Callable[[dict[str, Any]], None]
MIB = 2**20


class Died(Exception):
    """A child ended before its work did; says how."""


def told_by(work: Callable[[Tell], None], *, memory: int, patience: float) -> Iterator[Any]:
    """Run work in a child, and yield what it tells.

    Args:
        work: is given a function that tells a JSON object.
        memory: how much the child may take beyond what this process has, in MiB.
        patience: seconds without a word, after which it is killed.

    Raises:
        Died: it was killed, or a signal ended it.
        RuntimeError: the work raised, which is on stderr.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing, memory)  # does not return
    os.close(writing)
    late = ended = False
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            held = b""
            while True:
                if not select.select([pipe], [], [], patience)[0]:
                    late = True
                    break
                block = pipe.read(MIB)
                if not block:
                    ended = True
                    break
                *lines, held = (held + block).split(b"\n")
                yield from map(json.loads, lines)
    finally:
        with contextlib.suppress(ProcessLookupError):
            None if ended else os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if late:
        raise Died(f"no word for {patience:g} s, not even from the alarm")
    if status < 0:
        raise Died(f"the process died of {signal.Signals(-status).name}")
    if status > 0:
        raise RuntimeError(f"the fuzzer itself failed, with status {status}")


def _work(work: Callable[[Tell], None], writing: int, memory: int) -> None:
    """Be the child."""
    status, errors = 1, os.dup(2)
    try:
        limit = _address_space() + memory * MIB
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _few_threads()

        def tell(said: dict[str, Any]) -> None:
            line = json.dumps(said).encode() + b"\n"
            while line:
                line = line[os.write(writing, line) :]

        work(tell)
        status = 0
    except BaseException:  # of the fuzzer itself: the judge lets none of a reader through
        os.write(errors, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(status)


def _address_space() -> int:
    """Return the bytes of address space that this process has; 8 GiB where nobody can tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 2**33
    return pages * os.sysconf("SC_PAGE_SIZE")


def _few_threads() -> None:
    """Keep Arrow from reserving address space for threads."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
