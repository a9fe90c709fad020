"""Fixtures that several test files share: a small schema of every type, and a run made from it."""

from __future__ import annotations

import csv
import gc
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from dpsynth.certificate import certify
from dpsynth.cli import main
from dpsynth.cli.console import Console
from dpsynth.cli.process import ASKED as NAMES
from dpsynth.encoding import Codec
from dpsynth.ledger import Ledger, charge_of
from dpsynth.models import Domain
from dpsynth.models.generators import Independent
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, Unit
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from .support import promised_documents
from .support.browser import browser  # noqa: F401  a fixture for all folders
from .support.command_outcome import Outcome
from .support.forger import Forger
from .support.long_parts import PART, in_part
from .support.postgres_server import server  # noqa: F401  a fixture for all folders
from .support.replayed_noise import VARIANT, ReplayedNoise
from .support.schema_fields import schema_field
from .support.short_training import shorten_distilling

ASKED = tuple(getattr(signal, name) for name in NAMES)
BASIS = "protocol of the study"

EVERY_TYPE: dict[str, Any] = {
    "name": "every-type",
    "title": "A table with every type",
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
        schema_field("age", "integer", BASIS, minimum=18, maximum=99, required=True),
        schema_field(
            "weight", "number", {"bounds_basis": BASIS, "step": 0.1}, minimum=30, maximum=200
        ),
        schema_field("grade", "integer", BASIS, enum=[1, 2, 3]),
        schema_field("sex", "string", BASIS, enum=["F", "M, or other"]),
        {"name": "smoker", "type": "boolean"},
        schema_field("admitted", "date", BASIS, minimum="2015-01-01", maximum="2020-12-31"),
        schema_field(
            "discharged", "date", BASIS, minimum="2015-01-01", maximum="2020-12-31", required=True
        ),
        schema_field(
            "measured",
            "datetime",
            BASIS,
            minimum="2015-01-01T00:00:00",
            maximum="2015-02-01T00:00:00",
        ),
        schema_field("born", "year", BASIS, minimum=1900, maximum=2000),
    ],
    "dpsynth": {
        "version": 1,
        "max_rows": {"value": 2, "basis": "choice: two visits"},
        "person": {"name": "patient"},
        "population": {"value": 500, "basis": "published cohort"},
        "rows": {"value": 700, "basis": "published cohort"},
        "rules": ["admitted <= discharged"],
    },
}


# temporary files lie in memory where there is room: ledgers sync to disk dozens of times a test
MEMORY, ROOM = Path("/dev/shm"), 2**32  # bytes


def pytest_configure(config: pytest.Config) -> None:
    """Repeat noise; keep temporary files in memory, unless a place for them is named."""
    config.pluginmanager.register(ReplayedNoise())
    hypothesis.settings.register_profile("replayed", derandomize=VARIANT == "0")
    hypothesis.settings.load_profile("replayed")
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
        os.environ.setdefault("TMPDIR", str(MEMORY))  # of the processes that tests start, too
        tempfile.tempdir = None


# folders whose files take long; begun first, so that no core waits at the end for the other's file
FIRST = ("assessment", "workflow", "guarantees", "project", "cli", "bundle", "synthesis", "models")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the folders that take longest; files stay whole and in order.

    Of the long tests, only those files are left that `PART` names.
    """
    here = Path(__file__).parent
    rank = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.relative_to(here).parts[0], len(FIRST)))
    if part := os.environ.get(PART):
        others = [
            item
            for item in items
            if item.get_closest_marker("long")
            and not in_part(item.path.relative_to(here).as_posix(), part)
        ]
        config.hook.pytest_deselected(items=others)
        gone = set(map(id, others))
        items[:] = [item for item in items if id(item) not in gone]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Spare the garbage collector thousands of tests, of which none is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()  # what was collected and imported: no later search looks through it


@pytest.fixture(scope="session")
def every_type() -> Schema:
    """A schema with a column of every type, missing cells, and a rule."""
    return Schema.from_dict(EVERY_TYPE)


@pytest.fixture(scope="session")
def made_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the ledger of `made_run` lies."""
    return tmp_path_factory.mktemp("state") / "ledger.sqlite"


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger in which nothing stands, to be copied."""
    place = tmp_path_factory.mktemp("new") / "ledger.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place.parent))
        Ledger.create(place)
    return place


@pytest.fixture(scope="session")
def _offices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders for one test each; in one place, since pytest looks through its own for a name."""
    place = tmp_path_factory.mktemp("offices")
    return (place / str(number) for number in itertools.count())


@pytest.fixture(autouse=True, scope="session")
def _state_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep fixtures of whole files out of the user's own state; each test has its own place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-of-fixtures")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _short_distilling() -> Iterator[None]:
    """`auto` takes `distilled` for small tables, which would learn for seconds in many tests."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_distilling(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _departures() -> Iterator[list[str]]:
    """Compare the JSON document of each result, also where a command writes lines instead.

    Whichever test or fixture runs the command in its own process.
    """
    found: list[str] = []
    result = Console.result

    def compared(self: Console, kind: str, values: dict[str, Any], lines: Sequence[str]) -> None:
        result(self, kind, values, lines)
        document = {"kind": f"dpsynth.{kind}", "version": 1, **values}
        found.extend(promised_documents.departures_of(json.loads(json.dumps(document))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Console, "result", compared)
        yield found


@pytest.fixture(autouse=True)
def _documents_as_promised(
    request: pytest.FixtureRequest, _departures: list[str]
) -> Iterator[None]:
    """Fail a test whose commands, or whose fixtures', wrote other documents than promised."""
    yield
    wrong, _departures[:] = list(_departures), []
    long = request.node.get_closest_marker("long")  # it repeats what a quick test does
    assert long is not None or not wrong, "; ".join(wrong)


@pytest.fixture(autouse=True)
def _process_as_it_was() -> Iterator[None]:
    """Set back what libraries of some tests set for the whole process when they are imported.

    frictionless lets the csv module read cells of any length; lifelines silences numpy.
    """
    longest, silenced = csv.field_size_limit(), np.geterr()
    yield
    csv.field_size_limit(longest)
    np.seterr(**silenced)


@pytest.fixture(autouse=True)
def _ledger_at_hand(
    request: pytest.FixtureRequest, _offices: Iterator[Path], new_ledger: Path
) -> Iterator[None]:
    """Give a test of `made_run` a copy of its ledger, and any other one of its own."""
    office = next(_offices)
    office.mkdir()
    place = office / "ledger.sqlite"
    shutil.copyfile(new_ledger, place)
    if "made_run" in request.fixturenames:
        request.getfixturevalue("made_run")
        shutil.copyfile(request.getfixturevalue("made_ledger"), place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSYNTH_LEDGER", str(place))
        patch.setenv("XDG_STATE_HOME", str(place.parent / "state"))
        yield
    shutil.rmtree(office, ignore_errors=True)


@pytest.fixture(scope="session")
def made_run(every_type: Schema, made_ledger: Path) -> Run:
    """A run of the model `independent` with flat histograms, charged to a ledger; no data read."""
    codec = Codec(every_type)
    generator = Independent(Domain.of(every_type, codec))
    budget = PrivacyBudget(epsilon=3.0, delta=1e-6)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    ledger = Ledger.create(made_ledger)
    entry = ledger.reserve(
        "cohort",
        purpose="",
        plan=plan.to_dict(),
        epsilon=budget.epsilon,
        delta=budget.delta,
        model="independent",
        schema_hash=every_type.hash(),
        unit=Unit.of(every_type),
        allow_refuse=False,
        population=every_type.population.value,
    )
    ledger.begin(entry.id)
    flat = np.concatenate([np.full(size, 1 / size) for size in codec.sizes])
    charge = charge_of(ledger, entry)
    run = Run(
        schema=every_type,
        model="independent",
        config={},
        arrays={"shares": flat},
        certificate=certify(every_type, plan, model="independent", charge=charge),
    )
    ledger.charge(entry.id, run=run.digest)
    return run


@pytest.fixture(scope="session")
def _saved(made_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run.save(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run_folder(_saved: Path, tmp_path: Path) -> Path:
    """A saved run of the test's own."""
    return Path(shutil.copytree(_saved, tmp_path / "run"))


@pytest.fixture(scope="session")
def _released(_saved: Path, made_ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dpsynth.bundle import release

    bundle = tmp_path_factory.mktemp("bundles") / "bundle"
    return release(_saved, bundle, size=300, seed=7, ledger=Ledger(made_ledger))


@pytest.fixture
def bundle(_released: Path, tmp_path: Path) -> Path:
    """A verified bundle of the test's own, 300 rows."""
    return Path(shutil.copytree(_released, tmp_path / "bundle"))


@pytest.fixture
def forger(bundle: Path) -> Forger:
    """Someone who edits the test's own bundle."""
    return Forger(bundle)


@pytest.fixture
def files_of() -> Callable[[Path], dict[str, bytes]]:
    """Read all files below a folder, by relative path."""

    def read(folder: Path) -> dict[str, bytes]:
        paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    return read


@pytest.fixture
def command_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    new_ledger: Path,
) -> Iterator[Callable[..., Outcome]]:
    """Run the command line in this process, in the test's folder, with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    shutil.copyfile(new_ledger, tmp_path / "ledger.sqlite")
    for name in ("DEBUG", "DATASET", "POLICY", "KEY_PASSPHRASE"):
        monkeypatch.delenv(f"DPSYNTH_{name}", raising=False)
    handlers = {number: signal.getsignal(number) for number in ASKED}

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Outcome(stopped.value.code, output.out, output.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)
