"""The command line: exit codes, errors and interrupts."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpsynth.cli import main
from dpsynth.ledger import Ledger
from dpsynth.synthesis import fitting

from ..support.command_line import BUDGET, Cli


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("plan cardioo --epsilon 1 --delta 1e-6", "did you mean 'cardio'"),
        ("plan cardio --epsilon 1 --delta 1e-6 --model tave", "did you mean 'tvae'"),
        ("plann cardio", "did you mean 'plan'"),
        ("schema chek cardio", "did you mean 'check'"),
        ("check cardio", "did you mean 'schema check'"),
        ("schema-check cardio", "did you mean 'schema check'"),
        ("forfiet", "did you mean 'ledger forfeit'"),
        ("schema fit cardio", "did you mean 'dpsynth fit'"),
        ("plan cardio --epsilon 1 --delta 1e-6 --modell tvae", "--model"),
        ("plan cardio --epsilon 1", "--delta"),
        ("plan cardio --epsilon much --delta 1e-6", "much"),
        ("plan cardio --epsilon -1 --delta 1e-6", "epsilon must be"),
        ("plan cardio --epsilon 1 --delta 2", "delta must be"),
        ("plan nowhere.schema.yaml --epsilon 1 --delta 1e-6", "nowhere.schema.yaml does not exist"),
        ("fit demo absent.csv --dataset x --epsilon 1 --delta 1e-6 -o run", "no such file"),
        ("fit demo cohort.csv --epsilon 1 --delta 1e-6 -o run", "--dataset"),
        ("fit cardio cohort.csv --dataset x --epsilon 1 --delta 1e-6 -o run", "lacks"),
        ("fit demo cohort.csv --dataset x --epsilon 1 --delta 1e-6 -o cohort.csv", "exists"),
        ("sample absent -o out.csv", "not a run folder"),
        ("sample absent -o out.xlsx", "not a run folder"),
        ("release absent -o bundle", "not a run folder"),
        ("verify absent", "not a bundle"),
        ("schema show cardioo", "did you mean 'cardio'"),
        ("schema check demo absent.csv", "no such file"),
        ("completion tcsh", "tcsh"),
    ],
)
def test_bad_input_is_exit_code_2(cli: Cli, cohort: Path, arguments: str, message: str) -> None:
    ended = cli(*shlex.split(arguments))
    assert ended.code == 2 and ended.out == ""
    assert message.lower() in ended.err.lower()
    assert "Traceback" not in ended.err
    assert Ledger(cohort.parent / "ledger.sqlite").entries() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate demo absent.csv --synthetic absent.csv", "absent.csv"),
        ("audit demo absent.csv --synthetic absent.csv --holdout absent.csv", "absent.csv"),
        ("compare demo absent.csv one=absent.csv", "absent.csv"),
        ("schema check demo absent.csv", "no such file"),
        ("fit demo absent.csv --dataset x --epsilon 1 --delta 1e-6 -o run", "no such file"),
        ("evaluate folder absent.csv --synthetic absent.csv", "not a run; give a run or a schema"),
    ],
)
def test_a_shipped_schema_is_meant_beside_a_folder_of_its_name(
    cli: Cli, cohort: Path, arguments: str, message: str
) -> None:
    """`dpsynth demo` writes a folder demo: the schema keeps its name."""
    for name in ("demo", "folder"):
        (cohort.parent / name).mkdir()
    outcome = cli(*shlex.split(arguments))
    assert outcome.code == 2 and message in outcome.err
    assert ("not a run" in outcome.err) is ("folder" in arguments)


def test_a_failed_gate_is_exit_code_3(cli: Cli, cohort: Path) -> None:
    fitted = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "--no-ledger", "-o", "r")
    assert fitted.code == 0 and "cannot be released" in fitted.out
    refused = cli("release", "r", "-o", "bundle")
    assert refused.code == 3 and "no-ledger" in refused.err
    assert not Path("bundle").exists()


def test_a_ledger_that_refuses_is_exit_code_4(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the ledger; nothing is fitted without it."""
    monkeypatch.setattr("dpsynth.ledger.database.WAIT_SECONDS", 0)
    with closing(sqlite3.connect(Ledger().location)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert refused.code == 4 and "ledger" in refused.err and refused.out == ""
    assert not Path("run").exists()


def test_a_changed_bundle_is_exit_code_5(cli: Cli, bundle: Path) -> None:
    assert cli("verify", bundle).code == 0
    table = bundle / "data" / "synthetic.csv"
    table.write_text(table.read_text() + "\n")
    refused = cli("verify", bundle)
    assert refused.code == 5 and "data/synthetic.csv" in refused.err and refused.out == ""


def test_an_unexpected_error_is_exit_code_1_and_quotes_nothing(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("could not convert 'Mrs Miller, HIV positive'")

    monkeypatch.setattr(fitting, "fit", fail)
    ended = cli("fit", "demo", cohort, *BUDGET, "-o", "run")
    assert ended.code == 1 and "Miller" not in ended.err + ended.out
    assert "ValueError" in ended.err and "test_cli.py" in ended.err and "DPSYNTH_DEBUG" in ended.err
    monkeypatch.setenv("DPSYNTH_DEBUG", "1")
    with pytest.raises(ValueError, match="Miller"):
        main(["fit", "demo", str(cohort), *BUDGET, "-o", "run"])


def test_out_of_memory_has_a_plain_message(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr(fitting, "fit", fail)
    ended = cli("fit", "demo", cohort, *BUDGET, "-o", "run")
    assert ended.code == 1 and "out of memory" in ended.err


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_a_library_swallows_is_still_one(name: str, tmp_path: Path) -> None:
    """A module that is written in C says that it cannot be imported, whatever interrupted it."""
    code = f"""
import os, signal
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else
                  signal.default_int_handler)
from dpsynth.schema import files
def names(*suffix):
    try:
        os.kill(os.getpid(), signal.{name})
    except KeyboardInterrupt:
        raise ImportError("a cell") from None
files.shipped_names = names
from dpsynth.cli import main; main(["schema", "list"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 128 + getattr(signal, name), done.stderr
    assert "interrupted" in done.stderr and "a cell" not in done.stderr


@pytest.mark.long
def test_an_interrupt_is_exit_code_130_and_says_what_it_cost(cohort: Path) -> None:
    """In the middle of the fit: nothing is left of the run, and the ledger is closed."""
    folder = cohort.parent
    ledger = folder / "state" / "ledger.sqlite"
    ledger.parent.mkdir()
    Ledger.create(ledger)
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth", "fit", "demo", str(cohort), *BUDGET, "-o", "runs/run"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"DPSYNTH_LEDGER": str(ledger), "OMP_NUM_THREADS": "1"},
        # a background job of a shell starts with interrupts ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stderr is not None and process.stdout is not None
    errors = ""
    try:
        for line in process.stderr:
            errors += line
            if line.startswith("mixture"):  # rows have been read, seconds of work are left
                process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        out = process.stdout.read()
    finally:
        process.kill()
    assert "interrupted" in errors and "Traceback" not in errors and out == ""
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())
    (entry,) = Ledger(ledger).entries()
    assert entry.status == "failed" and entry.history[-1].note == "KeyboardInterrupt"
    cost = errors[errors.index("interrupted") :]
    assert "epsilon 3" in cost and "cohort" in cost, "it must say what was charged to whom"


def test_a_polite_kill_is_an_interrupt(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object, **kwargs: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("dpsynth.models.generators.Independent.fit", killed)
    ended = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert ended.code == 143 and "interrupted" in ended.err and "epsilon 3" in ended.err
    assert [entry.status for entry in Ledger().entries()] == ["failed"]
