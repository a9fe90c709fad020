"""Cells become codes: what each cell of a column is taken for."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import RefusedCellError

from ..support.coded_columns import (
    ALL,
    ARM,
    BORN,
    DOSE,
    GRADE,
    SEEN,
    SEX,
    SMOKER,
    STAY,
    TEMPERATURE,
    YEAR,
    codes_of,
    field,
    schema_of,
)


def test_sizes_are_counted_from_the_schema() -> None:
    codec = Codec(schema_of(*ALL, field("number", minimum=0.0, maximum=1.0)))
    assert codec.names == tuple(f"c{i}" for i in range(11))
    # cells + missing; SEX has other and no missing; GRADE's own Other serves; 1001 points.
    assert codec.sizes == (15, 72, 3, 3, 3, 4, 32, 122, 11, 3, 1002)


def test_unmodelled_columns_are_not_encoded() -> None:
    columns = [
        {"type": "string", "dpsynth": {"role": "drop"}},
        STAY,
    ]
    codec = Codec(schema_of(*columns))
    assert codec.names == ("c1",)
    assert codec.encode(pd.DataFrame({"c1": ["3"], "c0": [object()]})).tolist() == [[2]]


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (
            STAY,
            {
                **{"1": 0, " 14 ": 13, "3.0": 2, "3e0": 2, "+3": 2, "03": 2, "\t3\n": 2},
                **{"15": 13, "0": 0, "-7": 0, "1e300": 13, "-1e300": 0},
                **{"": 14, "?": 14, " ? ": 14, "  ": 14},
                # bad cells: on_bad is missing, since the column is nullable
                **{"2.5": 14, "inf": 14, "-inf": 14, "nan": 14, "NaN": 14, "1e999": 14},
                **{"1,000": 14, "1 000": 14, "0x3": 14, "1_0": 14, "three": 14, "3 days": 14},
                **{"true": 14, "None": 14, "+": 14, "--3": 14, "٣": 14, "3\x00": 14, "½": 14},
            },
        ),
        (
            TEMPERATURE,
            {
                **{"35": 0, "35.0": 0, "36.6": 16, "36.64": 16, "36.66": 17, "42": 70},
                **{"99": 70, "-1": 0, "3.66e1": 16, ".1": 0, "36.": 10},
                **{"": 71, "?": 71, "36,6": 71, "36.6 C": 71, "inf": 71},
            },
        ),
        (SEX, {"F": 0, " M ": 1, "f": 2, "X": 2, "other": 2, "": 2, "?": 2, "F\x00": 2}),
        (ARM, {"2": 0, "1": 1, "1.0": 1, " 2e0": 0, "3": 2, "1.5": 2, "one": 2, "": 2}),
        (
            SMOKER,
            {"false": 0, "True": 1, "1": 1, "0": 0, "1.0": 1, "0.0": 0, "yes": 2, "2": 2, "": 2},
        ),
        (DOSE, {"0.5": 0, ".50": 0, "1": 1, "1.0": 1, "2.5": 2, "2.51": 3, "x": 3, "": 3}),
        (
            BORN,
            {
                **{"2000-01-01": 0, "2000-01-31": 30, "2000-01-10T23:59:59": 9},
                **{"2000-01-10 08:00:00": 9, "2000-01-10T23:30:00+02:00": 9},
                **{"1850-07-01": 0, "9999-12-31": 30},
                **{
                    "": 31,
                    "2000-02-30": 31,
                    "31.01.2000": 31,
                    "2000": 31,
                    "today": 31,
                    "5": 31,
                    "20000110": 31,
                },
            },
        ),
        (
            SEEN,
            {
                **{"2000-01-01T00:00:00": 0, "2000-01-01 01:00": 60, "2000-01-01T01:00:29": 60},
                **{"2000-01-01T01:00:31": 61, "2000-01-01T01:00:31Z": 61, "2000-01-01": 0},
                **{"9999-12-31T23:59:59": 120, "0001-01-01": 0, "": 121, "25:00": 121},
            },
        ),
        (YEAR, {"1999": 0, "2008.0": 9, "1066": 0, "3000": 9, "99.5": 10, "": 10}),
        (GRADE, {"low": 0, "high": 1, "Other": 2, "Low": 2, "": 2}),
    ],
)
def test_text(column: dict[str, Any], codes: dict[str, int]) -> None:
    assert dict(zip(codes, codes_of(column, list(codes)), strict=True)) == codes


def test_absent_cells_are_missing() -> None:
    cells = [None, np.nan, pd.NaT, pd.NA, float("nan"), Decimal("NaN"), np.datetime64("NaT")]
    for column, missing in ((STAY, 14), (ARM, 2), (SMOKER, 2), (BORN, 31), (YEAR, 10)):
        assert codes_of(column, cells) == [missing] * len(cells)
        for cell in cells:
            assert codes_of(column, [cell]) == [missing]


@pytest.mark.parametrize(
    ("column", "cells", "codes"),
    [
        (STAY, pd.Series([1, 14, 99], dtype="int8"), [0, 13, 13]),
        (STAY, pd.Series([2**63 - 1, -(2**63), 3]), [13, 0, 2]),
        (STAY, pd.Series([3, None], dtype="Int64"), [2, 14]),
        (STAY, pd.Series([3.0, 2.5, np.nan, np.inf]), [2, 14, 14, 14]),
        (STAY, pd.Series([3.0, None], dtype="Float32"), [2, 14]),
        (STAY, pd.Series([3, 3.0, "3", Decimal("3.0"), np.int16(3), True], dtype=object),
         [2, 2, 2, 2, 2, 0]),
        (STAY, pd.Series([True, False]), [0, 0]),
        (STAY, pd.Series(["3", "x", None], dtype="string"), [2, 14, 14]),
        (STAY, pd.Series(["3", "5", None, "3"], dtype="category"), [2, 4, 14, 2]),
        (STAY, pd.Series([3, 5, None, 3], dtype="category"), [2, 4, 14, 2]),
        (STAY, pd.Series(pd.to_datetime(["2000-01-01", None])), [14, 14]),
        (STAY, pd.Series([b"3", [3], {"a": 3}, (3,)], dtype=object), [2] + [14] * 3),
        (STAY, pd.Series(pd.to_timedelta([1, 2])), [14, 14]),
        (STAY, pd.Series([3 + 0j, 4 + 1j]), [14, 14]),
        (STAY, pd.Series([3, None], dtype="int64[pyarrow]"), [2, 14]),
        (STAY, pd.Series(["3", None], dtype="string[pyarrow]"), [2, 14]),
        (TEMPERATURE, pd.Series([Decimal("36.6"), None, Decimal("Infinity")]), [16, 71, 71]),
        (SEX, pd.Series(["M", "F", "?", None], dtype="category"), [1, 0, 2, 2]),
        (ARM, pd.Series([1.0, 2.0, 3.0, np.nan]), [1, 0, 2, 2]),
        (ARM, pd.Series([True, False]), [1, 2]),
        (SMOKER, pd.Series([True, False]), [1, 0]),
        (SMOKER, pd.Series([True, None], dtype="boolean"), [1, 2]),
        (SMOKER, pd.Series([True, None, 0, 1.0, "true"], dtype=object), [1, 2, 0, 1, 1]),
        (SMOKER, pd.Series([1, 0, 2]), [1, 0, 2]),
        (DOSE, pd.Series([0.5, 1.0, 7.0]), [0, 1, 3]),
        (BORN, pd.Series(pd.to_datetime(["2000-01-02 13:00", None])), [1, 31]),
        (BORN, pd.Series(pd.to_datetime(["2000-01-02 23:00"]).tz_localize("Asia/Tokyo")), [1]),
        (BORN, pd.Series([date(2000, 1, 2), datetime(2000, 1, 3, 5), date(9999, 12, 31), None]),
         [1, 2, 30, 31]),
        (BORN, pd.Series(np.array(["9999-12-31", "NaT"], dtype="datetime64[s]")), [30, 31]),
        (BORN, pd.Series([date(2000, 1, 2), None], dtype="date32[pyarrow]"), [1, 31]),
        (BORN, pd.Series([20000102, 5]), [31, 31]),
        (SEEN, pd.Series(pd.to_datetime(["2000-01-01 01:00:31", None])), [61, 121]),
        (SEEN, pd.Series([datetime(2000, 1, 1, 1)], dtype="timestamp[us][pyarrow]"), [60]),
        (SEEN, pd.Series([date(2000, 1, 1), datetime(2000, 1, 1, 1)], dtype=object), [0, 60]),
        (YEAR, pd.Series(pd.to_datetime(["2001-05-05", None])), [10, 10]),
        (GRADE, pd.Series(["low", 3, None], dtype=object), [0, 2, 2]),
    ],
)  # fmt: skip
def test_typed_cells(column: dict[str, Any], cells: pd.Series, codes: list[int]) -> None:
    assert codes_of(column, cells) == codes


def test_whole_floats_name_text_categories() -> None:
    column = field("string", enum=["0", "1"], required=True)
    assert codes_of(column, pd.Series([0.0, 1.0, 2.0])) == [0, 1, 2]


def test_missing_tokens_count_by_value_too() -> None:
    column = field("integer", minimum=0, maximum=100, missingValues=["999", "-9"])
    assert codes_of(column, ["999", "999.0", "-9", " -9.0 ", "998", "?"]) == [
        *(101, 101, 101, 101, 100, 101),
    ]
    assert codes_of(column, pd.Series([999, -9, 5])) == [101, 101, 5]
    category = field("integer", enum=[1, 2], missingValues=["9"])
    assert codes_of(category, ["9", "9.0", "1"]) == [2, 2, 0]
    assert codes_of(category, pd.Series([9.0, 1.0])) == [2, 0]


def test_required_columns_send_missing_and_bad_cells_where_on_bad_says() -> None:
    lowest = field("integer", required=True, minimum=1, maximum=14)
    assert codes_of(lowest, ["", "x", None, "7"]) == [0, 0, 0, 6]
    highest = field("integer", required=True, minimum=1, maximum=14, on_bad="maximum")
    assert codes_of(highest, ["", "x", None, "7"]) == [13, 13, 13, 6]
    first = field("integer", required=True, enum=[3, 4])
    assert codes_of(first, ["", "x", "5", "4"]) == [0, 0, 0, 1]
    chosen = field("string", required=True, enum=["a", "b"], on_unknown="b", on_bad="a")
    assert codes_of(chosen, ["", "z", "a"]) == [0, 1, 0]
    no = field("boolean", required=True)
    assert codes_of(no, ["", "maybe", "true"]) == [0, 0, 1]


def test_nullable_columns_may_send_bad_cells_to_a_bound() -> None:
    column = field("integer", minimum=1, maximum=14, on_bad="maximum")
    assert codes_of(column, ["", "x", "inf", "7"]) == [14, 13, 13, 6]
    named = field("string", enum=["a", "b"], on_unknown="other")
    assert codes_of(named, ["", "z", "b"]) == [3, 2, 1]


def test_decimal_comma() -> None:
    comma = {"dialect": {"decimal": ",", "delimiter": ";"}}
    assert codes_of(TEMPERATURE, ["36,6", "36.6", "36", "3.600,5", "3,66e1"], **comma) == [
        *(16, 71, 10, 71, 16),
    ]
    assert codes_of(TEMPERATURE, pd.Series([36.6, 42.0]), **comma) == [16, 70]
    assert codes_of(DOSE, ["0,5", "0.5", "1"], **comma) == [0, 3, 1]
    assert codes_of(DOSE, pd.Series([0.5, 2.5]), **comma) == [0, 2]
    assert codes_of(DOSE, pd.Series([0.5, "0,5"], dtype=object), **comma) == [0, 0]
    mixed = pd.Series([36.6, "36,6"], dtype=object)
    assert codes_of(TEMPERATURE, mixed, **comma) == [16, 16]


def test_date_format() -> None:
    column = field("date", minimum="01.01.2000", maximum="31.01.2000", format="%d.%m.%Y")
    cells = ["02.01.2000", "2000-01-02", "31.12.9999", "32.01.2000", "02/01/2000"]
    assert codes_of(column, cells) == [1, 1, 30, 31, 31]
    assert codes_of(column, [date(2000, 1, 2)]) == [1]
    joined = field("date", minimum="20000101", maximum="20000131", format="%Y%m%d")
    assert codes_of(joined, ["20000102", "20000102.0", "2000-01-02"]) == [1, 31, 1]
    assert codes_of(joined, pd.Series([20000102, 2000010])) == [1, 31]
    assert codes_of(joined, pd.Series([20000102.0, None])) == [1, 31]


def test_declared_truth_words() -> None:
    column = field("boolean", trueValues=["yes", "2"])
    assert codes_of(column, ["yes", "2", "no", "0", "1", ""]) == [1, 1, 2, 0, 2, 2]
    assert codes_of(column, pd.Series([True, False])) == [1, 0]


def test_codes_are_rolled_up() -> None:
    rollup = {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}}
    codec = Codec(schema_of({"type": "string", "dpsynth": rollup}))
    levels = codec.schema.modelled[0].levels
    frame = pd.DataFrame({"c0": ["250.83", " V57", "E909", "neoplasm", "hello", "", "?"]})
    wanted = [levels.index(n) for n in ("endocrine", "supplementary", "external", "neoplasm")]
    assert codec.encode(frame)[:, 0].tolist() == [*wanted, 19, 19, 19]


def test_refuse_tells_one_bit() -> None:
    cells = {"bad": ["canary-77", "1"], "unknown": ["canary-77", "a"]}
    for column, texts in (
        (field("integer", minimum=1, maximum=2, on_bad="refuse"), cells["bad"]),
        (field("string", enum=["a", "b"], on_unknown="refuse"), cells["unknown"]),
    ):
        with pytest.raises(RefusedCellError, match="column 'c0' declares `refuse`") as caught:
            codes_of(column, texts)
        assert "canary" not in str(caught.value)
        with pytest.raises(RefusedCellError) as twice:
            codes_of(column, texts * 5)
        assert str(twice.value) == str(caught.value), "the message may not count"
        assert codes_of(column, texts[1:]) == [0]
        assert codes_of(column, [""]) == [2], "a missing cell of a nullable column is no bad cell"
    unused = pd.Series(["a", "a"], dtype=pd.CategoricalDtype(["a", "canary-77"]))
    assert codes_of(field("string", enum=["a", "b"], on_unknown="refuse"), unused) == [0, 0]
