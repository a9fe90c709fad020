"""Replicates on disk and by command: recorded, never released, refused in words."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pandas.testing
import pytest
from click.testing import CliRunner

from dpsynth._util.strict_json import file_digest
from dpsynth.bundle import release
from dpsynth.cli.group import commands
from dpsynth.errors import ArtifactError, GateError, InputError
from dpsynth.models.histories import CohortGenerator
from dpsynth.privacy.plan import STAMP as NOT_PRIVATE
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.synthesis import (
    Run,
    Sample,
    fit,
    read_replicates,
    read_samples,
    write_replicates,
)
from dpsynth.synthesis.replicates import Replicates
from dpsynth.synthesis.workers import numbered
from dpsynth.tables import simulate_cohort

from ..support.short_training import shorten_histories

pytestmark = pytest.mark.filterwarnings("ignore:units have several rows")


# Files and records -----------------------------------------------------------------------------


def test_replicates_are_recorded_apart_from_samples(run_folder: Path, tmp_path: Path) -> None:
    records = write_replicates(run_folder, 3, tmp_path / "out.csv", size=20, seed=4)
    assert records == read_replicates(run_folder)
    assert [record.name for record in records] == ["out-1.csv", "out-2.csv", "out-3.csv"]
    assert [record.sha256 for record in records] == [
        file_digest(tmp_path / record.name) for record in records
    ]
    assert [(one.size, one.seed, one.replicate, one.condition) for one in records] == [
        (20, 4, number, None) for number in (1, 2, 3)
    ]
    assert read_samples(run_folder) == ()
    more = write_replicates(run_folder, 2, tmp_path / "b.csv", size=20, seed=4, where="age > 50")
    assert read_replicates(run_folder) == (*records, *more)
    assert (pd.read_csv(tmp_path / "b-2.csv")["age"] > 50).all()


def test_a_replicate_is_not_released(run_folder: Path, tmp_path: Path) -> None:
    write_replicates(run_folder, 2, tmp_path / "out.parquet", size=20, seed=4)
    with pytest.raises(GateError, match=r"not recorded in .*samples\.json"):
        release(run_folder, tmp_path / "bundle", table=tmp_path / "out-2.parquet")
    assert release(run_folder, tmp_path / "bundle", size=20)  # the run itself still is


def test_files_hold_what_the_frames_hold(independent: Run, tmp_path: Path) -> None:
    folder = independent.save(tmp_path / "run")
    write_replicates(folder, 2, tmp_path / "out.parquet", size=60, seed=9)
    for number, frame in enumerate(independent.replicates(2, 60, seed=9), start=1):
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"out-{number}.parquet"), frame)


def test_names_of_files() -> None:
    assert [str(path) for path in numbered("a/b.c.csv.gz", 2, Schema.load("demo"))] == [
        "a/b.c-1.csv.gz",
        "a/b.c-2.csv.gz",
    ]


# Refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [-1, 0, 1, 101])
def test_numbers_of_replicates_that_are_refused(made_run: Run, m: int) -> None:
    with pytest.raises(InputError, match="replicates must be 2 to 100"):
        made_run.replicates(m)


def test_a_run_without_privacy_has_no_plan(made_run: Run) -> None:
    bare = replace(made_run, certificate=None, stamps=(NOT_PRIVATE,))
    with pytest.raises(InputError, match="no plan to repeat"):
        bare.replicates(2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 1}, "replicates must be 2 to 100"),
        ({"size": 0}, "rows must be at least 1"),
        ({"seed": -1}, "seed must lie"),
        ({"where": "height > 2"}, "height"),
        ({"output": "out.xlsx"}, "unknown kind of table"),
        ({"output": "there.csv"}, "there-2.csv exists"),
    ],
)
def test_what_is_wrong_is_told_before_the_first_refit(
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    words: str,
) -> None:
    def forbidden(self: Replicates, number: int) -> Run:
        raise AssertionError("a refit")

    monkeypatch.setattr(Replicates, "refit", forbidden)
    (tmp_path / "there-2.csv").write_text("mine")
    chosen = {"m": 2, "output": "out.csv", **options}
    with pytest.raises(InputError, match=words):
        write_replicates(run_folder, chosen.pop("m"), tmp_path / chosen.pop("output"), **chosen)
    assert (tmp_path / "there-2.csv").read_text() == "mine"
    assert not (tmp_path / "there-1.csv").exists()
    assert read_replicates(run_folder) == ()


GOOD: dict[str, Any] = {
    "name": "a.csv",
    "tables": {"synthetic": "ab" * 32},
    "suffix": ".csv",
    "size": 3,
    "seed": 1,
    "condition": None,
    "plain": True,
    "replicate": 1,
    "rules": [],
}


@pytest.mark.parametrize(
    "change",
    [
        {"format": "dpsynth-replicates"},
        {"version": 2},
        {"more": 1},
        {"samples": {}},
        {"samples": [{"name": "a"}]},
        {"samples": [GOOD | {"size": 0}]},
        {"samples": [GOOD | {"tables": {"synthetic": "ab"}}]},
        {"samples": [GOOD | {"suffix": ".xlsx"}]},
        {"samples": [GOOD | {"replicate": 0}]},
        {"samples": [GOOD | {"rules": [{"rule": "a < b"}]}]},
    ],
)
def test_a_damaged_record_is_refused(run_folder: Path, change: dict[str, Any]) -> None:
    document = {"format": "dpsynth-samples", "version": 1, "samples": [GOOD]}
    (run_folder / "samples.json").write_text(json.dumps(document))
    assert read_replicates(run_folder) == (Sample(**GOOD | {"rules": ()}),)
    (run_folder / "samples.json").write_text(json.dumps({**document, **change}))
    with pytest.raises(ArtifactError):
        read_replicates(run_folder)


# The command -----------------------------------------------------------------------------------


def test_the_command(run_folder: Path, tmp_path: Path) -> None:
    call = ["sample", str(run_folder), "--replicates", "2", "--rows", "30", "--seed", "8", "-o"]
    done = CliRunner().invoke(commands, [*call, str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert "out-1.csv" in done.stdout and "not a replicate" in done.stdout
    assert "dpsynth.eval.combine" in done.stderr
    again = CliRunner().invoke(commands, [*call, str(tmp_path / "b.csv"), "--json"])
    document = json.loads(again.stdout)
    assert document["kind"] == "dpsynth.replicates" and document["seed"] == 8
    for number in (1, 2):
        copies = [(tmp_path / f"{name}-{number}.csv").read_bytes() for name in ("out", "b")]
        assert copies[0] == copies[1]
    assert not (tmp_path / "out.csv").exists()


# Linked tables ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def quick_histories() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        yield


@functools.cache
def few_patients() -> Run:
    """Return a run of a clinic that says that there are few patients: a refit is quick."""
    document = LinkedSchema.load("clinic").to_dict()
    document["dpsynth"]["population"]["value"] = 300
    schema = LinkedSchema.from_dict(document)
    budget: dict[str, Any] = {"epsilon": 3, "delta": 1e-5, "dataset": "clinic"}
    budget |= {"model": "cohort", "without_ledger": True}
    return fit(simulate_cohort(300, seed=1), schema, **budget)


@pytest.fixture
def cohort_folder(tmp_path: Path) -> Path:
    """A saved run of linked tables of the test's own."""
    few_patients().save(tmp_path / "clinic")
    return tmp_path / "clinic"


@pytest.mark.long
def test_replicates_of_linked_tables_are_folders(cohort_folder: Path, tmp_path: Path) -> None:
    command = ["sample", str(cohort_folder), "--replicates", "2", "--patients", "30", "--seed", "5"]
    result = CliRunner().invoke(commands, [*command, "-o", str(tmp_path / "cohort"), "--json"])
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["folders"] == [str(tmp_path / name) for name in ("cohort-1", "cohort-2")]
    records = read_replicates(cohort_folder)
    assert [(one.name, one.size, one.seed, one.replicate) for one in records] == [
        ("cohort-1", 30, 5, 1),
        ("cohort-2", 30, 5, 2),
    ]
    assert said["sha256"] == [one.tables for one in records]
    assert read_samples(cohort_folder) == ()
    drawn = Run.load(cohort_folder).replicates(2, 30, seed=5)
    for place, frames in zip(said["folders"], drawn, strict=True):
        visits = pd.read_csv(Path(place, "synthetic-visits.csv"))
        assert len(visits) == len(frames["visits"])
        patients = pd.read_csv(Path(place, "synthetic-patients.csv"))
        assert set(visits["patient"]) <= set(patients["patient"])
    with pytest.raises(GateError, match=r"stamped|not recorded"):
        release(cohort_folder, tmp_path / "bundle", table=tmp_path / "cohort-2")


def test_patients_of_replicates_are_independent_draws(
    cohort_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    sample, fit = CohortGenerator.sample, CohortGenerator.fit

    def watched(self: Any, patients: int, rng: Any, *, even: bool = True) -> Any:
        asked.append(even)
        return sample(self, patients, rng, even=even)

    def fitted(*arguments: Any) -> Any:
        found, before = fit(*arguments), asked[:-1]  # how numbers are rounded has draws of its own
        asked[:] = before
        return found

    monkeypatch.setattr(CohortGenerator, "sample", watched)
    monkeypatch.setattr(CohortGenerator, "fit", fitted)
    write_replicates(cohort_folder, 2, tmp_path / "cohort", size=10)
    assert len(asked) == 4 and not any(asked)  # both the table that is refitted and the replicate
    Run.load(cohort_folder).replicates(2, 10)
    assert len(asked) == 8 and not any(asked)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rows", "5"], "--rows is for a run of one table"),
        (["--where", "x == 1"], "x"),
        (["--like", "rows.csv"], "completes rows of one table"),
        (["--patients", "0"], "patients must be at least 1, not 0"),
        (["--replicates", "1"], "replicates must be 2 to 100, not 1"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_what_replicates_of_linked_tables_refuse(
    cohort_folder: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    command = ["sample", str(cohort_folder), "--replicates", "2", *options]
    result = CliRunner().invoke(commands, [*command, "-o", str(tmp_path / "cohort")])
    assert result.exit_code and words in f"{result.output}{result.exception}"
    assert not (tmp_path / "cohort-1").exists()


def test_a_folder_that_exists_stops_before_a_refit(cohort_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cohort-2").mkdir()
    with pytest.raises(InputError, match="cohort-2 exists"):
        write_replicates(cohort_folder, 2, tmp_path / "cohort", size=10)
    assert not (tmp_path / "cohort-1").exists()


def test_a_run_of_linked_tables_without_privacy_has_no_replicates(
    cohort_folder: Path, tmp_path: Path
) -> None:
    run = replace(Run.load(cohort_folder), certificate=None, stamps=(NOT_PRIVATE,))
    run.save(tmp_path / "other")
    with pytest.raises(InputError, match="no plan to repeat"):
        write_replicates(tmp_path / "other", 2, tmp_path / "cohort", size=10)


def test_force_replaces_a_cohort_and_nothing_else(cohort_folder: Path, tmp_path: Path) -> None:
    """As for one table; but a folder with any other file in it is not replaced."""
    target = tmp_path / "drawn"
    command = ["sample", str(cohort_folder), "--patients", "30", "-o", str(target), "--seed"]

    def sampled(*options: str) -> str:
        result = CliRunner().invoke(commands, [*command, *options])
        return "" if result.exit_code == 0 else f"{result.output}{result.exception}"

    assert sampled("1") == ""
    first = {path.name: path.read_bytes() for path in target.iterdir()}
    assert "exists; choose another name" in sampled("2")
    assert {path.name: path.read_bytes() for path in target.iterdir()} == first
    assert sampled("2", "--force", "--format", "parquet") == ""
    assert {path.suffix for path in target.iterdir()} == {".parquet", ".txt"}
    assert "no row describes a real person" in (target / "SYNTHETIC.txt").read_text()
    assert not list(tmp_path.glob(".tmp-*"))
    (target / "notes.txt").write_text("mine")
    assert "--force does not replace it" in sampled("3", "--force")
    assert (target / "notes.txt").read_text() == "mine"
    (tmp_path / "link").symlink_to(target)
    (target / "notes.txt").unlink()
    command[-2] = str(tmp_path / "link")
    assert "is not replaced" in sampled("4", "--force")
    command[-2] = str(tmp_path / "source")
    (tmp_path / "source").mkdir()
    private = tmp_path / "source" / "synthetic-visits.csv"
    private.write_text("patient,visit\n1,2\n")
    assert "is not recorded in" in sampled("5", "--force")
    assert "is not recorded in" in sampled("5", "--force", "--format", "parquet")
    assert private.read_text() == "patient,visit\n1,2\n"
