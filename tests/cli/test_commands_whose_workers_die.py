"""A command whose workers are killed ends: with its result, or with an error and a closed entry."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dpsynth.ledger import Ledger
from dpsynth.synthesis.drawing.sampler import BLOCK

from ..support.audited_office import fitted_office
from ..support.dying_workers import PHASES, command, deaths, dying

PAID = ["--dataset", "demo", "--epsilon", 1, "--delta", "1e-6", "--model", "independent"]
TABLES = ["train.csv", "--synthetic", "out.parquet", "--holdout", "holdout.csv"]
COMMANDS = {
    "fit": ["fit", "demo", "train.csv", *PAID],
    "sample": ["sample", "run", "--rows", BLOCK + 1000],
    "evaluate": ["evaluate", "run", *TABLES],
    "audit": ["audit", "demo", *TABLES, "--no-plugins"],
    "run": ["run", "demo", "train.csv", *PAID, "--canaries", 60],
}
EVERYWHERE = [phase for phase in PHASES if phase != "answered"]  # a second piece is not sure
QUICK = [("fit", "interpreter"), ("sample", "interpreter"), ("sample", "working")]
REPEATED = [
    one
    for one in (*itertools.product(("fit", "sample", "evaluate"), EVERYWHERE),
                *itertools.product(("audit", "run"), ("interpreter", "unpacking", "working")))
    if one not in QUICK
]  # fmt: skip
CASES = [
    *(pytest.param(*one) for one in QUICK),
    *(pytest.param(*one, marks=pytest.mark.long) for one in REPEATED),
]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted_office(tmp_path_factory.mktemp("office")).folder


def played(name: str, office: Path, folder: Path, phase: str, times: int) -> tuple[int, str]:
    """Run a command whose first workers die; its exit code, and what it said."""
    target = folder / ("out.parquet" if name == "sample" else "out")
    environment = dying(folder / "hook", phase, times)
    environment |= {"DPSYNTH_LEDGER": str(office / "ledger.sqlite"), "DPSYNTH_USER": "tester"}
    words = [*COMMANDS[name], "-o", target, "--workers", 2, "--quiet"]
    done = command(office, words, environment)
    return done.returncode, done.stderr


def no_entry_is_open(office: Path) -> bool:
    return not any(entry.open for entry in Ledger(office / "ledger.sqlite").entries())


@pytest.mark.parametrize(("name", "phase"), CASES)
def test_a_command_ends_though_a_worker_died(
    name: str, phase: str, office: Path, tmp_path: Path
) -> None:
    code, words = played(name, office, tmp_path, phase, 1)
    judged = name in ("evaluate", "audit", "run")  # 3: so few people fail internal gates
    assert code in ((0, 3) if judged else (0,)), words
    assert deaths(tmp_path / "hook") == 1
    assert no_entry_is_open(office)


def test_a_fit_whose_workers_all_die_reads_alone(office: Path, tmp_path: Path) -> None:
    code, words = played("fit", office, tmp_path, "interpreter", 99)
    assert code == 0 and deaths(tmp_path / "hook") > 1, words
    assert "This process reads the table again, alone" in " ".join(words.split())
    assert no_entry_is_open(office)


def test_a_sample_whose_workers_all_die_ends_with_an_error(office: Path, tmp_path: Path) -> None:
    code, words = played("sample", office, tmp_path, "interpreter", 99)
    assert code == 1 and "a worker process died" in words
    assert not (tmp_path / "out.parquet").exists()
