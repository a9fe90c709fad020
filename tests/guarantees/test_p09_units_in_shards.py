"""P09: where rows lie on a disk, a unit is one number of the draw, and it comes with its rows."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.encoding import (
    Codec,
    Cohort,
    Lookup,
    ShardedRows,
    StoredRows,
    UnitRows,
    read_cohort,
    read_shards,
    shards,
)
from dpsynth.errors import DpsynthError, InputError
from dpsynth.models.dpsgd import Batches, DpSgd, StoredUnits, Units, units_of
from dpsynth.models.marginals import Binning
from dpsynth.privacy import OsEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

PATIENTS, MOST = 70, 9
Visits = Callable[[int], pd.DataFrame]
Placed = tuple[Batches, Batches]


class Fours:
    """Bins of four codes."""

    def __init__(self, columns: int) -> None:
        self.columns = (None,) * columns

    def coarsen(self, cohort: Cohort) -> Any:
        return cohort.codes // 4


def both(rows: pd.DataFrame, clinic: Schema, folder: Path, most: int) -> tuple[Cohort, ShardedRows]:
    schema = replace(clinic, unit=replace(clinic.unit, max_rows=most))
    read = (open_table(rows, schema), Codec(schema), schema, OsEntropy())
    whole, apart = read_cohort(*read), read_shards(*read, folder, shards=5)
    cells = [UnitRows(), *(Lookup(column) for column in range(whole.columns))]
    return whole.recoded(cells), apart.recoded(cells)


def placed(rows: pd.DataFrame, clinic: Schema, folder: Path, most: int = MOST) -> Placed:
    """The units of a table in memory, and on a disk."""
    whole, apart = both(rows, clinic, folder, most)
    bins = cast(Binning, Fours(whole.columns))
    return units_of(whole, bins), units_of(apart, bins)


def each_unit(units: Batches) -> Counter[bytes]:
    """What a unit alone gives to a step, whatever its number and the order of its rows."""
    found: Counter[bytes] = Counter()
    for number in range(len(units)):
        rows, weights = units.batch(np.array([number]))
        both = np.concatenate([rows[0].numpy(), weights[0, :, None].numpy()], axis=1)
        found[both[np.lexsort(both.T)].tobytes()] += 1
    return found


@pytest.fixture
def rows(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 40)
    monkeypatch.setattr(shards, "CELLS", 1)
    return visits(PATIENTS)


def test_each_unit_is_there_once_with_all_of_its_rows(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path
) -> None:
    memory, disk = placed(rows, clinic, tmp_path)
    assert isinstance(memory, Units) and isinstance(disk, StoredUnits)
    assert len(memory) == len(disk) == PATIENTS
    assert each_unit(memory) == each_unit(disk)


def in_two(self: StoredRows, chosen: Any) -> Cohort:
    """Broken twin: the last row of a unit is that of the next one."""
    return whole_units(replace(self, ends=self.ends - (self.ends > 0)), chosen)


def cut_in_two(parts: Any) -> Iterator[Cohort]:
    """Broken twin: a unit has a number for each of its rows, so it is drawn several times."""
    for part in parts:
        codes = part.codes[part.mask][:, None]
        yield Cohort(codes, np.ones((len(codes), 1), dtype=bool))


whole_units, written = StoredRows.cohort, StoredRows.write


def test_units_that_share_rows_are_found(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoredRows, "cohort", in_two)
    memory, disk = placed(rows, clinic, tmp_path)
    assert each_unit(memory) != each_unit(disk)


def test_a_unit_with_several_numbers_is_found(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        StoredRows,
        "write",
        lambda folder, parts, *sizes: written(folder, cut_in_two(parts), *sizes),
    )
    memory, disk = placed(rows, clinic, tmp_path)
    assert len(disk) > len(memory)


def test_rows_beyond_the_cap_are_on_no_disk(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path
) -> None:
    _, disk = placed(rows, clinic, tmp_path, most=2)
    batch, weights = disk.batch(np.arange(len(disk)))
    assert batch.shape[:2] == weights.shape == (PATIENTS, 2)
    assert np.allclose(weights.sum(dim=1), 1)
    assert isinstance(disk, StoredUnits) and disk.rows.codes.shape[0] == int((weights > 0).sum())


def test_a_batch_is_the_units_that_were_drawn_and_may_be_empty(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path
) -> None:
    _, disk = placed(rows, clinic, tmp_path)
    every, weights = disk.batch(np.arange(len(disk)))
    chosen = np.array([3, 0, 41])
    some, of_some = disk.batch(chosen)
    assert some.equal(every[chosen]) and of_some.equal(weights[chosen])
    none, of_none = disk.batch(np.array([], dtype=np.int64))
    assert none.shape == (0, *every.shape[1:]) and of_none.shape == (0, every.shape[1])


def test_the_file_is_for_its_owner_alone(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        placed(rows, clinic, tmp_path)
    finally:
        os.umask(before)
    (file,) = tmp_path.glob("units-*.codes")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_changed_shard_or_a_full_disk_stops(
    rows: pd.DataFrame, clinic: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, apart = both(rows, clinic, tmp_path, MOST)
    bins = cast(Binning, Fours(apart.columns))
    lacking = replace(apart.shards[0], rows=apart.shards[0].rows + 1)
    with pytest.raises(DpsynthError, match="lacks rows"):
        units_of(replace(apart, shards=(lacking, *apart.shards[1:])), bins)
    with pytest.raises(DpsynthError, match="was changed"):
        StoredRows.write(tmp_path, apart.cohorts(), apart.columns, 1)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("dpsynth.encoding.shards.create_private", full)
    with pytest.raises(InputError, match="no space is left"):
        units_of(apart, bins)


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", ["autoregressive", pytest.param("tvae", marks=pytest.mark.long)])
def test_a_fit_from_shards_draws_from_all_units_and_takes_each_step(
    model: str, clinic: Schema, rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_from: list[int] = []
    draw: Callable[..., Any] = DpSgd.sample_batch

    def watched(self: DpSgd, units: int) -> Any:
        drawn_from.append(units)
        return draw(self, units)

    monkeypatch.setattr(DpSgd, "sample_batch", watched)
    budget: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "dataset": "", "without_ledger": True}
    place = tmp_path / "place"
    shards = dpsynth.Execution(shards=place)
    run = dpsynth.fit(rows, clinic, model=model, execution=shards, **budget)
    alone = dpsynth.fit(rows, clinic, model=model, **budget)
    assert run.certificate == alone.certificate and not list(place.iterdir())
    steps = run.certificate["events"][-1]["steps"]
    assert drawn_from == [PATIENTS] * (2 * steps)
    assert len(run.sample(20)) == 20
