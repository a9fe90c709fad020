"""P20: a unit has at most `max_rows` rows over all shards and all parts of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.encoding.shards import read_shards, sharded_rows
from dpsynth.encoding.shards.dealing import Dealer
from dpsynth.privacy import JointHistograms, OsEntropy
from dpsynth.tables import open_table

from ..encoding.test_cohort import visits

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
    monkeypatch.setattr(sharded_rows, "CELLS", 1)


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
