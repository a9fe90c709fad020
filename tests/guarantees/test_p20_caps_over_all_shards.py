"""P20: a unit has at most `max_rows` rows over all shards and all parts of a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, read_shards
from dpsynth.encoding import shards as reading
from dpsynth.encoding.shards import Chooser, Dealer
from dpsynth.privacy import JointHistograms, OsEntropy, SeededEntropy
from dpsynth.tables import open_table

from ..support.sharded_visits import visits

CAP = 3
COUNT = JointHistograms("rows", 1, CAP, 50.0)
SHARED = JointHistograms("shares", 1, CAP, 50.0, unit_mass=12)


def added(folder: Path, event: JointHistograms, *, keep: str = "random") -> tuple[int, int]:
    """What one patient with 100 visits adds beside others: all of her counts, and how many."""
    schema = visits(CAP, keep=keep)
    others = [f"other {n}" for n in range(40)]
    frame = pd.DataFrame({"patient": ["she"] * 100 + others, "visit": range(140)})
    frame["value"] = np.arange(140)
    mixed = frame.sample(frac=1.0, random_state=1)
    source = open_table(mixed, schema)
    rows = read_shards(source, Codec(schema), schema, OsEntropy(), folder, shards=4)
    (counts,) = rows.counts([(0,)], (200,), event)
    assert counts[100:140].tolist() == [event.unit_mass or 1] * 40
    return int(counts[:100].sum()), int((counts[:100] > 0).sum())


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 20)
    monkeypatch.setattr(reading, "CELLS", 1)


@pytest.mark.parametrize("keep", ["random", "window"])
def test_a_unit_of_many_parts_adds_its_cap(tmp_path: Path, keep: str) -> None:
    assert added(tmp_path, COUNT, keep=keep) == (CAP, CAP)
    assert added(tmp_path, SHARED, keep=keep) == (12, CAP)


def test_caps_of_each_part_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: the rows of a unit are told apart by the part that they were read in."""
    deal = Dealer.deal

    def by_part(self: Dealer, chunks: Any, number: int) -> Any:
        own = Dealer(self.folder, self.shards, self.key[:-1] + bytes([number]), self.unit)
        return deal(own, chunks, number)

    monkeypatch.setattr(Dealer, "deal", by_part)
    assert added(tmp_path, COUNT)[0] > CAP
    assert added(tmp_path, SHARED)[0] > 12


def test_the_shard_of_a_unit_follows_from_a_fresh_key(tmp_path: Path) -> None:
    """64 units are all in the same of 4 shards again with a probability of 4^-64."""
    schema = visits(1)
    frame = pd.DataFrame({"patient": [f"{n}" for n in range(64)], "visit": 0, "value": range(64)})
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        source = open_table(frame, schema)
        entropy, folder = OsEntropy(), tmp_path / name
        rows = read_shards(source, Codec(schema), schema, entropy, folder, shards=4)
        shards = [
            [cohort.codes[:, 0, 0] for group in shard.groups for cohort in group.cohorts(folder)]
            for shard in rows.shards
        ]
        found.append([sorted(np.concatenate(own).tolist()) for own in shards if own])
    assert found[0] != found[1]


def kept_of(folder: Path, patients: dict[str, int], keep: str) -> dict[str, list[int]]:
    """The values that each patient keeps, under the same keys: her visits are numbered."""
    schema, folder = visits(CAP, keep=keep), folder / str(len(patients))
    folder.mkdir(parents=True)
    owners = [name for name, count in patients.items() for _ in range(count)]
    frame = pd.DataFrame({"patient": owners, "value": range(len(owners))})
    frame["visit"] = frame.groupby("patient").cumcount()
    mixed = frame.sample(frac=1.0, random_state=len(patients))
    mixed = mixed.iloc[np.argsort(mixed["visit"], kind="stable")]
    source = open_table(mixed, schema)
    rows = read_shards(source, Codec(schema), schema, SeededEntropy(1), folder, shards=4)
    found: dict[str, list[int]] = {name: [] for name in patients}
    for cohort in rows.cohorts():
        for value in cohort.codes[cohort.mask][:, 0].tolist():
            found[owners[value]].append(int(frame["visit"][value]))
    return {name: sorted(values) for name, values in found.items()}


@pytest.mark.parametrize("keep", ["random", "window"])
def test_a_patient_changes_no_other_choice(tmp_path: Path, keep: str) -> None:
    """Under the same keys: the choice of a unit's rows is a function of its own rows."""
    others = {f"other {n}": 1 + n % 8 for n in range(30)}
    without = kept_of(tmp_path, others, keep)
    beside = kept_of(tmp_path, {"she": 50} | others, keep)
    assert len(beside.pop("she")) == CAP and beside == without
    assert len({tuple(kept) for name, kept in without.items() if others[name] == 8}) > 1


def test_both_keys_are_fresh_and_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    schema, make = visits(1), {"Dealer": reading.Dealer, "Chooser": reading.Chooser}

    def watched(name: str, *settings: Any) -> Any:
        keys.append(next(one for one in settings if isinstance(one, bytes)))
        return make[name](*settings)

    for name in make:
        monkeypatch.setattr(reading, name, partial(watched, name))
    source = open_table(pd.DataFrame({"patient": ["a"], "visit": 0, "value": 1}), schema)
    for _ in range(2):
        read_shards(source, Codec(schema), schema, OsEntropy(), tmp_path, shards=1)
    assert len(set(keys)) == len(keys) == 4 and {len(key) for key in keys} == {32}


def test_the_place_of_a_row_without_key_does_not_tell_which_it_is(tmp_path: Path) -> None:
    schema = visits(1, missing_key="own")
    frame = pd.DataFrame({"patient": "", "visit": 0, "value": range(100)})
    source = open_table(frame, schema)
    rows = read_shards(source, Codec(schema), schema, OsEntropy(), tmp_path, shards=1)
    ((cohort,),) = ([*group.cohorts(tmp_path)] for group in rows.shards[0].groups)
    values = cohort.codes[:, 0, 0].tolist()
    assert sorted(values) == list(range(100)) != values


@pytest.mark.parametrize("keep", ["random", "window"])
def test_each_row_of_a_unit_is_kept_as_often(keep: str) -> None:
    """3 of 6 rows of 4,000 units: each subset, or each window, within 5 standard deviations."""
    units = np.repeat(np.arange(4000), 6)
    ids = np.stack([units, units], axis=1).astype(np.uint64)
    order = np.tile(np.arange(6), 4000) if keep == "window" else None
    rows, places = Chooser(bytes(32), CAP).select(ids, units, order)
    chosen = np.sort(rows.reshape(4000, CAP) % 6, axis=1)
    _, counts = np.unique(chosen, axis=0, return_counts=True)
    expected = 4000 / (4 if keep == "window" else 20)
    assert len(counts) == 4000 / expected
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
    assert (places.reshape(4000, CAP) == np.arange(CAP)).all()
