"""``dpsynth office``: what the commands print, and how they begin and end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpsynth._util.dependencies import OFFICE, remedy

from ..support.command_line import Cli


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []

    def begin(*line: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dpsynth", "office", *map(str, line)]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        begun.append(subprocess.Popen(command, text=True, cwd=tmp_path, **streams))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_an_office_begins_serves_and_ends(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    office = start("prepare", "release")
    assert office.stdout is not None
    address = re.search(r"http://127\.0\.0\.1:\d+/enter\?token=\S+", office.stdout.readline())
    assert address is not None and "Ctrl-C ends" in office.stdout.readline()
    with httpx.Client() as browser:
        page = browser.get(address.group(), follow_redirects=True)
        assert page.status_code == 200 and "Prepare a release" in page.text
        assert "server" not in page.headers
        second = start("prepare", "release")
        _, refused = second.communicate(timeout=60)
        assert second.returncode == 2 and "another process uses release" in refused
    office.send_signal(signal.SIGTERM)
    out, err = office.communicate(timeout=60)
    assert office.returncode == 0 and out == "" and err == ""  # no log of what was asked
    assert list((tmp_path / "release").iterdir()) == []


def test_what_stops_an_office_is_a_sentence(command_line: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = command_line("office", "prepare", str(tmp_path / "file"))
    assert folder.code == 2 and "cannot write" in folder.err
    missing = command_line("office", "run", str(tmp_path / "nowhere"))
    assert missing.code == 2 and "has no dpsynth.yaml" in missing.err


def test_a_library_that_is_missing_is_named() -> None:
    for module, library in OFFICE.items():
        assert remedy(module) == (
            f"{library} is not installed, and this needs it: pip install 'dpsynth[office]'"
        )
