"""A command whose workers are killed ends: with its result, or with an error and a closed entry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.ledger import Ledger
from dpsynth.synthesis.sampler import BLOCK

from ..support.audited_office import fitted_office
from ..support.command_line import Cli
from ..support.dying_workers import PHASES, command, deaths, dying, ends_in_time

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
QUICK = [("fit", "interpreter"), ("sample", "working")]
REPEATED = [
    one
    for one in (*itertools.product(("fit", "sample", "evaluate"), EVERYWHERE),
                *itertools.product(("audit", "run"), ("interpreter", "unpacking", "working")))
    if one not in QUICK
]  # fmt: skip
Played = Callable[[str, str, int], tuple[int, str]]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted_office(tmp_path_factory.mktemp("office")).folder


def words_of(name: str, folder: Path) -> list[object]:
    target = folder / ("out.parquet" if name == "sample" else "out")
    return [*COMMANDS[name], "-o", target, "--workers", 2, "--quiet"]


def environment_of(office: Path, folder: Path, phase: str, times: int) -> dict[str, str]:
    own = {"DPSYNTH_LEDGER": str(office / "ledger.sqlite"), "DPSYNTH_USER": "tester"}
    return dying(folder / "hook", phase, times) | own


@pytest.fixture
def played(
    command_line: Cli, office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Played:
    """Run a command of this process whose first workers die; its exit code, and what it said."""

    def run(name: str, phase: str, times: int) -> tuple[int, str]:
        for variable, value in environment_of(office, tmp_path, phase, times).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.chdir(office)
        with ends_in_time(name):
            done = command_line(*words_of(name, tmp_path))
        return done.code, done.err

    return run


def no_entry_is_open(office: Path) -> bool:
    return not any(entry.open for entry in Ledger(office / "ledger.sqlite").entries())


def check_ended(name: str, code: int, words: str, office: Path, folder: Path) -> None:
    judged = name in ("evaluate", "audit", "run")  # 3: so few people fail internal gates
    assert code in ((0, 3) if judged else (0,)), words
    assert deaths(folder / "hook") == 1
    assert no_entry_is_open(office)


@pytest.mark.parametrize(("name", "phase"), QUICK)
def test_a_command_ends_though_a_worker_died(
    name: str, phase: str, office: Path, tmp_path: Path, played: Played
) -> None:
    check_ended(name, *played(name, phase, 1), office, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("name", "phase"), REPEATED)
def test_a_command_of_a_terminal_ends_though_a_worker_died(
    name: str, phase: str, office: Path, tmp_path: Path
) -> None:
    done = command(office, words_of(name, tmp_path), environment_of(office, tmp_path, phase, 1))
    check_ended(name, done.returncode, done.stderr, office, tmp_path)


def test_a_fit_whose_workers_all_die_reads_alone(
    office: Path, tmp_path: Path, played: Played
) -> None:
    code, words = played("fit", "interpreter", 99)
    assert code == 0 and deaths(tmp_path / "hook") > 1, words
    assert "This process reads the table again, alone" in " ".join(words.split())
    assert no_entry_is_open(office)


def test_a_sample_whose_workers_all_die_ends_with_an_error(tmp_path: Path, played: Played) -> None:
    code, words = played("sample", "interpreter", 99)
    assert code == 1 and "a worker process died" in words
    assert not (tmp_path / "out.parquet").exists()
