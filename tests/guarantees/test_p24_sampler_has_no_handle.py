"""P24: repair, rejection or "resample until no row matches" against the private table.

The check: nothing that samples or releases takes, imports or opens a private table. Its parameters
are a run, public numbers and places to write to; its modules import no reader of tables but the one
for synthetic ones; while it works, no file is opened but the run's and its own; and a run that was
just fitted holds on to nothing of the cohort.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import writer
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler, sample_log, sampler
from dpsynth.synthesis import readers as fit_readers

from ..support.some_cases import each_generator

Visits = Callable[[int], pd.DataFrame]
ROOT = Path(dpsynth.__file__).parent
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dataset": "clinic"}

# release takes a table that was drawn from the run, by its path, and compares it with the record.
# A release asks the ledger that charged the run; a ledger holds no rows (P15).
DRAWN = {
    ("dpsynth.bundle.writer.release", "table"),
    ("dpsynth.bundle.writer.release", "ledger"),
}
NAMES = re.compile("data|source|table|frame|rows_of|real|train|reference|avoid|like|cohort|holdout")
TYPES = re.compile(r"DataFrame|Series|\bTable|Cohort|Source|ndarray|NDArray|Entropy|Ledger")


def handles(name: str, function: Callable[..., Any]) -> list[str]:
    """Parameters by which private rows could come in."""
    found = []
    for parameter in inspect.signature(function).parameters.values():
        odd = NAMES.search(parameter.name) or TYPES.search(str(parameter.annotation))
        if odd and (name, parameter.name) not in DRAWN:
            found.append(parameter.name)
    return found


def public_functions() -> dict[str, Callable[..., Any]]:
    """Everything that samples or releases, and may be called from outside."""
    found: dict[str, Callable[..., Any]] = {"dpsynth.synthesis.sampler.sample": sampler.sample}
    for module in (sampler, writer, sample_log):
        for name, item in vars(module).items():
            public = not name.startswith("_") and getattr(item, "__module__", "") == module.__name__
            if public and inspect.isfunction(item):
                found[f"{module.__name__}.{name}"] = item
    for owner in (Sampler, Run):
        for name in ("of", "frames", "sample", "load"):
            if hasattr(owner, name):
                found[f"{owner.__name__}.{name}"] = getattr(owner, name)
    return found


def test_no_parameter_lets_private_rows_in() -> None:
    def resampled(run: Run, rows: int, *, avoid: pd.DataFrame) -> pd.DataFrame: ...
    def repaired(run: Run, source: str) -> pd.DataFrame: ...

    assert handles("twin", resampled) == ["avoid"]
    assert handles("twin", repaired) == ["source"]
    functions = public_functions()
    assert {"dpsynth.bundle.writer.release", "Sampler.of", "Sampler.frames", "Run.sample"} <= set(
        functions
    )
    assert {
        name: handles(name, item) for name, item in functions.items() if handles(name, item)
    } == {}


def test_a_sampler_is_made_of_a_run_alone() -> None:
    """Its fields are what the run says (generator, codec, rules) and public choices."""
    types = {str(field.annotation) for field in inspect.signature(Sampler).parameters.values()}
    public = {"bool", "int", "str", "str | None", "Rule | None"}
    assert types <= {"Generator", "Codec", "tuple[Rule, ...]", "Conditioned | None"} | public
    assert list(inspect.signature(Run.load).parameters) == ["folder"]
    assert set(inspect.signature(Run).parameters) == {
        "schema", "model", "config", "arrays", "certificate", "stamps",
    }  # fmt: skip


READERS = {"open_table", "read_cohort", "Cohort", "Table", "FrameTable", "CsvTable", "ParquetTable"}
READERS |= {"JsonLinesTable", "open_reference", "linked_sources"}
READERS |= {"read_csv", "read_parquet", "read_table", "ParquetFile", "read_sql", "review", "Ledger"}
VERBS = {"fit", "charged"}  # found where they are imported; others have methods of these names
MODULES = {
    "dpsynth.encoding.cohort",
    "dpsynth.inspection",
    "dpsynth.ledger.ledger",
    "dpsynth.synthesis.fitting",
    "dpsynth.synthesis.readers",
    "sqlalchemy",
}
RELEASING = [
    "synthesis/sampler",
    "synthesis/sample_log",
    "bundle/writer",
    "bundle/format/layout",
    "encoding/strict_table",
    "cli/commands/sample",
    "cli/commands/release",
    "bundle/evidence",
]


def readers(source: str) -> set[str]:
    """Names of readers of private tables that a module imports or uses, at any level."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} & (READERS | VERBS)
            found |= {node.module or ""} & MODULES
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
        elif isinstance(node, ast.Attribute):
            found |= {node.attr} & READERS
    return found


def test_no_module_that_releases_imports_a_reader() -> None:
    for twin in (
        "from dpsynth.tables import open_table",
        "def f(path):\n    from dpsynth.encoding import cohort",
        "import pandas as pd\nframe = pd.read_csv('source.csv')",
        "from dpsynth import fit",
        "from dpsynth.synthesis import fit",
    ):
        assert readers(twin)
    found = {name: readers((ROOT / f"{name}.py").read_text()) for name in RELEASING}
    found["encoding/strict_table"] -= {
        "ParquetFile"
    }  # it checks the tables of bundles, at their own place
    assert {name: names for name, names in found.items() if names} == {}


CHILD = """
import json, os, sys
opened, active = [], []
def hook(event, arguments):
    if active and event in ("open", "sqlite3.connect", "socket.connect", "subprocess.Popen"):
        opened.append((event, os.path.abspath(arguments[0]) if isinstance(arguments[0], str)
                       else str(arguments[0])))
sys.addaudithook(hook)
from dpsynth import cli
from dpsynth.synthesis import sampler
def watch(*commands):
    opened.clear()
    active.append(True)
    for command in commands:
        try:
            cli.main(command.split())
        except SystemExit as stop:
            assert stop.code in (0, None), (command, stop.code)
    active.clear()
    return [list(item) for item in opened]
sampled = watch("sample run --rows 50 --seed 1 -o drawn.csv -q")
real = sampled + watch("release run --seed 2 -o bundle -q")
frames = sampler.Sampler.frames
def rejecting(self, rows, **options):
    with open("source.csv") as file:
        known = set(file)
    yield from frames(self, rows, **options)
sampler.Sampler.frames = rejecting
twin = watch("sample run --rows 50 --seed 1 -o again.csv -q")
print("RESULT" + json.dumps([sampled, real, twin]))
"""


def outside(opened: list[list[str]], folder: Path) -> set[str]:
    """Of what was opened, that which is none of the run, the outputs and the program's own."""
    found = set()
    for event, place in opened:
        path = Path(place)
        own = folder in path.parents and (
            path.relative_to(folder).parts[0] in ("run", "bundle", "drawn.csv", "again.csv")
            or path.relative_to(folder).parts[0].startswith(".tmp-")
        )
        if event != "open" or (folder in (path, *path.parents) and not own and path != folder):
            found.add(path.name if event == "open" else event)
    return found


def test_nothing_but_the_run_is_opened(clinic: Schema, visits: Visits, tmp_path: Path) -> None:
    visits(60).to_csv(tmp_path / "source.csv", index=False)
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    dpsynth.fit(
        tmp_path / "source.csv",
        clinic,
        model="independent",
        ledger=ledger,
        output=tmp_path / "run",
        **SETTINGS,
    )
    finished = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=tmp_path,
        env=os.environ | {"DPSYNTH_LEDGER": "ledger.sqlite", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert "RESULT" in finished.stdout, finished.stderr
    sampled, real, twin = json.loads(finished.stdout.partition("RESULT")[2])
    assert any(place.endswith("run.json") for _, place in real), "the hook sees what is opened"
    assert outside(twin, tmp_path) == {"source.csv"}
    assert outside(sampled, tmp_path) == set()
    assert outside(real, tmp_path) <= {"ledger.sqlite", "sqlite3.connect"}  # asks for permission
    assert {Path(place).name for event, place in real if event == "sqlite3.connect"} == {
        "ledger.sqlite?mode=rw"
    }


def keeps_the_cohort(
    fit: Callable[..., Run], frame: pd.DataFrame, schema: Schema, model: str, patch: Any
) -> bool:
    """Whether the cohort is still alive when nothing but the fitted run is."""
    alive: list[weakref.ref[Any]] = []
    read = fit_readers.read_cohort

    def watched(*arguments: Any, **how: Any) -> Any:
        cohort = read(*arguments, **how)
        alive.append(weakref.ref(cohort))
        alive.append(weakref.ref(cohort.codes))
        return cohort

    with patch.context() as patched:
        patched.setattr(fit_readers, "read_cohort", watched)
        fitted = fit(frame, schema, model=model, without_ledger=True, **SETTINGS)
        gc.collect()
        kept = any(reference() is not None for reference in alive)
    assert len(alive) == 2 and fitted.model == model
    return kept


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_a_fitted_run_holds_nothing_of_the_cohort(
    model: str, clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handy(*arguments: Any, **options: Any) -> Run:
        """Broken twin: keeps the cohort at hand, for a later comparison."""
        with pytest.MonkeyPatch.context() as patched:
            kept: list[Any] = []
            read = fit_readers.read_cohort
            patched.setattr(
                fit_readers,
                "read_cohort",
                lambda *given, **how: kept.append(read(*given, **how)) or kept[0],
            )
            fitted = dpsynth.fit(*arguments, **options)
        object.__setattr__(fitted, "reference", kept)
        return fitted

    assert keeps_the_cohort(handy, visits(50), clinic, model, monkeypatch)
    assert not keeps_the_cohort(dpsynth.fit, visits(50), clinic, model, monkeypatch)
