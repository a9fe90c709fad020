"""How much memory this process can have: of the machine, its control group, and its own limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
_OF_PROCESS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class MemoryLimit:
    """The smallest of all limits.

    Attributes:
        bytes: the limit.
        words: what sets it, to be followed by the number of bytes.
    """

    bytes: int
    words: str


def memory_limit() -> MemoryLimit | None:
    """Return the smallest limit; None where nothing says one."""
    found = [
        *(MemoryLimit(size, "this machine has") for size in _of_machine()),
        *(MemoryLimit(size, "this container or job may use") for size in _of_group()),
        *(MemoryLimit(size, "this process may use (ulimit -v)") for size in _of_process()),
    ]
    return min(found, key=lambda limit: limit.bytes, default=None)


def _of_machine() -> list[int]:
    try:
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # not of POSIX
        return []


def _of_group() -> list[int]:
    """Return the limits of the control group, and of those above it: of version 2, or of 1."""
    try:
        lines = _OF_PROCESS.read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, name = GROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = GROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = root / path.lstrip("/")
        files += [part / name for part in (inner, *inner.parents) if part.is_relative_to(root)]
        files.append(root / name)  # a container sees its own group as the root
    return [size for file in files if (size := _number_in(file)) is not None]


def _number_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # there is none, or it is "max"
        return None


def _of_process() -> list[int]:
    try:
        import resource
    except ModuleNotFoundError:  # not of POSIX
        return []
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return [size for size in limits if size != resource.RLIM_INFINITY]
