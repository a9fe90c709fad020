"""The memory that a process can have is the smallest of what machine, group and process say."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from dpsynth._util import memory_limit
from dpsynth._util.memory_limit import MemoryLimit


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 GB whose control groups lie in a folder, and no limit of the process."""
    monkeypatch.setattr(memory_limit, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory_limit, "_OF_PROCESS", tmp_path / "cgroup")
    monkeypatch.setattr(memory_limit, "_of_machine", lambda: [8 * 10**9])
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: endless)
    return tmp_path


def limit(folder: Path, lines: str, files: dict[str, str]) -> MemoryLimit | None:
    (folder / "cgroup").write_text(lines)
    for name, text in files.items():
        file = folder / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return memory_limit.memory_limit()


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ("0::/job/step\n", {"job/step/memory.max": "2000000000\n"}),
        ("0::/job/step\n", {"job/step/memory.max": "max\n", "job/memory.max": "2000000000\n"}),
        ("0::/\n", {"memory.max": "2000000000\n"}),
        ("0::/of/the/host\n", {"memory.max": "2000000000\n"}),
        ("4:cpu,memory:/job\n", {"memory/job/memory.limit_in_bytes": "2000000000\n"}),
    ],
)
def test_a_control_group_limits_it(group: Path, lines: str, files: dict[str, str]) -> None:
    found = limit(group, lines, files)
    assert found == MemoryLimit(2 * 10**9, "this container or job may use")


def test_without_limits_it_is_the_machine(group: Path) -> None:
    found = limit(group, "0::/job\n1:cpu:/\n", {"job/memory.max": "max\n"})
    assert found == MemoryLimit(8 * 10**9, "this machine has")


def test_the_limit_of_the_process_counts(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {resource.RLIMIT_AS: (10**9, 10**9)}
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: own.get(kind, endless))
    found = memory_limit.memory_limit()
    assert found == MemoryLimit(10**9, "this process may use (ulimit -v)")
