"""Replicates on disk and by command: recorded, never released, refused in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pandas.testing
import pytest
from click.testing import CliRunner

from dpsynth._util.strict_json import file_digest
from dpsynth.bundle.writer import release
from dpsynth.cli.group import commands
from dpsynth.errors import ArtifactError, GateError, InputError
from dpsynth.privacy.plan_variants import STAMP as NOT_PRIVATE
from dpsynth.synthesis.replicate_files import Replicate, numbered, read_replicates, write_replicates
from dpsynth.synthesis.replicates import Replicates
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sample_log import read_samples

pytestmark = pytest.mark.filterwarnings("ignore:units have several rows")


# Files and records -----------------------------------------------------------------------------


def test_replicates_are_recorded_apart_from_samples(run_folder: Path, tmp_path: Path) -> None:
    records = write_replicates(run_folder, 3, tmp_path / "out.csv", rows=20, seed=4)
    assert records == read_replicates(run_folder)
    assert [record.file for record in records] == ["out-1.csv", "out-2.csv", "out-3.csv"]
    assert [record.sha256 for record in records] == [
        file_digest(tmp_path / record.file) for record in records
    ]
    assert [(record.rows, record.seed, record.number, record.condition) for record in records] == [
        (20, 4, number, None) for number in (1, 2, 3)
    ]
    assert read_samples(run_folder) == ()
    more = write_replicates(run_folder, 2, tmp_path / "b.csv", rows=20, seed=4, where="age > 50")
    assert read_replicates(run_folder) == (*records, *more)
    assert (pd.read_csv(tmp_path / "b-2.csv")["age"] > 50).all()


def test_a_replicate_is_not_released(run_folder: Path, tmp_path: Path) -> None:
    write_replicates(run_folder, 2, tmp_path / "out.parquet", rows=20, seed=4)
    with pytest.raises(GateError, match=r"not recorded in .*samples\.json"):
        release(run_folder, tmp_path / "bundle", table=tmp_path / "out-2.parquet")
    assert release(run_folder, tmp_path / "bundle", rows=20)  # the run itself still is


def test_files_hold_what_the_frames_hold(independent: Run, tmp_path: Path) -> None:
    folder = independent.save(tmp_path / "run")
    write_replicates(folder, 2, tmp_path / "out.parquet", rows=60, seed=9)
    for number, frame in enumerate(independent.replicates(2, 60, seed=9), start=1):
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"out-{number}.parquet"), frame)


def test_names_of_files() -> None:
    assert [str(path) for path in numbered("a/b.c.csv.gz", 2)] == [
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
        ({"rows": 0}, "rows must be at least 1"),
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
    "file": "a.csv",
    "sha256": "ab",
    "rows": 3,
    "seed": 1,
    "number": 1,
    "condition": None,
}


@pytest.mark.parametrize(
    "change",
    [
        {"format": "dpsynth-samples"},
        {"version": 2},
        {"more": 1},
        {"replicates": {}},
        {"replicates": [{"file": "a"}]},
        {
            "replicates": [
                {"file": "a", "sha256": "", "rows": 0, "seed": 1, "number": 1, "condition": None}
            ]
        },
    ],
)
def test_a_damaged_record_is_refused(run_folder: Path, change: dict[str, Any]) -> None:
    document = {"format": "dpsynth-replicates", "version": 1, "replicates": [GOOD]}
    (run_folder / "replicates.json").write_text(json.dumps(document))
    assert read_replicates(run_folder) == (Replicate(**GOOD),)
    (run_folder / "replicates.json").write_text(json.dumps({**document, **change}))
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
