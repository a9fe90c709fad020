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
import pytest

from dpsynth.errors import InputError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import OptOut, open_synthetic, open_table
from dpsynth.tables.cell_kinds import Held, check_frame, kind_of, kind_of_arrow, refusal

from ..support.every_kind import schema_of

SCHEMA = schema_of()
NUMBERS = {Held.WHOLE, Held.FLOAT, Held.DECIMAL}
ALLOWED = {
    "key": {Held.WHOLE},
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
    check_frame(pd.DataFrame({"key": [7], "sex": ["F"]}), needed, schema)
    typed = pd.DataFrame({"key": [7.0], "sex": ["F"]})
    with pytest.raises(TableError, match="must be text"):
        check_frame(typed, needed, schema)
    check_frame(typed.iloc[:0], needed, schema)  # the type of a column without rows says nothing


def test_a_key_that_is_declared_whole_is_text_or_whole_numbers() -> None:
    schema = schema_of("age", key="integer")
    allowed = {kind for kind in Held if refusal(schema.column("key"), kind, schema) is None}
    assert allowed == {Held.TEXT, Held.WHOLE}


def test_whole_numbers_where_each_declared_number_has_one_text() -> None:
    sex = replace(SCHEMA.column("sex"), categories=("1", "2", "x"))
    assert refusal(sex, Held.WHOLE, SCHEMA) is None
    for kind in (Held.FLOAT, Held.DECIMAL, Held.ROUNDED):
        assert "so it must be text" in (refusal(sex, kind, SCHEMA) or "")
    for text in ("02", "1.0", "+1", "-0", "1,5"):
        padded = replace(sex, categories=("1", text))
        assert "no whole number is written so" in (refusal(padded, Held.WHOLE, SCHEMA) or "")
        token = replace(SCHEMA.column("key"), missing_values=("", text))
        assert "no whole number is written so" in (refusal(token, Held.WHOLE, SCHEMA) or "")
    icd = Schema.load("diabetes130").column("diag_1")
    assert icd.codes is not None
    assert "codes may have leading zeros" in (refusal(icd, Held.WHOLE, SCHEMA) or "")


def test_large_whole_numbers_that_pandas_may_have_rounded_are_no_keys() -> None:
    schema, needed = schema_of("sex"), ("key", "sex")
    for number, refused in ((2**53 - 1, False), (2**53, True), (-(2**53), True)):
        frame = pd.DataFrame({"key": [number, None], "sex": ["F", "M"]}).astype({"key": "Int64"})
        if refused:
            with pytest.raises(TableError, match="may have been rounded"):
                check_frame(frame, needed, schema)
        else:
            check_frame(frame, needed, schema)
    check_frame(pd.DataFrame({"key": [2**62, 7], "sex": ["F", "M"]}), needed, schema)


@pytest.mark.parametrize(
    ("form", "allowed"),
    [("%Y%m%d", True), ("%Y-%m-%d", False), ("%d%m%Y", False), ("%y%m%d", False), (None, False)],
)
def test_dates_as_numbers_need_a_format_of_digits(form: str | None, allowed: bool) -> None:
    seen = replace(SCHEMA.column("seen"), format=form)
    for kind in NUMBERS:
        assert (refusal(seen, kind, SCHEMA) is None) is allowed
    assert "%Y%m%d" in (refusal(replace(seen, format=None), Held.WHOLE, SCHEMA) or "")


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
    ([time(1, 2)], Held.CLOCK),
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
    (pd.Series(pd.to_timedelta([1])), Held.DURATION),
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
        (pa.decimal256(9, 0), Held.WHOLE),
        (pa.decimal256(9, 2), Held.DECIMAL),
        (pa.date64(), Held.TIME),
        (pa.timestamp("ns"), Held.TIME),
        (pa.timestamp("ns", "UTC"), Held.ZONED),
        (pa.bool_(), Held.TRUTH),
        (pa.null(), Held.NOTHING),
        (pa.binary(), Held.OTHER),
        (pa.time32("s"), Held.CLOCK),
    ],
)
def test_kinds_of_arrow(kind: Any, held: Held) -> None:
    assert kind_of_arrow(kind) is held


CANARY = 73_619


@pytest.mark.parametrize("file", [False, True])
def test_a_refusal_says_what_where_and_what_to_do_and_quotes_nothing(
    file: bool, tmp_path: Path
) -> None:
    source: Any = pd.DataFrame(
        {"key": [CANARY + 0.5, 1], "sex": [CANARY, 2], "age": ["1", "2"]}, dtype=object
    ).infer_objects()
    if file:
        source.to_parquet(tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    with pytest.raises(TableError) as refused:
        open_table(source, schema_of("sex", "age"))
    message = str(refused.value)
    assert "column 'key' holds floating-point numbers" in message
    assert "leading zeros" in message and "cells of every patient" in message
    assert message.endswith("Also refused: sex") and str(CANARY) not in message
    assert ("from the source" in message) is file
    assert ("dpsynth.read_table(path, schema), or with dtype=str" in message) is not file


def test_a_public_table_may_have_any_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": [1, 2], "weight": np.array([1, 2], "float32")})
    schema = schema_of("sex", "weight")
    assert len(list(open_synthetic(frame, schema).chunks())) == 1
    frame.to_parquet(tmp_path / "t.parquet")
    assert len(list(open_synthetic(tmp_path / "t.parquet", schema).chunks())) == 1


def test_opted_out_keys_are_text_or_whole_numbers(tmp_path: Path) -> None:
    schema = schema_of("sex")
    pd.DataFrame({"key": [7, 8]}).to_parquet(tmp_path / "gone.parquet")
    assert OptOut.load(tmp_path / "gone.parquet", schema).keys == {"7", "8"}
    pd.DataFrame({"key": [7, None]}).to_parquet(tmp_path / "gone.parquet")
    with pytest.raises(TableError, match="column 'key' holds floating-point numbers"):
        OptOut.load(tmp_path / "gone.parquet", schema)
    with pytest.raises(InputError, match="not text"):
        OptOut.of([7, "8"], schema)  # type: ignore[list-item]
    (tmp_path / "gone.csv").write_text("key\n007\n")
    assert OptOut.load(tmp_path / "gone.csv", schema).keys == {"007"}
