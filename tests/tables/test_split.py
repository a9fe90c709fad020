"""A split copies all rows of a unit to one side, touches no cell, and fails before it writes."""

from __future__ import annotations

import gzip
import json
import stat
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import dpsynth
from dpsynth import split
from dpsynth.cli.group import commands
from dpsynth.errors import InputError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import split_file, splitting
from dpsynth.tables.splitting import Dealt
from dpsynth.tables.unit_keys import normalised

from ..support.messy_extract import HEADER, SPELLINGS, UNITS, frame, records, unit_of, units_of
from ..support.quick_fit import quick_fit

# Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_rows_are_copied_as_they_stand(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, zipped: bool
) -> None:
    if zipped:
        source.with_suffix(".csv.gz").write_bytes(gzip.compress(source.read_bytes()))
        source = source.with_suffix(".csv.gz")
    paths = split_file(source, schema, tmp_path / "out")
    assert [path.name for path in paths] == (
        ["train.csv.gz", "holdout.csv.gz"] if zipped else ["train.csv", "holdout.csv"]
    )
    train, holdout = map(records, paths)
    assert train[0] == holdout[0] == HEADER
    assert Counter(train[1:] + holdout[1:]) == Counter(lines)
    for side in (train[1:], holdout[1:]):
        rest = iter(lines)
        assert all(row in rest for row in side)  # in the order of the source


def test_no_unit_is_on_both_sides(source: Path, schema: Schema, tmp_path: Path) -> None:
    train, holdout = map(records, split_file(source, schema, tmp_path / "out", holdout=0.3))
    one, other = units_of(train[1:]), units_of(holdout[1:])
    assert not one & other
    assert len(one | other) == UNITS
    spread = 5 * np.sqrt(UNITS * 0.3 * 0.7)
    assert abs(len(other) - 0.3 * UNITS) < spread  # the share is one of units, not of rows


def test_my_reading_of_a_key_is_that_of_the_schema(schema: Schema) -> None:
    for spelling in SPELLINGS:
        assert normalised(spelling(12), schema.unit) == unit_of(spelling(12)) == "a12"


def test_the_folder_is_for_its_owner_alone(source: Path, schema: Schema, tmp_path: Path) -> None:
    split_file(source, schema, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "holdout.csv",
        "train.csv",
    ]


def test_a_last_row_without_line_end_and_blank_lines(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"key;weight;smoker\n\n" + b"\n".join(b"k%d;1;1\n" % i for i in range(9)))
    path.write_bytes(path.read_bytes() + b"last;2;0")
    train, holdout = split_file(path, schema, tmp_path / "out", holdout=0.5, seed=3)
    rows = train.read_text().splitlines()[1:] + holdout.read_text().splitlines()[1:]
    assert Counter(rows) == Counter([*(f"k{i};1;1" for i in range(9)), "last;2;0"])


def test_parquet_keeps_types_and_columns(schema: Schema, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    units = rng.integers(0, 50, 70_000)  # more rows than a chunk
    weights = pa.array([f"{weight / 2:g}" for weight in rng.integers(0, 600, len(units))])
    table = pa.table(
        {
            "key": pa.array([f"k{unit}" for unit in units]).dictionary_encode(),
            "weight": weights,
            "smoker": pa.array([None, True, False, None] * (len(units) // 4)),
            "visits": pa.array([[1, 2]] * len(units), pa.list_(pa.int8())),
            "day": pa.array([19_000] * len(units), pa.int32()).cast(pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=9_999)
    paths = split_file(tmp_path / "t.parquet", schema, tmp_path / "out", seed=1)
    train, holdout = map(pq.read_table, paths)
    assert train.schema.equals(table.schema) and holdout.schema.equals(table.schema)
    sides = [side.to_pandas() for side in (train, holdout)]
    in_holdout = np.isin(table["key"].to_pylist(), sides[1]["key"].unique().tolist())
    assert in_holdout.any() and not set(units[in_holdout]) & set(units[~in_holdout])
    for side, rows in zip(sides, (~in_holdout, in_holdout), strict=True):
        expected = table.filter(pa.array(rows)).to_pandas()
        pd.testing.assert_frame_equal(side.astype({"key": str}), expected.astype({"key": str}))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_both_files_can_be_fitted(source: Path, schema: Schema, tmp_path: Path, kind: str) -> None:
    data: Path = source
    if kind == "parquet":
        data = tmp_path / "t.parquet"
        keys = [f"k{i % 90}" for i in range(300)]
        pd.DataFrame({"key": keys, "weight": "70,5", "smoker": True}).to_parquet(data)
    for path in split_file(data, schema, tmp_path / "out"):
        run = quick_fit(path, schema)
        assert len(run.sample(10, seed=1)) == 10


# Refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 20.0, float("nan")])
def test_a_share_that_is_none(schema: Schema, share: float) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        split(frame(20), schema, holdout=share)


@pytest.mark.parametrize(("units", "share"), [(1, 0.5), (2, 1e-9), (3, 1 - 1e-9)])
def test_a_side_without_units(schema: Schema, units: int, share: float) -> None:
    with pytest.raises(InputError, match="one of the two files would be empty"):
        split(frame(units), schema, holdout=share)


def test_tables_that_cannot_be_split(schema: Schema) -> None:
    with pytest.raises(TableError, match="lacks a column of the schema: weight"):
        split(frame(9).drop(columns="weight"), schema)
    with pytest.raises(TableError, match="no row has a key"):
        split(frame(9).assign(key="NA"), schema)
    with pytest.raises(TableError, match="no rows"):
        split(frame(9).iloc[:0], schema)
    with pytest.raises(InputError, match="seed must lie"):
        split(frame(9), schema, seed=-1)


def test_nothing_is_left_where_a_split_fails(
    source: Path, schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists"):
        split_file(source, schema, tmp_path / "there")
    source.write_bytes(source.read_bytes() + b'"no end')
    with pytest.raises(TableError, match="quotes"):
        split_file(source, schema, tmp_path / "out")
    source.write_bytes(source.read_bytes()[:-7])
    real = splitting._dealt

    def other(*facts: Any, by: int) -> Dealt:
        dealt = real(*facts)
        return replace(dealt, sides=np.resize(dealt.sides, dealt.sides.size + by))

    for change in (1, -1):
        monkeypatch.setattr("dpsynth.tables.splitting._dealt", partial(other, by=change))
        with pytest.raises(TableError, match="changed while it was split"):
            split_file(source, schema, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["extract.csv", "there"]


# The command ----------------------------------------------------------------------------------


def test_the_command_tells_no_numbers_of_the_table(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path
) -> None:
    document = tmp_path / "messy.schema.json"
    document.write_text(json.dumps(schema.to_dict()))
    done = CliRunner().invoke(
        commands,
        ["split", str(document), str(source), "-o", str(tmp_path / "out"), "--seed", "1"],
    )
    assert done.exit_code == 0, done.output
    assert "never release them" in done.output and "rows without a key" in done.output
    train, holdout = (
        len(records(tmp_path / "out" / f"{side}.csv")) - 1 for side in ("train", "holdout")
    )
    for private in (len(lines), train, holdout, UNITS // 5, UNITS - UNITS // 5):
        assert str(private) not in done.output.replace(str(tmp_path), "")
    again = CliRunner().invoke(
        commands, ["split", str(document), str(source), "-o", str(tmp_path / "out")]
    )
    assert isinstance(again.exception, InputError)


def test_the_command_tells_how_many_keys_it_read_and_not_how_many_it_found(
    source: Path, schema: Schema, tmp_path: Path
) -> None:
    document, gone = tmp_path / "messy.schema.json", tmp_path / "gone.txt"
    document.write_text(json.dumps(schema.to_dict()))
    gone.write_text("\n".join(["a1", "a2", "a3", *(f"x{i}" for i in range(74))]))
    arguments = ["split", str(document), str(source), "--opt-out", str(gone), "-o"]
    done = CliRunner().invoke(commands, [*arguments, str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    shown = done.output.replace(str(tmp_path), "")
    assert "77 keys read" in shown and "a1" not in shown and "3 " not in shown.replace("0.2", "")
    outcome = CliRunner().invoke(commands, [*arguments, str(tmp_path / "again"), "--json"])
    assert json.loads(outcome.stdout)["opt_out"] == {"file": str(gone), "keys": 77}
    for side in ("train", "holdout"):
        assert not units_of(records(tmp_path / "out" / f"{side}.csv")[1:]) & {"a1", "a2", "a3"}


def test_the_names_of_the_package() -> None:
    assert dpsynth.split is dpsynth.split is split
    assert dpsynth.split_file is split_file
