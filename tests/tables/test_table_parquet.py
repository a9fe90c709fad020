"""Reading Parquet: its types as a schema means them, keys exact, damaged files not quoted."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import TableError
from dpsynth.ledger import source_digest
from dpsynth.schema import Schema
from dpsynth.tables import open_table, simulate, split_file
from dpsynth.tables.checks import CHUNK

from ..support.small_table import BASIS, SCHEMA, cells


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
    facts = {"version": 1, "population": number, "rows": number}
    schema = Schema.from_dict({"fields": [born], "dpsynth": facts})
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
        (pa.array([1, 2], pa.duration("us")), "of Parquet type duration"),
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
    facts = {"version": 1, "population": number, "rows": number}
    schema = Schema.from_dict({"fields": [column], "dpsynth": facts})
    path = parquet(tmp_path / "a.parquet", **{"a.b": [True], "a": [3], "a.b.c": [4]})
    frame = next(iter(open_table(path, schema).chunks()))
    assert frame.to_dict("list") == {"a.b": [True]}


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


def parts(folder: Path, *frames: pd.DataFrame) -> Path:
    folder.mkdir()
    for number, frame in enumerate(frames):
        frame.to_parquet(folder / f"part-{number}.parquet", row_group_size=3)
    return folder


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    frame = simulate(20, seed=1)
    schema = Schema.load("demo")
    folder = parts(tmp_path / "extract", frame[5:], frame[:5], frame[:0])
    (folder / "_SUCCESS").touch()
    table: Any = open_table(folder, schema)
    read = pd.concat(table.chunks(), ignore_index=True)
    assert read["age"].tolist() == [*frame["age"][5:], *frame["age"][:5]]
    cut = table.parts(4)
    assert len(cut) > 2
    in_parts = pd.concat([chunk for part in cut for chunk in part.chunks()], ignore_index=True)
    pd.testing.assert_frame_equal(in_parts, read)
    whole = tmp_path / "whole"
    sides = split_file(folder, schema, whole, holdout=0.5, seed=1)
    assert [side.name for side in sides] == ["train.parquet", "holdout.parquet"]
    copied = pd.concat([pd.read_parquet(side) for side in sides])
    assert list(copied.columns) == list(frame.columns) and len(copied) == len(frame)


def test_a_folder_is_told_apart_by_all_its_parts(tmp_path: Path) -> None:
    frame = simulate(20, seed=1)
    folder = parts(tmp_path / "extract.parquet", frame[:5], frame[5:])
    before = source_digest(folder, b"key")
    assert before == source_digest(str(folder), b"key")
    (folder / "_SUCCESS").write_text("done")
    assert source_digest(folder, b"key") == before
    frame[5:9].to_parquet(folder / "part-1.parquet")
    assert source_digest(folder, b"key") != before


def test_folders_that_are_no_table_are_refused(tmp_path: Path) -> None:
    frame, schema = simulate(20, seed=1), Schema.load("demo")
    other = parts(tmp_path / "other", frame[:5], frame[5:].assign(age=frame["age"].astype("int8")))
    with pytest.raises(TableError, match=r"part-1.*column 'age' has another type than in other"):
        open_table(other, schema)
    (other / "part-1.parquet").unlink()
    (other / "notes.csv").write_text("a\n")
    with pytest.raises(TableError, match="is a folder; name a file"):
        open_table(other, schema)
    hive = parts(tmp_path / "hive.parquet")
    parts(hive / "year=2015", frame)
    with pytest.raises(TableError, match="has folders within it: .* partitioned"):
        open_table(hive, schema)
    with pytest.raises(TableError, match="holds nothing but the parts"):
        open_table(parts(tmp_path / "empty.parquet"), schema)
    (tmp_path / "extract.csv").mkdir()
    with pytest.raises(TableError, match="is a folder; name a file"):
        open_table(tmp_path / "extract.csv", schema)
