"""`release`, `verify` and `sign` of linked tables: by the same commands as of a single one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle import close_entry, dpia_of, release, verify
from dpsynth.bundle.evidence import evidence_of
from dpsynth.errors import BudgetError, GateError
from dpsynth.ledger import Ledger
from dpsynth.schema import published_tables
from dpsynth.synthesis import Run
from dpsynth.tables import write_linked

from ...support.clinic_office import TableForger
from ...support.some_cases import some_of

TABLES = ("patients", "visits", "labs", "events")
Files = Callable[[Path], dict[str, bytes]]


@pytest.fixture
def commands(office: Path, command_line: Callable[..., Any], monkeypatch: Any) -> Any:
    """The command line, in the office, with its ledger at hand."""
    monkeypatch.chdir(office)
    monkeypatch.setenv("DPSYNTH_LEDGER", str(office / "ledger.sqlite"))
    return command_line


def test_a_bundle_has_two_files_for_each_table(cohort_bundle: Path, files_of: Files) -> None:
    tables = {
        f"data/synthetic-{name}{suffix}" for name in TABLES for suffix in (".parquet", ".csv")
    }
    others = {"CARD.md", "croissant.json", "datapackage.json", "privacy.json", "report.html"}
    others |= {"schema.json", "data/SYNTHETIC.txt"}
    assert set(files_of(cohort_bundle)) == tables | others
    header = read_document(cohort_bundle / "datapackage.json")["dpsynth"]
    assert header["version"] == 1
    assert set(header["drawing"]) == {
        "model",
        "run_sha256",
        "size",
        "seed",
        "condition",
        "plain",
        "rules",
    }


def test_the_tables_are_those_that_the_run_draws(office: Path, cohort_bundle: Path) -> None:
    run = Run.load(office / "run")
    cohort = run.sample(60, seed=7)
    write_linked([cohort], office / "drawn", published_tables(run.schema))
    for name in TABLES:
        typed = pd.read_parquet(cohort_bundle / f"data/synthetic-{name}.parquet")
        assert len(typed) == len(cohort[name])
        drawn = (office / f"drawn/synthetic-{name}.csv").read_bytes()
        assert drawn == (cohort_bundle / f"data/synthetic-{name}.csv").read_bytes()


def test_independent_patients_are_drawn_recorded_and_released_as_such(
    office: Path, commands: Any
) -> None:
    """Of several processes as of one; what is said of stratified draws is then not said."""
    line = ("sample", "run", "--patients", "60", "--seed", "7", "--plain", "-o", "plain")
    assert commands(*line).code == 0
    run = Run.load(office / "run")
    drawn = run.sample(60, seed=7, plain=True)
    assert not drawn["patients"].equals(run.sample(60, seed=7)["patients"])
    write_linked([drawn], office / "expected", published_tables(run.schema))
    for name in TABLES:
        files = [office / folder / f"synthetic-{name}.csv" for folder in ("plain", "expected")]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert commands("release", "run", "--table", "plain", "-o", "independent").code == 0
    assert commands("verify", "independent").code == 0
    header = read_document(office / "independent/datapackage.json")["dpsynth"]
    assert header["drawing"]["plain"] is True
    cards = [(office / folder / "CARD.md").read_text() for folder in ("bundle", "independent")]
    assert ["stratified" in card for card in cards] == [True, False]


@pytest.mark.long
def test_the_same_run_and_seed_give_the_same_bytes(office: Path, files_of: Files) -> None:
    again = release(office / "run", office / "again", size=60, seed=7)
    assert files_of(again) == files_of(office / "bundle")


@pytest.mark.parametrize("suffix", some_of(["csv", "csv.gz", "parquet"], every=2))
def test_a_cohort_that_was_drawn_earlier_is_released_unchanged(
    office: Path, commands: Any, suffix: str, files_of: Files
) -> None:
    line = ("sample", "run", "--patients", "60", "--seed", "7", "-o", "cohort")
    assert commands(*line, "--format", suffix).code == 0
    outcome = commands("release", "run", "--table", "cohort", "-o", "taken", "--json")
    assert outcome.code == 0, outcome.err
    assert "data/synthetic-labs.parquet" in outcome.json["files"]
    assert files_of(office / "taken") == files_of(office / "bundle")


def test_a_cohort_that_is_not_recorded_is_refused(office: Path, commands: Any) -> None:
    assert commands("sample", "run", "--patients", "9", "--seed", "7", "-o", "cohort").code == 0
    path = office / "cohort/synthetic-visits.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    outcome = commands("release", "run", "--table", "cohort", "-o", "taken")
    assert outcome.code == 3
    assert "cohort is not recorded in run/samples.json as drawn from this run" in outcome.err
    assert not (office / "taken").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rows", "9"), "is for a run of one table; give --patients"),
        (("--patients", "0"), "patients must be at least 1"),
        (("--table", "run", "--seed", "1"), "give either a table, or a size and a seed"),
        (("--table", "nothing"), "nothing does not exist"),
        (("--table", "run"), "has no file for table patients"),
    ],
)
def test_what_cannot_be_released_is_refused(
    office: Path, commands: Any, options: tuple[str, ...], words: str
) -> None:
    outcome = commands("release", "run", *options, "-o", "new")
    assert outcome.code == 2 and words in outcome.err
    assert not (office / "new").exists()


def test_figures_of_a_single_table_do_not_go_along(
    office: Path, quality_beside: Callable[[Path], None]
) -> None:
    quality_beside(office / "run")
    with pytest.raises(GateError, match="has figures of a single table; remove the file"):
        release(office / "run", office / "new", size=9)


@pytest.fixture
def quality_beside() -> Callable[[Path], None]:
    """Put quality figures beside a run."""
    from dpsynth.bundle.format import Quality, write_quality

    def put(run: Path) -> None:
        write_quality(run / "quality.json", Quality("a" * 64, rows=9, event="x", note="x"))

    return put


@pytest.mark.long
def test_a_large_table_is_parquet_alone(
    office: Path, monkeypatch: pytest.MonkeyPatch, files_of: Files
) -> None:
    for module in ("writer", "checks.tables"):
        monkeypatch.setattr(f"dpsynth.bundle.{module}.MAX_CSV_ROWS", 100)
    bundle = release(office / "run", office / "new", size=60, seed=7)
    files = files_of(bundle)
    assert "data/synthetic-visits.csv" not in files and "data/synthetic-patients.csv" in files
    verify(bundle)


def test_the_ledger_permits_and_records_the_release(office: Path, cohort_bundle: Path) -> None:
    ledger = Ledger(office / "ledger.sqlite")
    [entry] = ledger.entries()
    assert [one.manifest for one in entry.releases] == [evidence_of(cohort_bundle).manifest]
    assert any("the ledger matches" in line for line in verify(cohort_bundle, ledger=ledger))
    assert evidence_of(office / "run").run == entry.run
    with pytest.raises(BudgetError, match="already"):
        close_entry(ledger, office / "run")


def test_another_ledger_does_not_permit_it(office: Path, tmp_path: Path) -> None:
    other = Ledger.create(tmp_path / "other.sqlite")
    with pytest.raises(BudgetError, match="charged this run and decides on its release"):
        release(office / "run", office / "new", size=9, ledger=other)


def test_a_run_that_no_ledger_charged_is_refused(office: Path, tmp_path: Path) -> None:
    from ...support.clinic import clinic_run

    clinic_run().save(tmp_path / "free")
    with pytest.raises(GateError, match="no-ledger"):
        release(tmp_path / "free", tmp_path / "new", size=9)


def test_a_bundle_is_verified_and_signed_by_the_commands(office: Path, commands: Any) -> None:
    outcome = commands("verify", "bundle", "--ledger", "--json")
    assert outcome.code == 0 and outcome.json["verified"] is True
    assert commands("keygen", "office.key", "--no-passphrase").code == 0
    assert commands("sign", "bundle", "--key", "office.key").code == 0
    assert commands("verify", "bundle", "--key", "office.key.pub").code == 0
    TableForger(office / "bundle").retable("events", lambda frame: frame.iloc[:-1])
    outcome = commands("verify", "bundle", "--key", "office.key.pub")
    assert outcome.code == 5 and "datapackage.json.sig" in outcome.err
    assert commands("sign", "bundle", "--key", "office.key", "--force").code == 5


def test_an_assessment_is_drafted_from_run_and_bundle(office: Path, cohort_bundle: Path) -> None:
    for folder in (office / "run", cohort_bundle):
        text = " ".join(dpia_of(folder))
        assert "From the linked tables 'Simulated outpatients and their follow-up'" in text
        assert "at most 24 rows of table visits, chosen at random" in text
        assert "the first day of each of 3 events of table events" in text


@pytest.mark.long
def test_a_bundle_is_verified_without_the_libraries(cohort_bundle: Path, tmp_path: Path) -> None:
    from ...project.test_light_install import without_full

    shutil.copytree(cohort_bundle, tmp_path / "bundle")
    program = "import sys; from dpsynth.cli import main; main(['verify', 'bundle'])"
    done = without_full(program, tmp_path)
    assert done.returncode == 0 and "bundle verified" in done.stdout, done.stderr
