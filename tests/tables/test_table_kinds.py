"""Which cells each kind of column may arrive with, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.errors import InputError, TableError
from dpsynth.schema.schema import Schema
from dpsynth.tables.cell_kinds import Held, check_frame, kind_of, kind_of_arrow, refusal
from dpsynth.tables.opt_out import OptOut
from dpsynth.tables.table import open_synthetic, open_table
from dpsynth.tables.unit_keys import NO_KEY, Keys

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
TIMES = {"minimum": "2000-01-01T00:00:00", "maximum": "2020-12-31T00:00:00"}


def field(kind: str, limits: Any = None, **top: Any) -> dict[str, Any]:
    return {"type": kind, "constraints": limits or {}, "dpsynth": BASIS} | top


COLUMNS = {
    "sex": field("string", {"enum": ["F", "M"]}),
    "word": field("string", {"enum": ["NA", "x"]}),
    "age": field("integer", {"minimum": 0, "maximum": 120}),
    "weight": field("number", {"minimum": 0, "maximum": 300}),
    "born": field("year", {"minimum": 1900, "maximum": 2020}),
    "smoker": field("boolean"),
    "ill": field("boolean", trueValues=["1", "yes"], falseValues=["0", "no"]),
    "rare": field("boolean", trueValues=["2"], falseValues=["1"]),
    "seen": field("date", DAYS),
    "left": field("date", {"minimum": "01/01/2000", "maximum": "31/12/2020"}, format="%d/%m/%Y"),
    "hour": field("datetime", TIMES),
}


def schema_of(*names: str, key: str = "string", **own: Any) -> Schema:
    fields = [{"name": name} | COLUMNS[name] for name in names or COLUMNS]
    unit = {"name": "key", "type": key, "dpsynth": {"role": "unit"}}
    table = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    return Schema.from_dict({"fields": [unit, *fields], "dpsynth": table | own})


SCHEMA = schema_of()
NUMBERS = {Held.WHOLE, Held.FLOAT, Held.DECIMAL}
ALLOWED = {
    "key": set(),
    "sex": {Held.NOTHING},
    "word": set(),
    "age": NUMBERS | {Held.NOTHING},
    "weight": NUMBERS | {Held.NOTHING},
    "born": NUMBERS | {Held.NOTHING},
    "smoker": NUMBERS | {Held.TRUTH, Held.NOTHING},
    "ill": NUMBERS | {Held.NOTHING},
    "rare": {Held.NOTHING},
    "seen": {Held.TIME, Held.NOTHING},
    "left": {Held.NOTHING},
    "hour": {Held.TIME, Held.NOTHING},
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_each_column_may_hold(name: str) -> None:
    column = SCHEMA.column(name)
    allowed = {kind for kind in Held if refusal(column, kind, SCHEMA) is None}
    assert allowed == ALLOWED[name] | {Held.TEXT}


@pytest.mark.parametrize("word", ["NA", "null", "None", "nan"])
def test_a_declared_word_that_readers_take_for_missing_makes_it_text(word: str) -> None:
    """Arrow reads 1, 0, NA as numbers and a missing cell, until one cell more is a word."""
    usual = replace(SCHEMA.column("smoker"), false_values=("false", "False", "FALSE", "0"))
    own = replace(usual, false_values=(*usual.false_values, word))
    assert refusal(usual, Held.WHOLE, SCHEMA) is None is refusal(usual, Held.NOTHING, SCHEMA)
    for kind in set(Held) - {Held.TEXT}:
        assert refusal(own, kind, SCHEMA) is not None
    assert "many readers take" in (refusal(own, Held.TRUTH, SCHEMA) or "")


@pytest.mark.parametrize("token", ["0", "1.0", "01"])
def test_a_number_that_means_missing_makes_truth_values_text(token: str) -> None:
    column = replace(SCHEMA.column("smoker"), missing_values=("", token))
    for kind in NUMBERS:
        assert refusal(column, kind, SCHEMA) is not None


@pytest.mark.parametrize("words", ["true_values", "false_values"])
@pytest.mark.parametrize("lost", range(3))
def test_truth_values_are_taken_where_all_usual_words_mean_them(words: str, lost: int) -> None:
    """Readers take True and TRUE as well; a schema that does not would not know them as text."""
    usual = getattr(SCHEMA.column("smoker"), words)
    column = replace(SCHEMA.column("smoker"), **{words: usual[:lost] + usual[lost + 1 :]})
    assert refusal(SCHEMA.column("smoker"), Held.TRUTH, SCHEMA) is None
    assert refusal(column, Held.TRUTH, SCHEMA) is not None


def test_a_frame_of_one_row_is_checked_as_any_other() -> None:
    schema, needed = schema_of("sex"), ("key", "sex")
    check_frame(pd.DataFrame({"key": ["7"], "sex": ["F"]}), needed, schema)
    typed = pd.DataFrame({"key": [7], "sex": ["F"]})
    with pytest.raises(TableError, match="must be text"):
        check_frame(typed, needed, schema)
    check_frame(typed.iloc[:0], needed, schema)  # the type of a column without rows says nothing


def test_a_key_that_is_declared_whole_is_text_all_the_same() -> None:
    schema = schema_of("age", key="integer")
    allowed = {kind for kind in Held if refusal(schema.column("key"), kind, schema) is None}
    assert allowed == {Held.TEXT}


def test_a_decimal_comma_leaves_whole_numbers_where_no_other_can_be() -> None:
    schema = schema_of(dialect={"decimal": ",", "delimiter": ";"})
    for name in ("age", "born", "smoker"):
        assert refusal(schema.column(name), Held.WHOLE, schema) is None
        assert refusal(schema.column(name), Held.FLOAT, schema) is not None
        assert refusal(schema.column(name), Held.DECIMAL, schema) is not None
    assert all(refusal(schema.column("weight"), kind, schema) is not None for kind in NUMBERS)
    assert refusal(schema.column("seen"), Held.TIME, schema) is None


OBJECTS: list[tuple[list[Any], Held]] = [
    (["a", None, np.nan, pd.NA], Held.TEXT),
    ([None, np.nan, pd.NaT], Held.NOTHING),
    ([1, None], Held.WHOLE),
    ([10**30, 1], Held.WHOLE),
    ([1.5, 2], Held.FLOAT),
    ([Decimal("1.5"), None], Held.DECIMAL),
    ([True, None], Held.TRUTH),
    ([date(2001, 2, 3), None], Held.TIME),
    ([datetime(2001, 2, 3), pd.Timestamp("2001-02-03")], Held.TIME),
    ([datetime(2001, 2, 3, tzinfo=UTC), datetime(2001, 2, 3)], Held.ZONED),
    ([datetime(2001, 2, 3), None, datetime(2001, 2, 3, tzinfo=UTC)], Held.ZONED),
    (["1", 1], Held.MIXED),
    (["1", 1.5], Held.MIXED),
    (["true", True], Held.MIXED),
    (["2001-02-03", date(2001, 2, 3)], Held.MIXED),
    ([1, True], Held.MIXED),
    ([b"a"], Held.OTHER),
    ([time(1, 2)], Held.OTHER),
    ([1j], Held.OTHER),
    ([["a"]], Held.MIXED),
]


@pytest.mark.parametrize(("cells", "held"), OBJECTS, ids=[repr(cells) for cells, _ in OBJECTS])
def test_kinds_of_objects(cells: list[Any], held: Held) -> None:
    assert kind_of(pd.Series(cells, dtype=object)) is held
    if held in (Held.TEXT, Held.WHOLE) and cells[0] != 10**30:
        assert kind_of(pd.Series(cells, dtype=object).astype("category")) is held


SERIES: list[tuple[pd.Series, Held]] = [
    (pd.Series(["a"], dtype="string"), Held.TEXT),
    (pd.Series(["a"], dtype="string[pyarrow]"), Held.TEXT),
    (pd.Series([None], dtype="string"), Held.TEXT),
    (pd.Series(["a"], dtype=pd.ArrowDtype(pa.large_string())), Held.TEXT),
    (pd.Series([1], dtype="uint8"), Held.WHOLE),
    (pd.Series([1, None], dtype="Int64"), Held.WHOLE),
    (pd.Series([1], dtype="int64[pyarrow]"), Held.WHOLE),
    (pd.Series([1.5, None]), Held.FLOAT),
    (pd.Series([np.nan, np.nan]), Held.NOTHING),
    (pd.Series([None], dtype="Int64"), Held.NOTHING),
    (pd.Series([1.5], dtype="float32"), Held.SINGLE),
    (pd.Series([1.5], dtype="Float32"), Held.SINGLE),
    (pd.Series([1.5], dtype="float[pyarrow]"), Held.SINGLE),
    (pd.Series([Decimal(1)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))), Held.DECIMAL),
    (pd.Series([True]), Held.TRUTH),
    (pd.Series([True, None], dtype="boolean"), Held.TRUTH),
    (pd.Series(pd.to_datetime(["2001-02-03"])), Held.TIME),
    (pd.Series(pd.to_datetime(["2001-02-03"]).tz_localize("Asia/Tokyo")), Held.ZONED),
    (pd.Series([date(2001, 2, 3)], dtype="date32[pyarrow]"), Held.TIME),
    (pd.Series([datetime(2001, 2, 3)], dtype=pd.ArrowDtype(pa.timestamp("us", "UTC"))), Held.ZONED),
    (pd.Series([None], dtype=pd.ArrowDtype(pa.null())), Held.NOTHING),
    (pd.Series([1, 2]).astype("category"), Held.WHOLE),
    (pd.Series([1, "a"]).astype("category"), Held.MIXED),
    (pd.Series(pd.to_timedelta([1])), Held.OTHER),
    (pd.Series(pd.period_range("2001", periods=1, freq="D")), Held.OTHER),
    (pd.Series(pd.arrays.SparseArray([1, 2])), Held.OTHER),
]


@pytest.mark.parametrize(("cells", "held"), SERIES, ids=[str(cells.dtype) for cells, _ in SERIES])
def test_kinds_of_columns(cells: pd.Series, held: Held) -> None:
    assert kind_of(cells) is held


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (pa.string(), Held.TEXT),
        (pa.string_view(), Held.TEXT),
        (pa.dictionary(pa.int8(), pa.string()), Held.TEXT),
        (pa.dictionary(pa.int8(), pa.int64()), Held.WHOLE),
        (pa.float16(), Held.SINGLE),
        (pa.float32(), Held.SINGLE),
        (pa.float64(), Held.FLOAT),
        (pa.decimal256(9, 0), Held.DECIMAL),
        (pa.date64(), Held.TIME),
        (pa.timestamp("ns"), Held.TIME),
        (pa.timestamp("ns", "UTC"), Held.ZONED),
        (pa.bool_(), Held.TRUTH),
        (pa.null(), Held.NOTHING),
        (pa.binary(), Held.OTHER),
        (pa.time32("s"), Held.OTHER),
    ],
)
def test_kinds_of_arrow(kind: Any, held: Held) -> None:
    assert kind_of_arrow(kind) is held


CANARY = 73_619


@pytest.mark.parametrize("file", [False, True])
def test_a_refusal_says_what_where_and_what_to_do_and_quotes_nothing(
    file: bool, tmp_path: Path
) -> None:
    source: Any = pd.DataFrame({"key": [CANARY, 1], "sex": [CANARY, 2], "age": ["1", "2"]})
    if file:
        source.to_parquet(tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    with pytest.raises(TableError) as refused:
        open_table(source, schema_of("sex", "age"))
    message = str(refused.value)
    for words in ("column 'key' holds whole numbers", "leading zeros", "cells of every patient"):
        assert words in message
    assert message.endswith("Also refused: sex") and str(CANARY) not in message
    assert ("from the source" in message) is file
    assert ("dpsynth.read_table(path, schema), or with dtype=str" in message) is not file


def test_a_public_table_may_have_any_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": [1, 2], "weight": np.array([1, 2], "float32")})
    schema = schema_of("sex", "weight")
    assert len(list(open_synthetic(frame, schema).chunks())) == 1
    frame.to_parquet(tmp_path / "t.parquet")
    assert len(list(open_synthetic(tmp_path / "t.parquet", schema).chunks())) == 1


def test_opted_out_keys_are_text(tmp_path: Path) -> None:
    schema = schema_of("sex")
    pd.DataFrame({"key": [7, 8]}).to_parquet(tmp_path / "gone.parquet")
    with pytest.raises(TableError, match="column 'key' holds whole numbers"):
        OptOut.load(tmp_path / "gone.parquet", schema)
    with pytest.raises(InputError, match="not text"):
        OptOut.of([7, "8"], schema)  # type: ignore[list-item]
    (tmp_path / "gone.csv").write_text("key\n007\n")
    assert OptOut.load(tmp_path / "gone.csv", schema).keys == {"007"}


# read_table


def test_a_file_as_text(tmp_path: Path) -> None:
    dialect = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    schema = schema_of("sex", "weight", dialect=dialect)
    (tmp_path / "t.csv").write_bytes(
        "x;weight;sex;key\n1;070,50;;007\n2;NA;M\xfc\n".encode("latin-1")
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
    from dpsynth.encoding.codec import Codec

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
