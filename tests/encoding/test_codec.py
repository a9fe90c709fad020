from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding.codec import Codec
from dpsynth.errors import InputError, RefusedCellError, TableError
from dpsynth.schema.schema import Schema

BASIS = {"bounds_basis": "made for this test"}


def schema_of(*fields: Mapping[str, Any], **own: Any) -> Schema:
    number = {"value": 90, "basis": "made for this test"}
    named = [{"name": f"c{i}"} | dict(field) for i, field in enumerate(fields)]
    for field in named:
        field["dpsynth"] = BASIS | dict(field.get("dpsynth", {}))
    return Schema.from_dict(
        {
            "missingValues": ["", "?"],
            "fields": named,
            "dpsynth": {"version": 1, "population": number, "rows": number} | own,
        }
    )


def field(type_: str, required: bool = False, **more: Any) -> dict[str, Any]:
    """A field; bounds and enum are constraints, all else belongs to dpsynth."""
    limits = {key: more.pop(key) for key in ("minimum", "maximum", "enum") if key in more}
    top = {key: more.pop(key) for key in ("format", "trueValues", "missingValues") if key in more}
    return {
        "type": type_,
        "constraints": limits | ({"required": True} if required else {}),
        "dpsynth": more,
    } | top


def codes_of(column: dict[str, Any], cells: Any, **own: Any) -> list[int]:
    """Encode one column; the cells may be a list, an array or a Series."""
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    encoded = Codec(schema_of(column, **own)).encode(pd.DataFrame({"c0": series}))
    assert encoded.dtype == np.uint16
    return encoded[:, 0].tolist()


STAY = field("integer", minimum=1, maximum=14)  # codes 0 .. 13, missing 14
TEMPERATURE = field("number", minimum=35.0, maximum=42.0, step=0.1)  # 71 points, missing 71
SEX = field("string", enum=["F", "M"], required=True)  # F, M, other
ARM = field("integer", enum=[2, 1])  # 2, 1, missing
SMOKER = field("boolean")  # false, true, missing
DOSE = field("number", enum=[0.5, 1, 2.5])
BORN = field("date", minimum="2000-01-01", maximum="2000-01-31")  # 31 days, missing 31
SEEN = field("datetime", minimum="2000-01-01T00:00:00", maximum="2000-01-01T02:00:00")
YEAR = field("year", minimum=1999, maximum=2008)
GRADE = field("string", enum=["low", "high", "Other"], required=True)

ALL = [STAY, TEMPERATURE, SEX, ARM, SMOKER, DOSE, BORN, SEEN, YEAR, GRADE]


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
        for one in cells:
            assert codes_of(column, [one]) == [missing]


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


def test_decoded_types() -> None:
    nullable = Codec(schema_of(*ALL))
    last = np.array([[size - 1 for size in nullable.sizes], [0] * len(nullable.sizes)])
    frame = nullable.decode(last, np.random.default_rng(0))
    kinds = [str(kind) for kind in frame.dtypes]
    assert kinds == [
        *("Int64", "float64", "object", "Int64", "boolean", "float64"),
        *("datetime64[s]", "datetime64[s]", "Int64", "object"),
    ]
    assert frame.iloc[0].isna().tolist() == [True] * 2 + [False] + [True] * 6 + [False]
    assert frame.iloc[1].tolist() == [
        *(1, 35.0, "F", 2, False, 0.5),
        *(pd.Timestamp("2000-01-01"), pd.Timestamp("2000-01-01"), 1999, "low"),
    ]
    assert frame["c2"].iloc[0] == "other"

    required = [dict(c, constraints=c["constraints"] | {"required": True}) for c in ALL]
    codec = Codec(schema_of(*required))
    kinds = [str(kind) for kind in codec.decode(last * 0, np.random.default_rng(0)).dtypes]
    assert kinds == [
        *("int64", "float64", "object", "int64", "bool", "float64"),
        *("datetime64[s]", "datetime64[s]", "int64", "object"),
    ]


def test_decoded_numbers_print_as_declared() -> None:
    codec = Codec(schema_of(TEMPERATURE))
    frame = codec.decode(np.arange(71).reshape(-1, 1), np.random.default_rng(0))
    assert [repr(x) for x in frame["c0"].tolist()] == [
        f"{i // 10}.{i % 10}" for i in range(350, 421)
    ]


def test_wide_columns_are_decoded_within_their_code() -> None:
    """127 001 points: each code is a round value or the others of its span, and comes back."""
    codec = Codec(schema_of(field("number", minimum=0.0, maximum=1.27, step=0.00001)))
    cells = codec.cells[0]
    assert 3000 < cells <= 4096 and codec.sizes == (cells + 1,)
    codes = np.repeat(np.arange(cells + 1), 20).reshape(-1, 1)
    frame = codec.decode(codes, np.random.default_rng(5))
    values = frame["c0"].to_numpy()
    assert np.isnan(values[codes[:, 0] == cells]).all()
    assert (codec.encode(frame) == codes).all()
    assert np.abs(values * 1e5 - np.rint(values * 1e5))[~np.isnan(values)].max() < 1e-6
    own = codec.encode(pd.DataFrame({"c0": [1.2]}))[0, 0]  # a round value has a code of its own
    assert codec.points[0][own] == 1 and (values[codes[:, 0] == own] == 1.2).all()
    assert len(np.unique(values[codes[:, 0] == own + 1])) > 10  # the others of its span


def test_decode_is_a_function_of_codes_and_seed() -> None:
    codec = Codec(schema_of(field("number", minimum=0.0, maximum=1e5), SEX))
    codes = np.column_stack([np.arange(1, 3001, 20), np.arange(150) % 3])
    one = codec.decode(codes, np.random.default_rng(1))
    assert one.equals(codec.decode(codes, np.random.default_rng(1)))
    assert not one.equals(codec.decode(codes, np.random.default_rng(2)))


def test_decode_refuses_what_are_no_codes() -> None:
    codec = Codec(schema_of(STAY, SEX))
    rng = np.random.default_rng(0)
    for codes in (np.array([[15, 0]]), np.array([[-1, 0]]), np.array([[0]]), np.array([0, 0])):
        with pytest.raises(ValueError, match="code"):
            codec.decode(codes, rng)
    assert len(codec.decode(np.empty((0, 2), dtype=np.uint16), rng)) == 0


def test_encode_needs_the_columns_once() -> None:
    codec = Codec(schema_of(STAY, SEX))
    with pytest.raises(TableError, match="c0, c1"):
        codec.encode(pd.DataFrame({"x": [1]}))
    with pytest.raises(TableError, match="two columns called c1"):
        codec.encode(pd.DataFrame([[1, 2, 3]], columns=["c0", "c1", "c1"]))
    doubled = pd.DataFrame([["1", "F", 3, 4]], columns=["c0", "c1", "x", "x"])
    assert codec.encode(doubled).tolist() == [[0, 0]], "other columns are not looked at"
    assert codec.encode(pd.DataFrame({"c0": [], "c1": []})).shape == (0, 2)


def test_lattice_by_name() -> None:
    codec = Codec(schema_of(TEMPERATURE, SEX))
    lattice = codec.lattice("c0")
    assert lattice is not None
    assert lattice.points == 71
    assert codec.lattice("c1") is None
    with pytest.raises(InputError, match="no column 'c9'"):
        codec.lattice("c9")


# Properties


CODEC = Codec(schema_of(*ALL, field("number", minimum=-5.0, maximum=5e5, required=True)))
NARROW = Codec(schema_of(*ALL))


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_encode_inverts_decode(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, CODEC.sizes, size=(rows, len(CODEC.sizes)))
    frame = CODEC.decode(codes, rng)
    assert (CODEC.encode(frame) == codes).all()
    assert CODEC.conforms(frame) == []


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_decode_inverts_encode_on_narrow_lattices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, NARROW.sizes, size=(7, len(NARROW.sizes)))
    values = NARROW.decode(codes, rng)
    pd.testing.assert_frame_equal(NARROW.decode(NARROW.encode(values), rng), values)


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["3", "3.0", "36.6", "F", "true", "2000-01-02", "", "?", "1e5", "-0", "nan"]),
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
)


@settings(deadline=None)
@given(st.lists(CELLS, max_size=8))
def test_every_cell_has_a_code_of_its_own(cells: list[Any]) -> None:
    """No cell raises, and no cell's code depends on the cells around it."""
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in CODEC.names})
    codes = CODEC.encode(frame)
    assert (codes < np.array(CODEC.sizes)).all()
    for row, cell in enumerate(cells):
        alone = pd.DataFrame({name: pd.Series([cell], dtype=object) for name in CODEC.names})
        assert (CODEC.encode(alone)[0] == codes[row]).all()
    CODEC.conforms(frame)


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_typed_and_object_floats_agree(cells: list[float]) -> None:
    typed = pd.DataFrame({name: pd.Series(cells, dtype=float) for name in CODEC.names})
    objects = typed.astype(object)
    assert (CODEC.encode(typed) == CODEC.encode(objects)).all()


# The check of a synthetic table


def departures(column: dict[str, Any], cells: Any) -> list[str]:
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    frame = pd.DataFrame({"c0": series})
    problems = Codec(schema_of(column)).conforms(frame)
    assert all(problem.place == "column 'c0'" for problem in problems)
    return [problem.message for problem in problems]


REQUIRED = "the column is required, but cells are missing"


@pytest.mark.parametrize(
    ("column", "cells", "messages"),
    [
        (STAY, ["1", "14", "", None, "+3"], []),
        (STAY, ["0", "15", "16"],
         ["below the minimum, 1: 1 cell", "above the maximum, 14: 2 cells"]),
        (STAY, ["3.0", " 3", "?", "x", "1e1"], ["not of type integer: 5 cells"]),
        (STAY, pd.Series([1, 3], dtype="Int64"), []),
        (STAY, pd.Series([1.0, np.nan]), []),
        (STAY, pd.Series([1.5, np.inf]), ["not of type integer: 2 cells"]),
        (STAY, pd.Series([True, False]), ["not of type integer: 2 cells"]),
        (STAY, pd.Series(pd.to_datetime(["2000-01-01"])), ["not of type integer: 1 cell"]),
        (field("integer", minimum=0, maximum=100, step=5), ["5", "7"],
         ["between two steps of the resolution, 5: 1 cell"]),
        (field("integer", required=True, minimum=0, maximum=9), ["", "3", None],
         [f"{REQUIRED}: 2 cells"]),
        (field("integer", required=True, minimum=0, maximum=9), pd.Series([1.0, np.nan]),
         [f"{REQUIRED}: 1 cell"]),
        (TEMPERATURE, ["36.6", "36.60", "35"], []),
        (TEMPERATURE, ["36.65", "34.9"],
         ["below the minimum, 35.0: 1 cell", "between two steps of the resolution, 0.1: 1 cell"]),
        (TEMPERATURE, ["36,6", "nan", "1_0", "inf"], ["not of type number: 4 cells"]),
        (TEMPERATURE, pd.Series([36.6, 0.1 + 0.2 + 36]), []),
        (TEMPERATURE, pd.Series([36.65]), ["between two steps of the resolution, 0.1: 1 cell"]),
        (SEX, ["F", "other"], []),
        (SEX, ["f", "", " F", "F"], [f"{REQUIRED}: 1 cell", "none of the 3 categories: 2 cells"]),
        (SEX, pd.Series([1, 2]), ["not of type string: 2 cells"]),
        (SEX, pd.Series(["F", "X"], dtype="category"), ["none of the 3 categories: 1 cell"]),
        (ARM, ["2", "1", ""], []),
        (ARM, ["3", "x", "1.0"],
         ["not of type integer: 2 cells", "none of the 2 categories: 1 cell"]),
        (ARM, pd.Series([1, 7]), ["none of the 2 categories: 1 cell"]),
        (SMOKER, ["true", "false", "", "1"], []),
        (SMOKER, ["yes", "1.0"], ["not of type boolean: 2 cells"]),
        (SMOKER, pd.Series([True, None], dtype="boolean"), []),
        (SMOKER, pd.Series([True, None], dtype=object), []),
        (SMOKER, pd.Series([1, 0]), ["not of type boolean: 2 cells"]),
        (field("boolean", trueValues=["yes"]), ["true", "false"], []),
        (field("boolean", required=True), pd.Series([True, None], dtype=object),
         [f"{REQUIRED}: 1 cell"]),
        (DOSE, ["0.5", "2.5", "3"], ["none of the 3 categories: 1 cell"]),
        (BORN, ["2000-01-31", ""], []),
        (BORN, ["2000-02-01", "1999-12-31"],
         ["below the minimum, 2000-01-01: 1 cell", "above the maximum, 2000-01-31: 1 cell"]),
        (BORN, ["20000101", "2000-01-01T00:00:00", "2000-02-30"], ["not of type date: 3 cells"]),
        (BORN, pd.Series([pd.Timestamp("2000-01-01"), pd.Timestamp("2000-01-01 10:00")]),
         ["not of type date: 1 cell"]),
        (BORN, [date(2000, 1, 2)], []),
        (BORN, pd.Series([3]), ["not of type date: 1 cell"]),
        (SEEN, ["2000-01-01T00:01:00"], []),
        (SEEN, ["2000-01-01T00:01:30", "2000-01-01 00:01:00"],
         ["not of type datetime: 1 cell", "between two steps of the resolution, 60: 1 cell"]),
        (YEAR, ["1999", "2009", "99"],
         ["not of type year: 1 cell", "above the maximum, 2008: 1 cell"]),
        (YEAR, pd.Series(pd.to_datetime(["2001-01-01"])), ["not of type year: 1 cell"]),
        (field("date", minimum="01.01.2000", maximum="31.01.2000", format="%d.%m.%Y"),
         ["2000-01-02", "02.01.2000"], ["not of type date: 1 cell"]),
    ],
)  # fmt: skip
def test_conformity(column: dict[str, Any], cells: Any, messages: list[str]) -> None:
    assert departures(column, cells) == messages


def test_conformity_of_columns() -> None:
    codec = Codec(schema_of(STAY, SEX))
    good = pd.DataFrame({"c0": ["1"], "c1": ["F"]})
    assert codec.conforms(good) == []
    assert [str(p) for p in codec.conforms(good[["c0"]])] == [
        "column 'c1': is missing; it must occur once"
    ]
    assert [str(p) for p in codec.conforms(good.assign(canary=1))] == [
        "table: 1 columns are not in the schema"
    ]
    assert [str(p) for p in codec.conforms(good[["c1", "c0"]])] == [
        "table: the columns are not in the schema's order"
    ]
    twice = pd.concat([good, good[["c1"]]], axis=1)
    assert "column 'c1': occurs 2 times; it must occur once" in map(str, codec.conforms(twice))


def test_the_codec_is_light_to_import() -> None:
    heavy = ("torch", "opendp", "dp_accounting", "sqlalchemy", "scipy", "opacus", "yaml")
    code = f"import sys, dpsynth.encoding.codec; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_read_gives_the_codes_and_the_cells_that_have_them(every_type: Schema) -> None:
    """Cells in their types are coded as the text was, whatever the text."""
    codec = Codec(every_type)
    names = [column.name for column in every_type.modelled]
    texts = ["", "NA", "x", "-5", "0", "1", "9", "30", "70.04", "1e9", "F", "true", "2015-05-05"]
    frame = pd.DataFrame({name: texts for name in names})
    codes, typed = codec.read(frame)
    assert (codes == codec.encode(frame)).all()
    assert (codec.encode(typed) == codes).all()
    assert codec.conforms(typed) == []
