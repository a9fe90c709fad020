"""Replicates: refits of a run, from the run alone; repeatable, recorded, never released."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pytest
from click.testing import CliRunner

from dpsynth._util.strict_json import file_digest
from dpsynth.bundle.writer import release
from dpsynth.cli.group import commands
from dpsynth.errors import ArtifactError, DpsynthWarning, GateError, InputError
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.privacy.plan_variants import STAMP as NOT_PRIVATE
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.replicate_files import Replicate, numbered, read_replicates, write_replicates
from dpsynth.synthesis.replicates import STAMP, Replicates, bootstrapped, replicates
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sample_log import read_samples
from dpsynth.synthesis.sampler import Sampler

pytestmark = pytest.mark.filterwarnings("ignore:units have several rows")


def small(max_rows: int = 1) -> Schema:
    basis = "protocol"
    unit = {"max_rows": {"value": max_rows, "basis": basis}} if max_rows > 1 else {}
    key = [{"name": "key", "type": "string", "dpsynth": {"role": "unit"}}] if max_rows > 1 else []
    return Schema.from_dict(
        {
            "name": "small",
            "fields": [
                *key,
                {
                    "name": "age",
                    "type": "integer",
                    "constraints": {"minimum": 18, "maximum": 60, "required": True},
                    "dpsynth": {"bounds_basis": basis},
                },
                {"name": "event", "type": "boolean", "constraints": {"required": True}},
                {"name": "treated", "type": "boolean", "constraints": {"required": True}},
            ],
            "dpsynth": {
                "version": 1,
                "population": {"value": 800, "basis": basis},
                "rows": {"value": 800, "basis": basis},
                **unit,
            },
        }
    )


def fitted(model: str, max_rows: int = 1) -> Run:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 61, 800)
    table = pd.DataFrame(
        {
            "key": rng.integers(0, 500, 800).astype(str),
            "age": age,
            "event": rng.random(800) < age / 80,
            "treated": rng.random(800) < 0.25,
        }
    )
    return fitting.fit(
        table,
        small(max_rows),
        epsilon=3.0,
        delta=1e-6,
        dataset="small",
        model=model,
        without_ledger=True,
        entropy=SeededEntropy(1),
    )


@pytest.fixture(scope="module")
def independent() -> Run:
    return fitted("independent")


@pytest.fixture(scope="module")
def mixture() -> Run:
    return fitted("mixture")


# From the run alone ----------------------------------------------------------------------------


def test_a_run_folder_is_enough_and_nothing_else_is_touched(
    mixture: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table is opened, no ledger: each would raise, and none is there."""

    def forbidden(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a replicate read something")

    folder = mixture.save(tmp_path / "run")
    ledger = tmp_path / "state" / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(ledger))
    for name in (
        "dpsynth.tables.table.open_table",
        "dpsynth.synthesis.fitting.open_table",
        "dpsynth.synthesis.fitting.read_cohort",
        "dpsynth.encoding.cohort.read_cohort",
        "dpsynth.ledger.ledger.Ledger.__init__",
    ):
        monkeypatch.setattr(name, forbidden)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(write_replicates(folder, 2, tmp_path / "out.parquet", rows=100, seed=1)) == 2
    assert not ledger.parent.exists()
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.pop("replicates.json") and after == before


@pytest.mark.parametrize(
    ("model", "max_rows"),
    [
        ("independent", 3),
        ("mixture", 3),
        pytest.param("tvae", 1, marks=pytest.mark.long),
    ],
)
def test_generators_of_each_kind_are_refitted(model: str, max_rows: int) -> None:
    run = fitted(model, max_rows)
    one, two = replicates(run, 2, 50, seed=3)
    assert list(one.columns) == [column.name for column in run.schema.modelled]
    assert len(one) == len(two) == 50
    assert not one.equals(two)


# Repeatable, distinct --------------------------------------------------------------------------


def test_a_seed_repeats_replicates_whatever_their_number(mixture: Run) -> None:
    two, three = mixture.replicates(2, 200, seed=5), mixture.replicates(3, 200, seed=5)
    for one, again in zip(two, three, strict=False):
        pd.testing.assert_frame_equal(one, again)
    other = mixture.replicates(2, 200, seed=6)
    tables = [*three, *other, mixture.sample(200, seed=5, plain=True)]
    assert not any(tables[i].equals(tables[j]) for i in range(6) for j in range(i))


def test_without_a_seed_replicates_are_fresh(independent: Run) -> None:
    assert not independent.replicates(2, 100)[0].equals(independent.replicates(2, 100)[0])


def test_as_many_rows_as_the_schema_declares(independent: Run) -> None:
    assert [len(table) for table in independent.replicates(2)] == [800, 800]


# What a refit is -------------------------------------------------------------------------------


def test_a_refit_is_stamped_and_else_like_the_run(independent: Run, tmp_path: Path) -> None:
    refit = Replicates.of(independent, seed=1).refit(1)
    assert refit.stamps == (*independent.stamps, STAMP)
    assert (refit.model, refit.schema) == (independent.model, independent.schema)
    assert refit.certificate == independent.certificate
    shares, other = refit.arrays["shares"], independent.arrays["shares"]
    assert shares.shape == other.shape and not np.array_equal(shares, other)
    folder = replace(refit, stamps=(STAMP,)).save(tmp_path / "refit")
    with pytest.raises(GateError, match=STAMP):
        release(folder, tmp_path / "bundle")


def test_the_rows_of_a_replicate_are_independent_draws_of_its_refit(independent: Run) -> None:
    refits = Replicates.of(independent, seed=1)
    rows = pd.concat(refits.frames(2, 500), ignore_index=True)
    plain, even = (
        pd.concat(
            Sampler.of(refits.refit(2), plain=kind).frames(500, seed=refits._seeds(2)[2]),
            ignore_index=True,
        )
        for kind in (True, False)
    )
    pd.testing.assert_frame_equal(rows, plain)
    assert not rows.equals(even)


def test_refits_vary_by_patients_and_by_noise(independent: Run) -> None:
    """The share of one of two codes: var = p (1 - p) / n + 2 sigma^2 p (1 - p) / n^2, roughly.

    Noise of variance sigma^2 falls on both counts, a and n - a, and the share is a / (a + b): its
    derivatives are (1 - p) / n and -p / n.
    """
    refits, units = Replicates.of(independent, seed=2), 800
    sizes = Sampler.of(independent).codec.sizes
    place = sum(sizes[:2])  # of the first code of treated
    p = float(independent.arrays["shares"][place])
    shares = [refits.refit(number).arrays["shares"][place] for number in range(1, 301)]
    certificate = independent.certificate
    assert certificate is not None
    sigma = certificate["events"][0]["sigma"]
    patients = p * (1 - p) / units
    noise = sigma**2 * ((1 - p) ** 2 + p**2) / units**2
    assert np.mean(shares) == pytest.approx(p, abs=4 * np.sqrt((patients + noise) / 300))
    assert np.var(shares) == pytest.approx(patients + noise, rel=0.35)  # 4 standard errors
    assert noise > 0


def test_a_bootstrapped_cohort_has_the_public_size(made_run: Run) -> None:
    """500 units with at most 2 rows, 700 rows; rules are kept, padding comes last."""
    cohort = bootstrapped(made_run, seed=1)
    assert cohort.codes.shape[:2] == (500, 2)
    assert cohort.mask.sum() == 700 and cohort.mask[:, 0].all()
    assert not cohort.codes[~cohort.mask].any()
    sampler = Sampler.of(made_run)
    frame = sampler.codec.decode(cohort.codes[cohort.mask], np.random.default_rng(1))
    assert len(sampler.rules) == 1 and sampler.rules[0].holds(frame).all()


def test_codes_are_those_of_the_frames(made_run: Run) -> None:
    sampler = Sampler.of(made_run, plain=True)
    frame = pd.concat(sampler.frames(5000, seed=3), ignore_index=True)
    assert np.array_equal(sampler.codec.encode(frame), sampler.codes(5000, seed=3))


def test_several_rows_of_a_unit_are_warned_of(made_run: Run, independent: Run) -> None:
    with pytest.warns(DpsynthWarning, match="will be too small"):
        replicates(made_run, 2, 10, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replicates(independent, 2, 10, seed=1)


# Files and records -----------------------------------------------------------------------------


def test_replicates_are_recorded_apart_from_samples(run_folder: Path, tmp_path: Path) -> None:
    records = write_replicates(run_folder, 3, tmp_path / "out.csv", rows=20, seed=4)
    assert records == read_replicates(run_folder)
    assert [one.file for one in records] == ["out-1.csv", "out-2.csv", "out-3.csv"]
    assert [one.sha256 for one in records] == [file_digest(tmp_path / one.file) for one in records]
    assert [(one.rows, one.seed, one.number, one.condition) for one in records] == [
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
