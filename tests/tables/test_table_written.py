"""Writing a table: what is written reads back, depends on its rows alone, is whole or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import InputError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import check_output, open_synthetic, open_table, write_table

from ..support.schema_fields import schema_field
from ..support.small_table import BASIS, put


def synthetic(schema: Schema, rows: int, seed: int = 0) -> pd.DataFrame:
    codec = Codec(schema)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, codec.sizes, size=(rows, len(codec.sizes)))
    return codec.decode(codes, rng)


SUFFIXES = (".csv", ".csv.gz", ".parquet")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_reads_back(tmp_path: Path, every_type: Schema, suffix: str) -> None:
    frame = synthetic(every_type, 700)
    path = tmp_path / f"out{suffix}"
    write_table([frame], path, every_type)
    codec = Codec(every_type)
    back = pd.concat(open_synthetic(path, every_type).chunks(), ignore_index=True)
    assert codec.conforms(back) == []
    assert (codec.encode(back) == codec.encode(frame)).all()
    # Beyond codes, to the last digit: `weight` has 1701 points in 128 cells.
    weights = pd.to_numeric(back["weight"]).to_numpy(dtype=float)
    assert np.array_equal(weights, frame["weight"].to_numpy(), equal_nan=True)


def test_csv_to_the_byte(tmp_path: Path, every_type: Schema) -> None:
    frame = pd.DataFrame(
        {
            "age": pd.array([18, 99], dtype="int64"),
            "weight": [70.0, np.nan],
            "grade": pd.array([None, 2], dtype="Int64"),
            "sex": np.array(["M, or other", None], dtype=object),
            "smoker": pd.array([True, None], dtype="boolean"),
            "admitted": np.array(["2015-01-01", "NaT"], dtype="datetime64[s]"),
            "discharged": np.array(["2020-12-31", "2016-02-29"], dtype="datetime64[s]"),
            "measured": np.array(["2015-01-01T10:30:00", "NaT"], dtype="datetime64[s]"),
            "born": pd.array([1950, None], dtype="Int64"),
        }
    )
    assert Codec(every_type).conforms(frame) == []
    path = tmp_path / "out.csv"
    write_table([frame[frame.columns[::-1]]], path, every_type)
    assert path.read_bytes() == (
        b"age,weight,grade,sex,smoker,admitted,discharged,measured,born\n"
        b'18,70.0,,"M, or other",true,2015-01-01,2020-12-31,2015-01-01T10:30:00,1950\n'
        b"99,,2,,,,2016-02-29,,\n"
    )


def test_csv_is_plain_whatever_the_source_was(tmp_path: Path) -> None:
    fields = [
        schema_field("dose", "number", BASIS | {"step": 0.25}, minimum=0, maximum=2),
        {"name": "ill", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
        {
            "name": "day",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "01.01.1990", "maximum": "01.02.1990"},
            "dpsynth": BASIS,
        },
        schema_field("since", "year", BASIS, minimum=900, maximum=1100),
    ]
    number = {"value": 90, "basis": "made for this test"}
    dialect = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    facts = {"version": 1, "population": number, "rows": number, "dialect": dialect}
    schema = Schema.from_dict({"fields": fields, "missingValues": ["NA"], "dpsynth": facts})
    source = put(tmp_path / "a.csv", "dose;ill;day;since\n0,5;yes;02.01.1990;990\nNA;NA;NA;NA\n")
    codec = Codec(schema)
    codes = codec.encode(next(iter(open_table(source, schema).chunks())))
    path = tmp_path / "out.csv"
    write_table([codec.decode(codes, np.random.default_rng(0))], path, schema)
    first, second, third = path.read_text().splitlines()
    assert first == "dose,ill,day,since"
    assert second == "0.50,true,1990-01-02,0990"
    assert third == ",,,"
    back = next(iter(open_synthetic(path, schema).chunks()))
    assert codec.conforms(back) == []


def test_parquet_types(tmp_path: Path, every_type: Schema) -> None:
    path = tmp_path / "out.parquet"
    write_table([synthetic(every_type, 50)], path, every_type)
    layout = pq.read_schema(path)
    assert [str(kind) for kind in layout.types] == [
        *("int64", "double", "int64", "string", "bool", "date32[day]", "date32[day]"),
        *("timestamp[us]", "int64"),
    ]
    assert [layout.field(name).nullable for name in ("age", "weight")] == [False, True]
    assert b"pandas" not in path.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_depend_on_the_rows_alone(
    tmp_path: Path, every_type: Schema, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.tables.writer.CHUNK", 1000)
    frame = synthetic(every_type, 2300)
    write_table([frame], tmp_path / f"one{suffix}", every_type)
    monkeypatch.setattr("time.time", lambda: 0.0)  # the time of day is not in the file
    cuts = [0, 1, 70, 70, 900, 1000, 2300]
    parts = (frame.iloc[a:b] for a, b in zip(cuts, cuts[1:], strict=False))
    write_table(parts, tmp_path / f"cut{suffix}", every_type)
    one, cut = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "cut"))
    assert one == cut
    # Whether the first rows lack a value does not change the layout.
    missing = frame.assign(weight=np.nan, sex=None, grade=pd.array([None] * len(frame), "Int64"))
    write_table([missing.iloc[:9], frame], tmp_path / f"gaps{suffix}", every_type)
    assert len(pd.concat(open_synthetic(tmp_path / f"gaps{suffix}", every_type).chunks())) == 2309


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_frames_make_an_empty_table(tmp_path: Path, every_type: Schema, suffix: str) -> None:
    write_table([], tmp_path / f"out{suffix}", every_type)
    with pytest.raises(TableError, match="has a header and no rows"):
        list(open_synthetic(tmp_path / f"out{suffix}", every_type).chunks())


def test_frictionless_accepts_the_csv(tmp_path: Path, every_type: Schema) -> None:
    frictionless = pytest.importorskip("frictionless")
    write_table([synthetic(every_type, 300)], tmp_path / "out.csv", every_type)
    resource = frictionless.Resource(
        path="out.csv",
        basepath=str(tmp_path),
        schema=frictionless.Schema.from_descriptor(every_type.to_table_schema()),
    )
    report = resource.validate()
    assert report.valid, report.flatten(["fieldName", "type"])
    assert report.tasks[0].stats["rows"] == 300


def test_a_failed_write_leaves_nothing(tmp_path: Path, every_type: Schema) -> None:
    def broken() -> Iterator[pd.DataFrame]:
        yield synthetic(every_type, 10)
        raise KeyboardInterrupt

    for suffix in SUFFIXES:
        with pytest.raises(KeyboardInterrupt):
            write_table(broken(), tmp_path / f"out{suffix}", every_type)
    with pytest.raises(ValueError, match="lacks the columns age"):
        write_table([synthetic(every_type, 3).drop(columns="age")], tmp_path / "o.csv", every_type)
    assert os.listdir(tmp_path) == []


def test_refused_outputs(tmp_path: Path, every_type: Schema) -> None:
    def unreachable() -> Iterator[pd.DataFrame]:
        raise AssertionError("a frame was computed")
        yield

    taken = put(tmp_path / "taken.csv", "precious")
    for path, words in (
        (tmp_path / "out.xlsx", "unknown kind of table"),
        (taken, "exists"),
        (taken / "out.csv", "not a folder|a file, not a folder"),
    ):
        with pytest.raises(InputError, match=words):
            write_table(unreachable(), path, every_type)
        with pytest.raises(InputError, match=words):
            check_output(path)
    assert taken.read_text() == "precious"
    with pytest.raises(InputError, match="unknown kind of table"):
        check_output(tmp_path / "out.xlsx", overwrite=True)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError):
        write_table([synthetic(every_type, 3)], tmp_path / "folder.csv", every_type, overwrite=True)
    write_table([synthetic(every_type, 3)], taken, every_type, overwrite=True)
    assert len(taken.read_text().splitlines()) == 4
    write_table([synthetic(every_type, 3)], tmp_path / "new.csv", every_type, overwrite=True)
