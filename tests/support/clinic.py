"""A small simulated clinic and a run of it, shared by the tests of linked tables."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd
import pytest

from dpsynth.encoding import HistoryCodec
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Run, fit
from dpsynth.tables import simulate_cohort

from .short_training import shorten_histories, shorten_networks

PATIENTS = 1_000


@functools.cache
def clinic_schema() -> LinkedSchema:
    """Return the schema."""
    return LinkedSchema.load("clinic")


@functools.cache
def clinic_codec() -> HistoryCodec:
    """Return its codec."""
    return HistoryCodec(clinic_schema())


@functools.cache
def clinic_tables() -> dict[str, pd.DataFrame]:
    """Return the tables of some patients; nobody changes them."""
    return simulate_cohort(PATIENTS, seed=4)


@functools.cache
def clinic_run() -> Run:
    """Return a run of them that learned little, charged nowhere."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        shorten_networks(patch)
        return fit(
            clinic_tables(), "clinic", epsilon=3, delta=1e-5, dataset="clinic", without_ledger=True
        )


def write_clinic(folder: Path, tables: dict[str, pd.DataFrame] | None = None) -> Path:
    """Write the tables as a hospital would: a file for each, in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (tables or clinic_tables()).items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder
