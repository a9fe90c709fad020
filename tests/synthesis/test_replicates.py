"""Replicates: refits of a run, from the run alone; repeatable, and each with noise of its own."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pytest

from dpsynth.bundle import release
from dpsynth.errors import DpsynthWarning, GateError
from dpsynth.synthesis import Run, Sampler, bootstrapped, write_replicates
from dpsynth.synthesis.replicates import STAMP, Replicates, replicates

from ..support.small_cohort import fitted

pytestmark = pytest.mark.filterwarnings("ignore:units have several rows")


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
        "dpsynth.synthesis.readers.open_table",
        "dpsynth.synthesis.readers.read_cohort",
        "dpsynth.encoding.cohort.read_cohort",
        "dpsynth.ledger.Ledger.__init__",
    ):
        monkeypatch.setattr(name, forbidden)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(write_replicates(folder, 2, tmp_path / "out.parquet", size=100, seed=1)) == 2
    assert not ledger.parent.exists()
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.pop("samples.json") and after == before


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


@pytest.mark.long
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


@pytest.mark.long
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
