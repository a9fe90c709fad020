"""Units on the list of those who opted out go to neither side of a split."""

from __future__ import annotations

import gzip
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pytest

from dpsynth import split
from dpsynth.errors import DpsynthWarning, InputError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import OptOut, leave_out, split_file
from dpsynth.tables.unit_keys import normalised

from ..support.messy_extract import UNITS, described, frame, records, unit_of, units_of

GONE = ("a3", "00A5 ", " A7", "a9")  # as nobody has written them in the table


def gone_from(rows: list[str], out: set[str]) -> list[str]:
    return [row for row in rows if not units_of([row]) & out]


@pytest.mark.parametrize("kind", ["txt", "csv", "csv.gz", "parquet"])
def test_units_on_the_list_go_to_neither_side(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"gone.{kind}"
    if kind == "txt":
        path.write_bytes("\ufeff".encode() + "\r\n".join([*GONE, "", "NA", "a3", ""]).encode())
    elif kind == "parquet":
        pd.DataFrame({"why": "asked", "key": [*GONE, None, "a3"]}).to_parquet(path)
    else:
        table = "\n".join(["why;key", *(f"M\xfcller;{key}" for key in (*GONE, "NA", "a3"))])
        content = table.encode("latin-1")
        path.write_bytes(gzip.compress(content) if kind == "csv.gz" else content)
    listed = OptOut.load(path, schema)
    assert listed.lines == 5 and listed.keys == {"a3", "a5", "a7", "a9"}
    train, holdout = map(
        records, split_file(source, schema, tmp_path / "out", seed=2, opt_out=listed)
    )
    whole = [records(path) for path in split_file(source, schema, tmp_path / "whole", seed=2)]
    assert train[1:] == gone_from(whole[0][1:], set(listed.keys))
    assert holdout[1:] == gone_from(whole[1][1:], set(listed.keys))
    assert len(units_of(train[1:]) | units_of(holdout[1:])) == UNITS - 4


def test_a_frame_is_split_without_them_too(schema: Schema) -> None:
    listed = OptOut.of(["A0", "a19"], schema)
    sides = split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    found = {unit_of(key) for side in sides for key in side["key"]}
    assert found == {f"a{unit}" for unit in range(1, 19)}


@pytest.mark.parametrize("case", [True, False])
@pytest.mark.parametrize("zeros", [True, False])
def test_the_list_is_read_as_the_table_is(case: bool, zeros: bool) -> None:
    """Whoever is one unit with a key of the list opted out, and nobody else."""
    keys = ["A1", "a1", "0A1", "b2", "B2", "00b2", "c3"]
    schema = described(key={"case": case, "leading_zeros": zeros}, dialect={})
    others = [f"d{number}" for number in range(40)]
    table = pd.DataFrame({"key": [*keys, *others], "weight": "70", "smoker": "true"})
    for listed in (["A1"], ["0A1", "B2"], ["b2"]):
        gone = {normalised(key, schema.unit) for key in listed}
        sides = split(table, schema, holdout=0.5, opt_out=OptOut.of(listed, schema))
        left = pd.concat(sides)["key"].sort_index().tolist()
        assert left == [k for k in table["key"] if normalised(k, schema.unit) not in gone]


@pytest.mark.parametrize("key", [7, 7.0, None, b"007"])
def test_a_list_of_keys_that_are_no_text_is_refused(key: Any, schema: Schema) -> None:
    """The number 7 was 007 in the table: who opted out would stay in it."""
    with pytest.raises(InputError, match="keys that are not text"):
        OptOut.of(["a1", key], schema)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_where_nobody_is_held_out_the_list_alone_counts(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, suffix: str
) -> None:
    listed = OptOut.of(GONE, schema)
    if suffix == ".parquet":
        table = frame(30)
        table.to_parquet(tmp_path / "t.parquet")
        train = leave_out(tmp_path / "t.parquet", schema, tmp_path / "out", listed)
        rest = pd.read_parquet(train)
        out = [unit_of(key) in listed.keys for key in table["key"]]
        pd.testing.assert_frame_equal(rest, table[~np.array(out)].reset_index(drop=True))
        assert len(rest) == 52
    else:
        train = leave_out(source, schema, tmp_path / "out", listed)
        assert records(train)[1:] == gone_from(lines, set(listed.keys))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["train" + suffix]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_rows_without_a_key_are_on_no_list(tmp_path: Path) -> None:
    schema = described(missing_key="own")
    table = pd.DataFrame({"key": ["NA", "b", "NA", "c"], "weight": 1.0, "smoker": True})
    table.to_csv(tmp_path / "t.csv", sep=";", index=False)
    train = leave_out(tmp_path / "t.csv", schema, tmp_path / "out", OptOut.of(["b"], schema))
    assert [row.split(";")[0] for row in train.read_text().splitlines()[1:]] == ["NA", "NA", "c"]


def test_a_list_that_names_nobody_of_the_table_is_refused(schema: Schema) -> None:
    listed = OptOut.of(["Quokka7Zx"], schema)
    with pytest.raises(InputError, match="no key on the opt-out list") as refusal:
        split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    assert "uokka" not in str(refusal.value)


def test_keys_that_are_in_no_row_are_counted(schema: Schema) -> None:
    listed = OptOut.of(["Quokka7Zx", "a3"], schema)
    with pytest.warns(DpsynthWarning, match="1 of 2 keys of the opt-out list") as warned:
        split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    assert "uokka" not in str(warned[0].message)


def test_lists_that_are_none(schema: Schema, tmp_path: Path) -> None:
    rows = replace(described(), unit=replace(schema.unit, column=None, max_rows=1))
    with pytest.raises(InputError, match="role unit"):
        OptOut.of(["a"], rows)
    empty, binary, other = (tmp_path / name for name in ("e.txt", "b.txt", "o.csv"))
    empty.write_text("\n NA \n")
    with pytest.raises(InputError, match="has no key"):
        OptOut.load(empty, schema)
    binary.write_bytes(b"Quokka7Zx\xff\xfe\n")
    with pytest.raises(InputError, match="UTF-8") as refused:
        OptOut.load(binary, schema)
    assert "Quokka" not in str(refused.value) and refused.value.__cause__ is None
    other.write_text("Quokka7Zx\nb\n")
    with pytest.raises(TableError, match="lacks a column of the schema: key") as headless:
        OptOut.load(other, schema)
    assert "Quokka" not in str(headless.value)
    with pytest.raises(InputError, match="does not exist"):
        OptOut.load(tmp_path / "absent.txt", schema)
    with pytest.raises(InputError, match="one of the two files would be empty"):
        split(frame(3), schema, holdout=0.5, opt_out=OptOut.of(["a0", "a1"], schema))
    frame(2).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no row is left to fit"):
        leave_out(tmp_path / "t.parquet", schema, tmp_path / "out", OptOut.of(["a0", "a1"], schema))
    assert not (tmp_path / "out").exists()
