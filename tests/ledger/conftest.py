"""Ledgers to test on: a SQLite file, and a database of a PostgreSQL server of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.ledger import Ledger, adopt, enter_release, sign, void
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from ..support import reservations
from ..support.ledger_page import SOURCE, events
from ..support.office_commands import POLICY, Cli, Outcome
from ..support.postgres_server import Server
from ..support.schema_fields import schema_field

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may be made: both kinds of database have to pass."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    server: Server = request.getfixturevalue("server")
    return server.new()


@pytest.fixture
def ledger(location: str) -> Ledger:
    return Ledger.create(location)


@pytest.fixture
def sqlite(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


def reserved(ledger: Ledger, dataset: str = "cardio", **changes: Any) -> Entry:
    settings = {"purpose": "test", "epsilon": 0.5, "population": 70_000}
    settings |= {"plan": {"events": ["histograms"]}}
    return reservations.reserve(ledger, dataset, **(settings | changes))


@pytest.fixture
def reserve() -> Reserve:
    """Reserve a fit that says nothing of interest but what is changed."""
    return reserved


@pytest.fixture
def capped() -> Callable[..., Policy]:
    """Make a policy with a cap on everything, and other keys as given."""
    return reservations.capped


@pytest.fixture
def small() -> dict[str, Any]:
    """The document of a schema with one column, quick to fit."""
    sex = schema_field("sex", "string", "test", enum=["F", "M"], required=True)
    size = {"value": 9000, "basis": "test"}
    return {
        "fields": [sex],
        "dpsynth": {"version": 1, "population": size, "rows": {"value": 100, "basis": "test"}},
    }


@pytest.fixture
def fit(ledger: Ledger, small: dict[str, Any]) -> Callable[..., Run]:
    """Fit a small table; keyword arguments are those of `pipeline.fit`."""

    def fitted(**changes: Any) -> Run:
        settings: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "dataset": "cardio"}
        settings |= {"model": "independent", "ledger": ledger}
        frame = pd.DataFrame({"sex": ["F", "M"] * 50})
        return dpsynth.fit(frame, Schema.from_dict(small), **(settings | changes))

    return fitted


@pytest.fixture
def cli(command_line: Cli, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run the command line as one user or another, beside a schema, a policy and two tables."""
    Path("ward.schema.json").write_text(json.dumps(small))
    Path("office.policy.yaml").write_text(POLICY)
    Path("extract.csv").write_text("sex\n" + "F\nM\n" * 50)
    Path("other.csv").write_text("sex\n" + "F\nM\nM\n" * 50)

    def run(*words: object, user: str = "fitter") -> Outcome:
        monkeypatch.setenv("DPSYNTH_USER", user)
        return command_line(*words)

    return run


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Be somebody, from here on."""
    return lambda name: monkeypatch.setenv("DPSYNTH_USER", name)


@pytest.fixture
def full(sqlite: Ledger, reserve: Reserve, capped: Capped, person: Callable[[str], None]) -> Ledger:
    """A ledger with every kind of record."""
    person("chair")
    adopt(sqlite, capped(9, name="interim rules"))
    caps = {
        "release": {"epsilon": 0.5, "basis": "the law on small steps"},
        "year": {"epsilon": 1, "basis": "minutes of the ethics board"},
        "total": {"epsilon": 4, "basis": "the directorate"},
    }
    tier = {"caps": {"total": {"epsilon": 0.7, "basis": "pilot study"}}, "releases_a_year": 2}
    more = {
        "name": "office 2026",
        "tiers": {"rare": tier, "plain": {}},
        "datasets": {"diabetes": ["d-2019", "d-2020"], "oncology": ["o-1"]},
        "minimum_population": {"value": 5000, "basis": "data protection officer"},
        "models": ["independent", "tvae"],
        "allow_refuse": False,
        "sign_off": {"people": 2},
    }
    adopt(sqlite, capped(1, delta=1e-5, caps=caps, **more))
    person("curie")
    released = reserve(sqlite, "d-2019", epsilon=0.3, tier="rare", purpose="rare forms")
    sqlite.begin(released.id)
    sqlite.saw(released.id, SOURCE)
    sqlite.charge(released.id)
    failed = reserve(sqlite, "d-2020", epsilon=0.45, tier="plain", plan=events())
    sqlite.begin(failed.id)
    sqlite.fail(failed.id, "MemoryError")
    voided = reserve(sqlite, "d-2020", epsilon=0.2, tier="plain")
    void(sqlite, voided.id, "wrong schema")
    waiting = reserve(sqlite, "cardio", epsilon=0.1, tier="plain")
    sqlite.charge(waiting.id)
    for name in ("noether", "hopper"):
        person(name)
        sign(sqlite, released.id, "seen by the board")
    sign(sqlite, waiting.id)
    enter_release(sqlite, released.id, "a" * 64)
    return sqlite
