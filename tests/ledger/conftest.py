"""Ledgers to test on: a SQLite file, and a database of a PostgreSQL server of our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.policy.policy import Policy
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.run import Run

from ..support import reservations
from ..support.postgres_server import Server

Reserve = Callable[..., Entry]


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
    sex = {
        "name": "sex",
        "type": "string",
        "constraints": {"enum": ["F", "M"], "required": True},
        "dpsynth": {"bounds_basis": "test"},
    }
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
        return fitting.fit(frame, Schema.from_dict(small), **(settings | changes))

    return fitted
