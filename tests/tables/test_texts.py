from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.schema.types import read_date, read_datetime
from dpsynth.tables import array_of, distinct, numbers, texts_of, trimmed
from dpsynth.tables.text_columns import cell_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" as it stands ", " as it stands "),
        (3, "3"),
        (-0.0, "0"),
        (3.0, "3"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (2**60 + 1, "1152921504606846977"),  # more digits than a float64 holds
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (10**400, "1" + "0" * 400),
        (-(10**5000), "-1" + "0" * 5000),  # more digits than str writes
        (Decimal(10**400), "1" + "0" * 400),
        (Decimal("123456789012345678901234"), "123456789012345678901234"),
        (Decimal("9" * 38), "9" * 38),
        (Decimal("12E+3"), "12000"),
        (Decimal("-0"), "0"),
        (Decimal("0E+9"), "0"),
        (Decimal("1E+999999999"), "1E+999999999"),
        (Decimal("-1E-999999999"), "0"),
        (Decimal("-Infinity"), "-inf"),
        (float("-inf"), "-inf"),
        (Decimal("2.50"), "2.5"),
        (Decimal("1152921504606846977"), "1152921504606846977"),
        (True, "1"),
        (np.False_, "0"),
        (date(2001, 2, 3), "2001-02-03"),
        (datetime(2001, 2, 3, 4, 5), "2001-02-03T04:05:00"),
        (np.datetime64("2001-02-03"), "2001-02-03T00:00:00"),
        (b"F", "F"),
        (b"\xff", "\\xff"),
        ("\ud800", "\\ud800"),
        (None, None),
        (np.nan, None),
        (pd.NA, None),
        (pd.NaT, None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (np.datetime64("NaT"), None),
    ],
    ids=lambda value: str(value)[:30] if not isinstance(value, int) else f"{value:x}"[:30],
)
def test_text_of_one_cell(value: Any, text: str | None) -> None:
    assert cell_text(value) == text
    assert texts_of(pd.Series([value, "x"], dtype=object)).to_pylist() == [text, "x"]


def test_words_and_decimal_signs() -> None:
    assert cell_text(0.5, decimal=",") == "0,5"
    assert cell_text("0.5", decimal=",") == "0.5", "text is not rewritten"
    assert cell_text(True, boolean=True) == "true"


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "a\0", "a\0b", "a"],  # pandas.factorize takes these for one
        ["\ud800", "\ud801", "x"],  # and the first two of these
        ["", " ", "\xa0", "\u2003"],
        ["e\u0301", "\xe9"],
    ],
)
def test_distinct_texts_stay_distinct(texts: list[str]) -> None:
    indices, each = distinct(texts_of(pd.Series(texts, dtype=object)))
    assert len(each) == len(set(texts))
    assert [each[index] for index in indices] == [cell_text(text) for text in texts]


def test_missing_cells_have_no_text() -> None:
    cells = pd.Series(["b", None, "a", np.nan, "b"], dtype=object)
    indices, each = distinct(texts_of(cells))
    assert (indices.tolist(), each) == ([0, -1, 1, -1, 0], ["b", "a"])
    levels = cells.astype("category")
    indices, each = distinct(texts_of(levels))
    assert [each[index] if index >= 0 else None for index in indices] == ["b", None, "a", None, "b"]
    assert distinct(texts_of(cells[:0]))[1] == []


BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace()]


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from([*BLANKS, "a", "\0", "\u200b"]), max_size=6), max_size=6))
def test_blanks_are_those_of_python(texts: list[str]) -> None:
    assert trimmed(array_of(texts)).to_pylist() == [text.strip() for text in texts]


def python_number(text: str) -> float:
    """Python's reading, less what it takes beyond plain ASCII numerals."""
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    plain = set(text) <= set("0123456789+-.eE")
    return value if plain else float("nan")


NUMERALS = st.text(st.sampled_from("0123456789+-.eE_xninf\n "), max_size=7)


@pytest.mark.long
@settings(deadline=None, max_examples=400)
@given(st.lists(st.one_of(NUMERALS, st.floats().map(repr), st.integers().map(str)), max_size=9))
def test_numbers_are_those_of_python(texts: list[str]) -> None:
    expected = np.array([python_number(text) for text in texts])
    np.testing.assert_array_equal(numbers(array_of(texts)), expected)
    comma = [text.replace(".", ",") for text in texts]
    np.testing.assert_array_equal(numbers(array_of(comma), decimal=","), expected)


def test_days_and_seconds() -> None:
    days = [read_date(text) for text in ("1970-01-01", "1969-12-31", "2000-03-01T23:59")]
    assert days == [0, -1, 11_017]
    moments = [read_datetime(text) for text in ("1970-01-02T00:00:01.5", "1969-12-31T23:59:59")]
    assert moments == [86_401.5, -1]
    others = ("2001-02-29", "20010101", "2001-W01-1", "01.02.2001", "")
    assert np.isnan([read_date(text) for text in others]).all()
    assert [read_date(text, "%d/%m/%Y") for text in ("01/02/1970", "1970-02-01")] == [31, 31]
