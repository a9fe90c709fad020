"""Fixtures of the command line: it, and a small table."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.tables import simulate

from ..support.command_line import Cli


@pytest.fixture
def cli(command_line: Cli) -> Cli:
    """Run the command line in the test's folder."""
    return command_line


@pytest.fixture(scope="session")
def cohort_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's table with 200 patients."""
    path = tmp_path_factory.mktemp("cohort") / "cohort.csv"
    simulate(200, seed=1).to_csv(path, index=False)
    return path


@pytest.fixture
def cohort(cohort_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cohort.csv"
    path.symlink_to(cohort_file)
    return path
