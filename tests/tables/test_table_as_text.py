"""A table read as text: columns as they stand in the file, missing cells as readers take them."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.encoding import Kind, coder_of
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import Keys, open_table
from dpsynth.tables.unit_keys import NO_KEY

from ..support.every_kind import schema_of


def test_a_file_as_text(tmp_path: Path) -> None:
    dialect = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    schema = schema_of("sex", "weight", dialect=dialect)
    (tmp_path / "t.csv").write_bytes(
        "x;weight;sex;key\n1;070,50;;007\n2;NA;M\xfc;\n".encode("latin-1")
    )
    frame = dpsynth.read_table(tmp_path / "t.csv", schema)
    assert list(frame) == ["key", "sex", "weight"]
    assert frame.to_numpy().tolist() == [["007", None, "070,50"], [None, "M\xfc", "NA"]]
    open_table(frame, schema)


def test_the_order_column_is_read_if_it_is_there_and_dropped_ones_never(tmp_path: Path) -> None:
    document = schema_of("age").to_dict()
    document["fields"] += [
        {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}},
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    ]
    schema = Schema.from_dict(document)
    (tmp_path / "t.csv").write_text("note,visit,age,key\nhello,1,33,p\n")
    assert dpsynth.read_table(tmp_path / "t.csv", schema).to_dict("list") == {
        "key": ["p"], "age": ["33"], "visit": ["1"],
    }  # fmt: skip
    (tmp_path / "u.csv").write_text("age,key\n33,p\n")
    assert list(dpsynth.read_table(str(tmp_path / "u.csv"), schema)) == ["key", "age"]


def test_typed_parquet_as_text(tmp_path: Path) -> None:
    names = ("age", "weight", "smoker", "seen", "hour")
    table = pa.table(
        {
            "key": ["007", None],
            "age": pa.array([33, None], pa.int8()),
            "weight": [70.5, 1e-7],
            "smoker": [True, None],
            "seen": [date(2001, 2, 3), None],
            "hour": [datetime(2001, 2, 3, 4, 5), None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    schema = schema_of(*names)
    frame = dpsynth.read_table(tmp_path / "t.parquet", schema)
    assert frame.to_numpy().tolist() == [
        ["007", "33", "70.5", "true", "2001-02-03", "2001-02-03T04:05:00"],
        [None, None, "1e-07", None, None, None],
    ]
    from dpsynth.encoding import Codec

    codes = [
        Codec(schema).encode(pd.concat(open_table(source, schema).chunks())).tolist()
        for source in (frame, tmp_path / "t.parquet")
    ]
    assert codes[0] == codes[1]


def test_tables_that_cannot_be_read_as_text(tmp_path: Path) -> None:
    schema = schema_of("sex")
    with pytest.raises(TableError, match="no such file"):
        dpsynth.read_table(tmp_path / "absent.csv", schema)
    (tmp_path / "t.csv").write_text("key\n1\n")
    with pytest.raises(TableError, match="lacks a column of the schema: sex"):
        dpsynth.read_table(tmp_path / "t.csv", schema)
    pd.DataFrame({"key": ["a"], "sex": [1]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="'sex' holds whole numbers"):
        dpsynth.read_table(tmp_path / "t.parquet", schema)
    (tmp_path / "e.csv").write_text("key,sex\n")
    with pytest.raises(TableError, match="no rows"):
        dpsynth.read_table(tmp_path / "e.csv", schema)


@pytest.mark.parametrize("name", ["sex", "age", "weight", "born", "smoker", "seen", "hour"])
def test_words_that_readers_take_for_missing_are_missing_in_text(name: str) -> None:
    """Arrow makes them missing in columns of numbers, and leaves them where a text is."""
    schema = schema_of(name)
    coder = coder_of(schema.column(name), ".")
    words = pd.Series(["", "NA", "nan", "-NaN", "+NAN", "NULL", "null", "None", "N/A", "<NA>"])
    assert set(coder.kinds(words)) == {Kind.MISSING}
    assert Kind.MISSING not in coder.kinds(pd.Series(["na.", "NULL1", "-", "unknown"]))


def test_a_declared_word_is_a_value_and_a_key_is_never_such_a_word() -> None:
    schema = schema_of("word")
    assert coder_of(schema.column("word"), ".").encode(pd.Series(["NA", "null"])).tolist() == [0, 2]
    units = Keys(schema).units(pd.DataFrame({"key": ["NA", "null", "", None]}))
    assert units.tolist() == [0, 1, NO_KEY, NO_KEY]
