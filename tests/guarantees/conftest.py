"""Fixtures of the end-to-end privacy tests: a small clinic, its visits, and the command line."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from dpsynth.cli.process import ASKED as SIGNALS
from dpsynth.ledger import Ledger
from dpsynth.models import Domain, Preset, spec_of
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PrivacyBudget, PrivacyPlan
from dpsynth.schema import Schema
from dpsynth.synthesis.checkpoints import FitCheckpoints

from ..support.command_outcome import Outcome
from ..support.schema_fields import schema_field
from .stopped_fits import Office

NEURAL = [name for name in NAMES if spec_of(name).neural]

ASKED = tuple(getattr(signal, name) for name in SIGNALS)
BASIS = {"bounds_basis": "protocol of the study"}
VISITED = {"minimum": "2015-01-01", "maximum": "2020-12-31"}

CLINIC: dict[str, Any] = {
    "name": "clinic",
    "fields": [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        {"name": "visited", "type": "datetime", "dpsynth": {"role": "order"}},
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": BASIS},
        schema_field("ward", "string", BASIS, enum=["A", "B", "C"], required=True),
        schema_field("weight", "number", BASIS | {"step": 0.5}, minimum=30, maximum=200),
        schema_field("age", "integer", BASIS, minimum=18, maximum=99, required=True),
        {"name": "admitted", "type": "date", "constraints": VISITED, "dpsynth": BASIS},
    ],
    "dpsynth": {
        "version": 1,
        "max_rows": {"value": 2, "basis": "office policy"},
        "keep": "window",
        "population": {"value": 300, "basis": "annual report"},
        "rows": {"value": 250, "basis": "annual report"},
    },
}


Shell = Callable[..., Outcome]


@pytest.fixture
def document() -> dict[str, Any]:
    """The clinic's schema document, the test's own copy."""
    copy: dict[str, Any] = yaml.safe_load(yaml.safe_dump(CLINIC))
    return copy


@pytest.fixture(scope="session")
def clinic() -> Schema:
    """A schema with a unit, an order, a dropped column and five modelled ones."""
    return Schema.from_dict(CLINIC)


@pytest.fixture(scope="session")
def visits() -> Callable[[int], pd.DataFrame]:
    """Make visits of so many patients, one to three each; fewer patients are a beginning of more.

    Ward C is declared and never seen.
    """

    def make(patients: int) -> pd.DataFrame:
        rng = np.random.default_rng(11)
        rows = []
        for patient in range(patients):
            for visit in range(int(rng.integers(1, 4))):
                rows.append(
                    {
                        "patient": f"p{patient:04}",
                        "visited": f"201{5 + visit}-0{1 + patient % 9}-11T08:30:00",
                        "note": "free text",
                        "sex": "FM"[rng.integers(2)],
                        "ward": "AB"[rng.integers(2)],
                        "weight": f"{rng.integers(80, 240) / 2:g}",
                        "age": str(rng.integers(20, 95)),
                        "admitted": f"201{5 + visit}-0{1 + patient % 9}-10",
                    }
                )
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    """Two equal rows of each of thirty units, for the schema `every_type`."""
    return pd.DataFrame(
        {
            "key": [str(i // 2) for i in range(60)],
            "age": 40,
            "weight": "70.5",
            "grade": "2",
            "sex": "F",
            "smoker": "true",
            "admitted": "2016-01-01",
            "discharged": "2016-01-02",
            "measured": "2015-01-05T00:00:00",
            "born": "1950",
        }
    )


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the generators small and their training short.

    Widths are such that none of them is the number of bins of all columns together.
    """
    settings: dict[str, Any] = {
        "bins": 8,
        "one_way": 0.4,
        "training": 0.0,
        "components": 61,
        "mixture_steps": 5,
    }
    training: dict[str, Any] = {
        "training": 0.3,
        "masked": 59,
        "hidden": 53,
        "latent": 3,
        "warm_steps": 3,
        "sampling_rate": 0.1,
        "steps": 5,
        "learning_rate": 0.01,
        "anchor": 0.5,
        "rounds": 2,
        "settling_steps": 2,
    }

    def of(model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
        chosen = settings | (training if model in NEURAL else {})
        return Preset(**chosen | ({"latent": 0} if model == "autoregressive" else {}))

    monkeypatch.setattr(Preset, "of", of)
    for size in (
        "training.WARM_BATCH",
        "ctgan.WARM_BATCH",
        "ctgan.FAKES",
        "ctgan.BATCH",
    ):
        monkeypatch.setattr(f"dpsynth.models.generators.{size}", 100)
    for size in ("pair_settling.ROWS", "warm_started.REHEARSAL", "ctgan.REHEARSAL"):
        monkeypatch.setattr(f"dpsynth.models.generators.{size}", 500)
    monkeypatch.setattr("dpsynth.models.marginals.initial_model.MAX_ROWS", 100)


@pytest.fixture
def stopping(
    clinic: Schema,
    visits: Callable[[int], pd.DataFrame],
    new_ledger: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Office:
    """An office whose fit keeps its state after every second private step."""
    folder = tmp_path / "office"
    folder.mkdir()
    visits(40).to_csv(folder / "source.csv", index=False)
    shutil.copyfile(new_ledger, folder / "ledger.sqlite")
    monkeypatch.setattr(FitCheckpoints, "every", 2)
    return Office(folder, clinic)


@pytest.fixture(scope="session")
def _calibrate() -> Callable[..., PrivacyPlan]:
    return functools.lru_cache(maxsize=None)(PrivacyPlan.calibrate)


@pytest.fixture
def quick_plans(monkeypatch: pytest.MonkeyPatch, _calibrate: Callable[..., PrivacyPlan]) -> None:
    """Calibrate each plan once in a session: it is a function of budget and shares alone."""
    monkeypatch.setattr(PrivacyPlan, "calibrate", _calibrate)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, new_ledger: Path) -> Shell:
    """Run commands in a folder, in this process; the ledger lies in that folder.

    Warnings and log records count as said, on stderr, as they would be in a process of its own.
    """
    from dpsynth.cli import main

    monkeypatch.setenv("DPSYNTH_LEDGER", "ledger.sqlite")
    monkeypatch.setenv("DPSYNTH_USER", "tester")
    monkeypatch.delenv("DPSYNTH_DEBUG", raising=False)
    monkeypatch.delenv("DPSYNTH_DATASET", raising=False)

    def run(folder: Path, *arguments: object) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        if not (folder / "ledger.sqlite").exists():
            shutil.copyfile(new_ledger, folder / "ledger.sqlite")
        handler = logging.StreamHandler(err)
        handler.setLevel(logging.WARNING)
        before = {number: signal.getsignal(number) for number in ASKED}
        logging.getLogger().addHandler(handler)
        code: Any = 0
        try:
            with (
                contextlib.chdir(folder),
                warnings.catch_warnings(),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", ResourceWarning)  # as Python does by itself
                warnings.showwarning = lambda *shown: err.write(warnings.formatwarning(*shown[:4]))
                main(
                    [
                        os.fspath(argument) if isinstance(argument, Path) else str(argument)
                        for argument in arguments
                    ]
                )
        except SystemExit as stop:
            code = stop.code
        except BaseException:  # what the interpreter would print
            err.write("".join(traceback.format_exception(*sys.exc_info())))
            code = 1
        finally:
            logging.getLogger().removeHandler(handler)
            for number, handling in before.items():
                signal.signal(number, handling)
        return Outcome(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger of the test's own, written by one person."""
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a ledger, which is where real tables would be looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSYNTH_DATA", str(tmp_path))
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    Ledger.create()
    return tmp_path
