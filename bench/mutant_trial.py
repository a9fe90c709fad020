"""A mutation of one line, and its trial: in a copy of the tree, do the tests that it names fail?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutant_nursery import Nursery
from mutant_places import Definition, definitions

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")

KILLED, HANG, SURVIVED, BROKEN = "killed", "killed (hang)", "SURVIVED", "broken"
_PASSED, _FAILED, _NO_IMPORT, _ELSEWHERE = 0, 1, 81, 82  # exit codes of a child

# In the copy alone. What is not imported from there would make every mutation survive, and one that
# cannot be imported is no believable slip: both are told apart from a test that fails.
_PROBE = f"""
import importlib, os, pathlib, sys, pytest

ROOT = pathlib.Path(__file__).resolve().parent


def pytest_sessionstart(session):
    try:
        importlib.import_module(os.environ["MUTATED"])
    except BaseException as error:
        pytest.exit(f"{{type(error).__name__}} at import", returncode={_NO_IMPORT})


def pytest_collectreport(report):
    if report.failed:
        pytest.exit(f"no tests from {{report.nodeid}}", returncode={_NO_IMPORT})


def pytest_sessionfinish(session, exitstatus):
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == "dpsynth" and file:
            if not pathlib.Path(file).resolve().is_relative_to(ROOT):
                pytest.exit(f"{{name}} is {{file}}", returncode={_ELSEWHERE})
"""


@dataclass(frozen=True)
class Mutant:
    """A believable slip.

    Attributes:
        name: short, unique.
        pitfall: that it falls into: P01 to P31, ``ledger`` or ``accounting``.
        definition: the class, function or constant that it changes, by dotted name without the
            module: ``Ledger.reserve``. Its file may move.
        old: part of one line; over all definitions of that name, it occurs once.
        new: what stands there instead.
        why: what leaks.
        tests: files and node ids of the tests that are there to catch it.
    """

    name: str
    pitfall: str
    definition: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    def place(self, places: Mapping[str, tuple[Definition, ...]]) -> Definition:
        """Find the definition that it changes.

        Raises:
            ValueError: there is none of its name with what it changes, or more than one.
        """
        named = places.get(self.definition, ())
        found = [one for one in named if one.holds(self.old)]
        if len(found) != 1:
            raise ValueError(
                f"{self.name}: {len(found)} of {len(named)} definitions called "
                f"{self.definition} hold {self.old!r}; there has to be one"
            )
        return found[0]


def listed(path: Path = LIST) -> tuple[Mutant, ...]:
    """Read the list of mutations."""
    document = tomllib.loads(path.read_text())
    return tuple(Mutant(**item | {"tests": tuple(item["tests"])}) for item in document["mutant"])


@dataclass(frozen=True)
class Outcome:
    """How a trial ended, after how many seconds, and the test (or the reason) that ended it."""

    verdict: str
    seconds: float
    by: str


class Copy:
    """A copy of the tree, in which one mutation at a time is tried."""

    def __init__(self, folder: Path) -> None:
        """Copy what git knows or would add; links stay links."""
        self.tree, self._scratch = folder / "tree", folder / "scratch"
        self._nursery: Nursery | None = None
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, names.stdout.decode().split("\0")):
            if os.path.lexists(ROOT / name):  # a file that was removed may still be listed
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name, follow_symlinks=False)
        (self.tree / "conftest.py").write_text(_PROBE)
        self._places = definitions(self.tree)

    def sound(self, tests: Sequence[str], limit: float) -> Outcome:
        """Run tests on the tree as it is; they have to pass, or their failure says nothing."""
        return self._run("dpsynth", tests, limit)

    def trial(self, mutant: Mutant, limit: float) -> Outcome:
        """Apply a mutation, run its tests, and put the file back."""
        place = mutant.place(self._places)
        path = self.tree / place.file
        try:
            path.write_text(place.replaced(mutant.old, mutant.new))
            return self._run(place.module, mutant.tests, limit)
        finally:
            path.write_text(place.text)

    def _run(self, module: str, tests: Sequence[str], limit: float) -> Outcome:
        """Run pytest on tests, with the module whose import has to go well."""
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = (
            os.environ
            | one_thread
            | {
                "PYTHONPATH": str(self.tree),
                "PYTHONDONTWRITEBYTECODE": "1",
                "MUTATED": module,
            }
        )
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", f"--basetemp={self._scratch}"]
        began = time.monotonic()
        if self._nursery is None:
            self._nursery = Nursery(os.environ | one_thread)
        code, said = self._nursery.finished([*options, *tests], self.tree, environment, limit)
        seconds = time.monotonic() - began
        shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)
        if code is None:
            return Outcome(HANG, seconds, f"no end within {limit:g} s")
        if code == _ELSEWHERE:
            raise RuntimeError(f"the package of the copy is not the one that is tested:\n{said}")
        verdict = {_PASSED: SURVIVED, _FAILED: KILLED}.get(code, BROKEN)
        return Outcome(verdict, seconds, "" if verdict == SURVIVED else _told(said))


def _told(said: str) -> str:
    """Name the test that failed, or give the last line."""
    failed = re.findall(r"^(?:FAILED|ERROR) \S*?/?([\w.]+\.py\S*)", said, re.MULTILINE)
    return str(failed[0]) if failed else (said.strip().splitlines() or [""])[-1]
