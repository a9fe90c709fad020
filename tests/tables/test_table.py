"""Reading a table: CSV files and DataFrames come in chunks of the columns that a schema needs."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_synthetic, open_table
from dpsynth.tables.checks import CHUNK, chunk_rows

from ..support.small_table import HEADER, SCHEMA, SMALL, cells, put, small_schema

# Reading CSV


def test_only_needed_columns_are_given_out(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", SMALL)
    assert open_table(path, SCHEMA).columns == ("patient", "age", "sex")
    assert cells(path) == [["p1", "33", "F"], ["p1", "", "M"]]
    window = small_schema("window")
    assert open_table(str(path), window).columns == ("visit", "patient", "age", "sex")
    assert open_synthetic(path, SCHEMA).columns == ("age", "sex")
    frame = next(iter(open_table(path, SCHEMA).chunks()))
    assert frame.columns.tolist() == ["patient", "age", "sex"]
    assert [str(kind) for kind in frame.dtypes] == ["object"] * 3


def test_columns_may_come_in_any_order(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "sex,x,age,patient\nF,?,33,p1\n")
    assert cells(path) == [["p1", "33", "F"]]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + SMALL,  # byte order mark
        SMALL.replace("\n", "\r\n"),
        SMALL.replace("\n", "\r"),
        SMALL[:-1],  # no line end at the end
        "\n" + SMALL.replace("\n", "\n\n"),  # blank lines
        SMALL.replace("hello", '"a, ""quoted""\nnote"'),
        SMALL.replace("visit,patient,note", ' visit , "patient",note'.replace(' "', '"')),
        SMALL.replace(",age,", ", age ,"),
    ],
)
def test_kinds_of_csv(tmp_path: Path, content: str) -> None:
    for name in ("a.csv", "A.CSV"):
        assert cells(put(tmp_path / name, content)) == [["p1", "33", "F"], ["p1", "", "M"]]
    zipped = put(tmp_path / "a.csv.gz", gzip.compress(content.encode(), mtime=0))
    assert cells(zipped) == [["p1", "33", "F"], ["p1", "", "M"]]


def test_declared_dialect(tmp_path: Path) -> None:
    dialect = {"delimiter": ";", "quote": "'", "encoding": "latin-1", "decimal": ","}
    schema = small_schema(dialect=dialect)
    content = SMALL.replace(",", ";").replace("hello", "'gr\xfc\xdfe; \"you\"'").encode("latin-1")
    path = put(tmp_path / "a.csv", content)
    assert cells(path, schema) == [["p1", "33", "F"], ["p1", "", "M"]]
    wide = small_schema(dialect={"encoding": "utf-16"})
    path = put(tmp_path / "b.csv", SMALL.encode("utf-16"))
    assert cells(path, wide) == [["p1", "33", "F"], ["p1", "", "M"]]


def test_short_rows_are_refused(tmp_path: Path) -> None:
    for row, words in (("1,p1\n", "line 2: 2 fields"), ("3\n", "line 2: 1 field, the header")):
        with pytest.raises(TableError, match=words):
            cells(put(tmp_path / "a.csv", HEADER + row + "2,p2,x,44,F\n"))


def test_chunks_are_bounded_and_can_be_read_twice(tmp_path: Path) -> None:
    rows = CHUNK + 1000
    path = put(tmp_path / "a.csv", HEADER + "".join(f"{i},p{i},,{i % 99},F\n" for i in range(rows)))
    table = open_table(path, SCHEMA)
    for _ in range(2):
        done: list[float] = []
        frames = list(table.chunks(done.append))
        assert [len(frame) for frame in frames] == [CHUNK, 1000]
        assert frames[1]["patient"].tolist() == [f"p{i}" for i in range(CHUNK, rows)]
        assert len(done) == 2
        assert 0.9 < done[0] <= done[1] == 1.0


def test_wide_tables_come_in_shorter_chunks() -> None:
    assert chunk_rows(1) == chunk_rows(64) == CHUNK
    assert chunk_rows(640) == CHUNK // 10
    assert chunk_rows(10**9) == 1


def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 2000)
    peaks = []
    for factor in (3, 12):
        path = tmp_path / f"{factor}.csv"
        with path.open("w") as file:
            file.write(HEADER)
            file.writelines(f"{i},p{i},some text,{i % 99},F\n" for i in range(factor * 2000))
        tracemalloc.start()
        for frame in open_table(path, SCHEMA).chunks():
            assert len(frame) == 2000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


# DataFrames


def test_frames() -> None:
    frame = pd.DataFrame(
        {"sex": ["F", None], "age": [33, 34], "patient": ["1", "2"], "x": [[], {}]}
    )
    table = open_table(frame.set_index(pd.Index([7, 7])), SCHEMA)
    assert table.columns == ("patient", "age", "sex")
    assert cells(frame) == [["1", 33, "F"], ["2", 34, None]]
    with pytest.raises(TableError, match="the DataFrame has a header and no rows"):
        list(open_table(frame.iloc[:0], SCHEMA).chunks())
    with pytest.raises(TableError, match="the DataFrame lacks a column of the schema: age"):
        open_table(frame.drop(columns="age"), SCHEMA)
    with pytest.raises(TableError, match="more than one column called age"):
        open_table(pd.concat([frame, frame["age"]], axis=1), SCHEMA)
    with pytest.raises(TableError, match="lacks 3 columns"):
        open_table(pd.DataFrame([[1, 2, 3]]), SCHEMA)


def test_long_frames_come_in_chunks() -> None:
    rows = CHUNK + 5
    frame = pd.DataFrame({"patient": np.arange(rows).astype(str), "age": 3, "sex": "F"})
    done: list[float] = []
    frames = list(open_table(frame, SCHEMA).chunks(done.append))
    assert [len(part) for part in frames] == [CHUNK, 5]
    assert done[-1] == 1.0


# Real tables


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rows"), [("cardio", 70_000), ("diabetes130", 101_766), ("brfss2015", 253_680)]
)
def test_real_tables(name: str, rows: int) -> None:
    folder = os.environ.get("DPSYNTH_DATA")
    if not folder:
        pytest.skip("DPSYNTH_DATA is not set: it names the folder of the real tables")
    schema = Schema.load(name)
    codec = Codec(schema)
    table = open_table(Path(folder) / f"{name}.csv.gz", schema)
    codes = np.concatenate([codec.encode(chunk) for chunk in table.chunks()])
    assert codes.shape == (rows, len(codec.names))
    assert (codes < np.array(codec.sizes)).all()
    used = [len(np.unique(codes[:, place])) for place in range(codes.shape[1])]
    assert np.mean(used) > 2, "cells are read, not sent to one code"
