"""Replicates of a cohort: refits of the run, repeatable, and never released."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Run

from ..support.clinic import clinic_run
from ..support.short_training import shorten_histories


@pytest.fixture(autouse=True)
def quick(small: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refit with few steps, after the run itself was fitted as it is for everybody."""
    shorten_histories(monkeypatch)


@pytest.fixture(scope="module")
def small() -> Run:
    """Return a run that says that there are fewer patients: a refit is quick."""
    run = clinic_run()
    document = run.schema.to_dict()
    document["dpsynth"]["population"]["value"] = 300
    return replace(run, schema=LinkedSchema.from_dict(document))


@pytest.mark.long
def test_replicates_are_repeatable_and_differ(small: Run) -> None:
    first, second = small.replicates(2, 40, seed=1)
    (again, _) = small.replicates(2, 40, seed=1)
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, again[name])
    assert not first["visits"].equals(second["visits"])
    assert len(first["patients"]) == len(second["patients"]) == 40
    drawn = small.sample(40, seed=1)
    assert not first["visits"].equals(drawn["visits"])


def test_numbers_out_of_range_are_refused_before_a_refit(small: Run) -> None:
    with pytest.raises(InputError, match="replicates must be 2 to 100"):
        small.replicates(1, 10)
    with pytest.raises(InputError, match="patients must be"):
        small.replicates(2, 0)


def test_a_run_without_a_plan_has_none(small: Run) -> None:
    with pytest.raises(InputError, match="no plan to repeat"):
        replace(small, certificate=None, stamps=("not-private",)).replicates(2, 5, seed=1)
