"""Statistics beside fits: planned by the same command, held against a ledger, and read together."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpsynth
from dpsynth.certificate import readings
from dpsynth.ledger import Ledger
from dpsynth.stats import Answers
from dpsynth.tables import simulate

ENTRY = {"name": "by sex", "count": "patients", "by": ["sex"]}
REQUEST = {"schema": "demo", "statistics": [ENTRY]}


def test_plan_takes_a_request_as_stats_does(
    command_line: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    budget = ("request.json", "--epsilon", "1", "--delta", "1e-6")
    planned = command_line("plan", *budget)
    assert planned.code == 0 and "by sex  2 cells" in planned.out
    assert planned.out == command_line("stats", *budget).out
    refused = command_line("plan", *budget, "--model", "mixture")
    assert refused.code == 2 and "--model is for fits" in refused.err


@pytest.fixture
def folders(command_line: Callable[..., Any], tmp_path: Path) -> list[Path]:
    """Statistics of the same patients, answered twice."""
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    for place, epsilon in (("one", 0.5), ("two", 0.25)):
        dpsynth.statistics(
            simulate(100, seed=1),
            tmp_path / "request.json",
            epsilon=epsilon,
            delta=1e-6,
            dataset="cohort",
            ledger=Ledger(tmp_path / "ledger.sqlite"),
            output=tmp_path / place,
        )
    return [tmp_path / "one", tmp_path / "two"]


def test_a_ledger_is_held_against_statistics(
    folders: list[Path], command_line: Callable[..., Any], tmp_path: Path
) -> None:
    against = [part for folder in folders for part in ("--against", str(folder))]
    checked = command_line("ledger", "verify", *against)
    assert checked.code == 0, checked.err
    Ledger.create(tmp_path / "other.sqlite")
    shutil.copyfile(tmp_path / "other.sqlite", tmp_path / "ledger.sqlite")
    found = command_line("ledger", "verify", "--accept", *against)
    assert found.code == 5 and "another ledger" in found.err


def test_a_page_reads_the_odds_of_all_releases_together(folders: list[Path]) -> None:
    """What the ledger had counted by then: epsilon 0.5 and 0.25, at twice the delta."""
    one, two = (Answers.load(folder) for folder in folders)
    [alone] = readings(one.certificate)
    assert alone.epsilon == one.certificate.composed_epsilon <= 0.5
    alone, together = readings(two.certificate)
    assert alone.epsilon == two.certificate.composed_epsilon <= 0.25
    assert (together.epsilon, together.delta) == (0.75, 2e-6)
    assert together.title.startswith("All 2 fits and statistics that the ledger counted")
    half = together.beliefs[0]
    assert math.isclose(half.most, 2e-6 + (1 - 2e-6) / (1 + math.exp(-0.75)))
    page = (folders[1] / "report.html").read_text()
    assert "All 2 fits and statistics" in page and together.factor in page
