"""Which units a split holds out: a seed repeats it, and one unit more moves nobody else."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pandas.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import split
from dpsynth.errors import InputError
from dpsynth.schema import Schema
from dpsynth.tables import split_file

from ..support.messy_extract import described, frame, unit_of


def test_a_seed_repeats_a_split_and_fresh_entropy_does_not(schema: Schema) -> None:
    table = frame(200)
    first, again, other = (split(table, schema, seed=seed) for seed in (5, 5, 6))
    for one, two in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(one, two)
    assert not first[1].equals(other[1])
    assert not split(table, schema)[1].equals(split(table, schema)[1])


def test_file_and_frame_are_split_alike(schema: Schema, tmp_path: Path) -> None:
    table = frame(100)
    table.to_parquet(tmp_path / "t.parquet")
    files = split_file(tmp_path / "t.parquet", schema, tmp_path / "out", seed=4)
    for path, expected in zip(files, split(table, schema, seed=4), strict=True):
        pd.testing.assert_frame_equal(pd.read_parquet(path), expected.reset_index(drop=True))


@pytest.mark.long
def test_each_unit_is_held_out_equally_often(schema: Schema) -> None:
    table = frame(10)
    times: Counter[str] = Counter()
    for seed in range(1000):
        with suppress(InputError):  # one side is empty
            times.update(unit_of(key) for key in split(table, schema, seed=seed)[1]["key"][::2])
    assert all(abs(times[f"a{unit}"] - 200) < 5 * np.sqrt(1000 * 0.2 * 0.8) for unit in range(10))


def test_one_more_unit_moves_nobody_else(schema: Schema) -> None:
    """Or else a patient would change two sides, and count twice in what both are used for."""
    larger = frame(31)
    smaller = larger[[unit_of(key) != "a7" for key in larger["key"]]]
    turned = larger.iloc[::-1]
    for seed in range(20):
        holdouts = [
            {unit_of(key) for key in split(table, schema, seed=seed)[1]["key"]}
            for table in (smaller, larger, turned)
        ]
        assert holdouts[0] ^ holdouts[1] <= {"a7"} and holdouts[1] == holdouts[2]


@given(
    keys=st.lists(
        st.sampled_from(["1", "01", " 1", "2", "a", "A ", "", "NA", "b", "c"]), min_size=1
    ),
    share=st.floats(0.05, 0.95),
    own=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_every_row_with_a_key_is_on_the_side_of_its_unit(
    keys: list[str], share: float, own: bool
) -> None:
    schema = described(missing_key="own" if own else "drop")
    table = pd.DataFrame({"key": keys, "weight": "1,5", "smoker": True})
    try:
        train, holdout = split(table, schema, holdout=share)
    except InputError:
        named = {unit_of(key) for key in keys if key not in ("", "NA")}
        units = len(named) + own * sum(key in ("", "NA") for key in keys)
        assert share**units + (1 - share) ** units > 1e-9  # an empty side was possible
        return
    kept = [i for i, key in enumerate(keys) if own or key not in ("", "NA")]
    assert sorted([*train.index, *holdout.index]) == kept
    one, other = ({unit_of(key) for key in side["key"]} - {"", "na"} for side in (train, holdout))
    assert not one & other
    assert len(train) and len(holdout)


def test_rows_are_units_where_no_unit_is_declared() -> None:
    schema = described()
    rows = replace(schema.unit, column=None, max_rows=1)
    fields = tuple(column for column in schema.columns if column.name != "key")
    schema = replace(schema, unit=rows, columns=fields)
    table = pd.DataFrame({"weight": np.arange(50).astype(str), "smoker": True})
    train, holdout = split(table, schema, holdout=0.3, seed=1)
    assert len(train) + len(holdout) == 50
    assert sorted(map(int, [*train["weight"], *holdout["weight"]])) == list(range(50))
