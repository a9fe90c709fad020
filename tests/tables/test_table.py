from __future__ import annotations

import gzip
import os
import tracemalloc
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding.codec import Codec
from dpsynth.errors import InputError, TableError
from dpsynth.schema.schema import Schema
from dpsynth.tables.checks import CHUNK, chunk_rows
from dpsynth.tables.table import check_output, open_synthetic, open_table, write_table

BASIS = {"bounds_basis": "made for this test"}
FIELDS = [
    {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}},
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    {
        "name": "age",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 120},
        "dpsynth": BASIS,
    },
    {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": BASIS},
]


def small_schema(keep: str = "random", **own: Any) -> Schema:
    number = {"value": 90, "basis": "made for this test"}
    table = {"version": 1, "max_rows": number, "population": number, "rows": number, "keep": keep}
    return Schema.from_dict({"fields": FIELDS, "dpsynth": table | own})


SCHEMA = small_schema()
HEADER = "visit,patient,note,age,sex\n"
SMALL = HEADER + "1,p1,hello,33,F\n2,p1,bye,,M\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(source: Any, schema: Schema = SCHEMA) -> list[list[Any]]:
    frames = list(open_table(source, schema).chunks())
    return [row for frame in frames for row in frame.to_numpy(dtype=object).tolist()]


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


def test_short_rows_end_in_missing_cells(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", HEADER + "1,p1\n2,p2,x,44\n3\n")
    assert cells(path) == [["p1", None, None], ["p2", "44", None], [None, None, None]]


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


# What is no table


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "\n\n", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("a.txt", SMALL, "unknown kind of table; use .csv, .csv.gz, .tsv"),
        ("a.gz", SMALL, "unknown kind"),
        ("csv", SMALL, "unknown kind"),
        ("a.csv", "visit,note\n1,x\n", "lacks 3 columns of the schema: patient, age, sex"),
        ("a.csv", "patient,age\n1,3\n", "lacks a column of the schema: sex"),
        ("a.csv", SMALL.replace(",", ";"), "dialect.delimiter"),
        ("a.csv", "patient,age,sex,age,sex\n", "more than one column called age, sex"),
        ("a.csv.gz", SMALL, "not a gzip file"),
        ("a.csv", gzip.compress(SMALL.encode(), mtime=0), "call it .csv.gz"),
        ("a.csv", SMALL.encode("utf-16-le"), "line 1 has a NUL byte"),
        ("a.csv", b"PAR1" + bytes(range(128)), "line 1 has a NUL byte"),
        ("a.csv", "gr\xfcn,".encode("latin-1") + SMALL.encode(), "not valid utf-8"),
        ("a.parquet", SMALL, "not a Parquet file"),
        ("a.parquet", b"PAR1 and so on PAR1", "not a Parquet file"),
    ],
)
def test_refused_before_any_row_is_read(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(TableError) as caught:
        open_table(path, SCHEMA)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None, "a chained error may quote a cell"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", HEADER, "has a header and no rows"),
        ("a.csv", HEADER + "\n\n", "has a header and no rows"),
        ("a.csv", SMALL + "3,p2,x,4,M,5\n", "line 4: 6 fields, the header has 5"),
        ("a.csv", SMALL + '3,"p\n2",x,4,M,\n', "line 5: 6 fields"),
        ("a.csv", SMALL + '3,"p2"x,x,4,M\n', "line 4: the quotes"),
        ("a.csv", SMALL + '3,"p2,x,4,M\n', "line 4: the quotes"),
        ("a.csv", SMALL + '3,"p2' + "x\n" * 100_000, "the quotes"),
        ("a.csv", SMALL.encode() + b"3,p\xff2,x,4,M\n" * 9, "not valid utf-8, the declared"),
        ("a.csv", SMALL + "3,p2,\0x,4,M\n", "line 4 has a NUL byte"),
        ("a.csv.gz", gzip.compress(SMALL.encode() * 9999, mtime=0)[:-900], "damaged or cut off"),
        ("a.csv.gz", gzip.compress(SMALL.encode(), mtime=0)[:-8] + b"\0" * 8, "damaged or cut off"),
    ],
)
def test_refused_while_reading(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    path = put(tmp_path / name, content)
    # What lies in the first few kilobytes may be found on opening.
    with pytest.raises(TableError) as caught:
        list(open_table(path, SCHEMA).chunks())
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_without_line_ends_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.tables.csv.MAX_LINE_LENGTH", 1000)
    path = put(tmp_path / "a.csv", SMALL + "x" * 1001)
    with pytest.raises(TableError, match="line 4: longer than 1000 characters"):
        list(open_table(path, SCHEMA).chunks())


def test_paths_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path, SCHEMA)
    with pytest.raises(TableError, match="no such file"):
        open_table(tmp_path / "nothing.csv", SCHEMA)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path / "a.csv", SMALL)
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(TableError, match="cannot be read: Permission denied"):
        open_table(path, SCHEMA)


def test_a_missing_header_is_not_quoted(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "1,canary-1,canary-2,33,F\n2,canary-1,x,34,M\n")
    with pytest.raises(TableError) as caught:
        open_table(path, SCHEMA)
    assert "canary" not in str(caught.value)


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


# Parquet


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("ages", "wanted"),
    [
        (pa.array([33, None], pa.int8()), [33, 121]),
        (pa.array([33, None], pa.uint64()), [33, 121]),
        (pa.array([33.0, None], pa.float64()), [33, 121]),
        (pa.array([33.5, float("nan")], pa.float64()), [121, 121]),
        (pa.array([Decimal("33.00"), None], pa.decimal128(9, 2)), [33, 121]),
        (pa.array([Decimal("33"), None], pa.decimal128(20, 0)), [33, 121]),
        (pa.array(["33", None], pa.string()), [33, 121]),
        (pa.array(["33", "x"], pa.large_string()), [33, 121]),
        (pa.array(["33", None]).dictionary_encode(), [33, 121]),
        (pa.array([33, None]).dictionary_encode(), [33, 121]),
        (pa.array([None, None], pa.null()), [121, 121]),
    ],
)
def test_parquet_numbers(tmp_path: Path, ages: pa.Array, wanted: list[int]) -> None:
    path = parquet(tmp_path / "a.parquet", patient=["1", "2"], sex=["F", "M"], age=ages)
    frame = next(iter(open_table(path, SCHEMA).chunks()))
    assert Codec(SCHEMA).encode(frame)[:, 0].tolist() == wanted


@pytest.mark.parametrize(
    ("days", "wanted"),
    [
        (pa.array([date(2000, 1, 2), None]), [1, 31]),
        (pa.array([date(2000, 1, 2), date(9999, 12, 31)], pa.date64()), [1, 30]),
        (pa.array([datetime(2000, 1, 2, 23), None], pa.timestamp("ns")), [1, 31]),
        (pa.array([datetime(1, 1, 1), datetime(9999, 1, 1)], pa.timestamp("us")), [0, 30]),
        (pa.array(["2000-01-02", ""]), [1, 31]),
        (pa.array([date(2000, 1, 2), None]).dictionary_encode(), [1, 31]),
    ],
)
def test_parquet_dates(tmp_path: Path, days: pa.Array, wanted: list[int]) -> None:
    number = {"value": 90, "basis": "made for this test"}
    limits = {"minimum": "2000-01-01", "maximum": "2000-01-31"}
    born = {"name": "born", "type": "date", "constraints": limits, "dpsynth": BASIS}
    own = {"version": 1, "population": number, "rows": number}
    schema = Schema.from_dict({"fields": [born], "dpsynth": own})
    path = parquet(tmp_path / "a.parquet", born=days)
    frame = next(iter(open_table(path, schema).chunks()))
    assert Codec(schema).encode(frame)[:, 0].tolist() == wanted


def test_parquet_keys_stay_exact(tmp_path: Path) -> None:
    keys = [str(2**60), str(2**60 + 1), None]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        patient = pa.array(keys).cast(kind)
        path = parquet(tmp_path / "a.parquet", patient=patient, sex=["F"] * 3, age=[1] * 3)
        frame = next(iter(open_table(path, SCHEMA).chunks()))
        assert [str(key) for key in frame["patient"][:2]] == [str(key) for key in keys[:2]]
        assert pd.isna(frame["patient"][2])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([[1], [2]]), "column 'age' is nested"),
        (pa.array([{"canary": 1}, None]), "column 'age' is nested"),
        (pa.array([b"1", b"2"]), "of Parquet type binary"),
        (pa.array([1, 2], pa.time64("us")), "of Parquet type time64"),
    ],
)
def test_parquet_types_that_no_schema_means(tmp_path: Path, column: pa.Array, words: str) -> None:
    path = parquet(tmp_path / "a.parquet", patient=["1", "2"], sex=["F", "M"], age=column)
    with pytest.raises(TableError, match=words) as caught:
        open_table(path, SCHEMA)
    assert "canary" not in str(caught.value)
    parquet(tmp_path / "b.parquet", patient=["1"], sex=["F"], age=[1], note=column[:1])
    assert cells(tmp_path / "b.parquet") == [["1", 1, "F"]], "columns not needed are not read"


def test_parquet_chunks_names_and_rows(tmp_path: Path) -> None:
    rows = CHUNK + 10
    path = parquet(
        tmp_path / "a.parquet",
        patient=list(map(str, range(rows))),
        sex=["F"] * rows,
        age=[5] * rows,
    )
    done: list[float] = []
    frames = list(open_table(path, SCHEMA).chunks(done.append))
    assert [len(frame) for frame in frames] == [CHUNK, 10]
    assert done == [CHUNK / rows, 1.0]
    with pytest.raises(TableError, match="lacks 2 columns of the schema: age, sex"):
        open_table(parquet(tmp_path / "b.parquet", patient=[1]), SCHEMA)
    empty = parquet(tmp_path / "c.parquet", patient=[], sex=[], age=[])
    with pytest.raises(TableError, match="has a header and no rows"):
        list(open_table(empty, SCHEMA).chunks())
    double = pa.table([[1], [2], ["F"], [3]], names=["patient", "age", "sex", "age"])
    pq.write_table(double, tmp_path / "d.parquet")
    with pytest.raises(TableError, match="more than one column called age"):
        open_table(tmp_path / "d.parquet", SCHEMA)


def test_damaged_parquet_is_not_quoted(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "a.parquet", patient=["canary"] * 999, sex=["F"] * 999, age=range(999)
    )
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(TableError, match="damaged") as caught:
        list(open_table(path, SCHEMA).chunks())
    assert "canary" not in str(caught.value)


def test_parquet_column_names_with_dots(tmp_path: Path) -> None:
    number = {"value": 90, "basis": "made for this test"}
    column = {"name": "a.b", "type": "boolean"}
    own = {"version": 1, "population": number, "rows": number}
    schema = Schema.from_dict({"fields": [column], "dpsynth": own})
    path = parquet(tmp_path / "a.parquet", **{"a.b": [True], "a": [3], "a.b.c": [4]})
    frame = next(iter(open_table(path, schema).chunks()))
    assert frame.to_dict("list") == {"a.b": [True]}


# Writing


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
        {
            "name": "dose",
            "type": "number",
            "constraints": {"minimum": 0, "maximum": 2},
            "dpsynth": BASIS | {"step": 0.25},
        },
        {"name": "ill", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
        {
            "name": "day",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "01.01.1990", "maximum": "01.02.1990"},
            "dpsynth": BASIS,
        },
        {
            "name": "since",
            "type": "year",
            "constraints": {"minimum": 900, "maximum": 1100},
            "dpsynth": BASIS,
        },
    ]
    number = {"value": 90, "basis": "made for this test"}
    dialect = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    own = {"version": 1, "population": number, "rows": number, "dialect": dialect}
    schema = Schema.from_dict({"fields": fields, "missingValues": ["NA"], "dpsynth": own})
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


@pytest.mark.parametrize("scale", [0, 1])
def test_decimal_keys_are_refused(scale: int, tmp_path: Path) -> None:
    schema = Schema.load("demo")
    names = [column.name for column in schema.columns]
    keys = pa.array([Decimal(2**60 + n) for n in range(3)], pa.decimal128(22, scale))
    columns = {name: pa.array(["x"] * 3) for name in names} | {str(schema.unit.column): keys}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="'patient_id' holds decimal numbers, and it is the key"):
        open_table(tmp_path / "t.parquet", schema)


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_float_keys_are_refused_before_any_row_is_read(kind: str, tmp_path: Path) -> None:
    """One missing key turns long integers into floats, in which these three would be one unit."""
    document = Schema.load("demo").to_dict()
    unit = next(f for f in document["fields"] if f.get("dpsynth", {}).get("role") == "unit")
    schema = Schema.load("demo")
    frame = pd.DataFrame({column.name: ["x"] * 4 for column in schema.columns})
    frame[unit["name"]] = [2**60 + 1, 2**60 + 2, 2**60 + 3, None]
    assert frame[unit["name"]].nunique() == 1
    source: pd.DataFrame | Path = frame
    if kind == "parquet":
        source = tmp_path / "t.parquet"
        frame.to_parquet(source)
    with pytest.raises(TableError, match="holds floating-point numbers, and it is the key"):
        open_table(source, schema)
    frame[unit["name"]] = ["a", "b", "c", None]
    open_table(frame, schema)
