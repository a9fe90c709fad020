"""Cells that are written as a schema declares: maps, case, limits, units, formats, reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import inspection
from dpsynth.encoding import Codec, check_table
from dpsynth.errors import TableError
from dpsynth.tables import open_table, write_table

from ..support.declared_cells import (
    ALL,
    CRP,
    GRADE,
    HBA1C,
    MOVED,
    SEEN,
    SMOKER,
    UNIT,
    WARD,
    field,
    schema_of,
)


def read(cells: list[str], column: dict[str, Any], decimal: str = ".") -> list[tuple[Any, ...]]:
    """Read the cells of one column, and its status if it has one."""
    codec = Codec(schema_of(decimal, c=column))
    frame = codec.read(pd.DataFrame({"c": cells}, dtype=object))[1]
    return [tuple(row) for row in frame.astype(object).where(frame.notna(), None).to_numpy()]


def test_a_value_map_is_read_before_anything_else() -> None:
    cells = ["ja", "J", " J ", "k.A.", "w.n.", "-8", "refused", "nein", "?", ""]
    values = ["ja", "ja", "ja", None, "refused", "refused", "refused", "nein", None, None]
    assert [cell for (cell,) in read(cells, SMOKER)] == values


def test_case_is_folded_as_unicode_folds_it() -> None:
    assert read(["JA", "j", "NEIN", "K.a."], SMOKER) == [("ja",), ("ja",), ("nein",), (None,)]
    street = field("string", {"enum": ["Straße", "Weg"]}, case=False)
    assert read(["STRASSE", "straße", "weg"], street) == [("Straße",), ("Straße",), ("Weg",)]
    exact = field("string", {"enum": ["Straße", "Weg"]})
    assert read(["STRASSE", "straße", "Weg"], exact) == [(None,), (None,), ("Weg",)]


def test_maps_do_not_chain() -> None:
    column = field("string", {"enum": ["a", "b"]}, values={"x": "a", "y": "b"})
    assert read(["x", "y", "a"], column) == [("a",), ("b",), ("a",)]


def test_a_map_leads_to_codes_of_a_code_list() -> None:
    assert read(["Herz", "428.0", "herz"], WARD) == [("circulatory",), ("circulatory",), (None,)]


@pytest.mark.parametrize(
    ("cell", "value", "status"),
    [
        ("<5", 5.0, "low"),
        ("< 5", 5.0, "low"),
        ("≤5.0", 5.0, "low"),
        ("<=3", 5.0, "low"),  # below 3 is below 5
        ("<2", 2.0, "low"),
        ("<0.1", 2.0, "low"),
        ("<7", None, "missing"),  # above every limit from below: not readable
        ("n.n.", 5.0, "low"),
        (">1000", 1000.0, "high"),
        (">= 1500", 1000.0, "high"),
        (">900", None, "missing"),
        ("neg", 0.0, "value"),
        ("5", 5.0, "value"),
        ("2500", 2000.0, "value"),  # clipped
        ("-8", None, "refused"),
        ("-8.0", None, "refused"),
        ("unbekannt", None, "unknown"),
        ("", None, "missing"),
        ("NA", None, "missing"),
        ("<", None, "missing"),
        ("<-8", 2.0, "low"),  # a code of a reason is not a number after a sign
        ("5>", None, "missing"),
    ],
)
def test_a_number_and_its_status(cell: str, value: float | None, status: str) -> None:
    assert read([cell], CRP) == [(value, status)]


def test_limits_and_maps_use_the_declared_decimal_sign() -> None:
    column = field("number", {"minimum": 0, "maximum": 9}, censored={"low": 0.5}, values={"x": 1.5})
    assert read(["<0,5", "<0,25", "0,7", "x"], column, ",") == [
        (0.5, "low"),
        (0.5, "low"),
        (0.7, "value"),
        (1.5, "value"),
    ]


def test_units_of_each_row() -> None:
    codec = Codec(schema_of(hba1c=HBA1C, unit=UNIT))
    cells = ["6", "42", "6.5", "6.5", "48", "x", "", "<4", "<20", "<30"]
    units = ["%", "mmol/mol", " % ", "g", None, "%", "%", "%", "mmol/mol", "mmol/mol"]
    frame = codec.read(pd.DataFrame({"hba1c": cells, "unit": units}))[1]
    nan = np.nan
    expected = [6.0, 6.0, 6.5, nan, nan, nan, nan, 4.0, 4.0, nan]  # 30 mmol/mol are 4.9 %
    np.testing.assert_array_equal(frame["hba1c"], expected)
    lows = [status == "low" for status in frame["hba1c_status"]]
    assert lows == [False] * 7 + [True, True, False]


def test_a_synthetic_table_needs_no_unit() -> None:
    codec = Codec(schema_of(hba1c=HBA1C, unit=UNIT))
    assert codec.names == ("hba1c", "hba1c_status")
    frame = codec.read(pd.DataFrame({"hba1c": ["6.5"], "hba1c_status": ["value"]}))[1]
    assert frame["hba1c"].tolist() == [6.5]


def test_a_private_table_needs_the_unit(tmp_path: Path) -> None:
    schema = schema_of(hba1c=HBA1C, unit=UNIT)
    with pytest.raises(TableError, match="unit"):
        open_table(pd.DataFrame({"hba1c": ["6.5"]}), schema)
    rows = pd.DataFrame({"hba1c": ["42"], "unit": ["mmol/mol"], "hba1c_status": ["low"]})
    (chunk,) = open_table(rows, schema).chunks()
    assert list(chunk) == ["hba1c", "unit"]  # a status is never taken from a private table
    assert inspection.check(rows, schema).cells["hba1c"].bad == 0


def test_the_first_format_that_reads_a_cell() -> None:
    cells = ["03.02.2012", "3.2.2012", "2012-02-03", "2012-02-03T08:00", "02/03/2012", "1900-01-01"]
    days = [None if day is None else str(day)[:10] for day, _ in read(cells, SEEN)]
    assert days == ["2012-02-03"] * 4 + [None, None]
    assert read(["01.01.1900"], SEEN)[0][1] == "unknown"  # a code counts by its value


def test_truth_values_and_numbers_in_a_list() -> None:
    cells = [("J", True, "value"), ("FALSE", False, "value"), ("9", None, "refused")]
    for cell, truth, status in [*cells, ("8", None, "missing")]:
        assert read([cell], MOVED) == [(truth, status)]
    assert read(["2.0", "-8.0", "7"], GRADE) == [(2, "value"), (None, "refused"), (None, "missing")]


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (SEEN, pd.Series(pd.to_datetime(["2012-02-03"]))),
        (field("date", SEEN["constraints"], formats=["default", "%d.%m.%Y"]),
         pd.Series(pd.to_datetime(["2012-02-03"]))),
        (MOVED, pd.Series([True])),
        (field("date", ALL["seen"]["constraints"], values={"?": "missing"}),
         pd.Series(pd.to_datetime(["2012-02-03"]))),
        (field("number", {"minimum": 0, "maximum": 9}, missing={"refused": ["NA"]}),
         pd.Series([1.5, np.nan])),
    ],
)  # fmt: skip
def test_cells_that_a_reader_may_have_changed_must_be_text(column: Any, cells: Any) -> None:
    with pytest.raises(TableError):
        open_table(pd.DataFrame({"c": cells}), schema_of(c=column))


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_drawn_agrees_and_is_read_again(data: st.DataObject) -> None:
    schema = schema_of(**ALL)
    codec = Codec(schema)
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in codec.sizes)), min_size=1))
    frame = codec.decode(np.array(rows), np.random.default_rng(0))
    assert codec.conforms(frame) == []
    for column in schema.modelled:
        if column.status_of is None:
            continue
        cells, status = frame[column.status_of], frame[column.name]
        words = {"low": [2.0, 5.0] if column.status_of == "crp" else [4.0], "high": [1000.0]}
        for word, limits in words.items():
            assert cells[status == word].isin(limits).all()
        assert (cells.isna() == ~status.isin(["value", "low", "high"])).all()
    codes, again = codec.read(frame)
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert (codec.encode(again) == codes).all()


def test_both_files_of_a_bundle_hold_the_status(tmp_path: Path) -> None:
    schema = schema_of(**ALL)
    codec = Codec(schema)
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 200) for size in codec.sizes], axis=1)
    frame = codec.decode(codes, rng)
    contents = []
    for kind in ("csv", "parquet"):
        write_table([frame], tmp_path / f"t.{kind}", schema)
        content, problems = check_table(tmp_path / f"t.{kind}", schema)
        assert problems == []
        contents.append(content)
    assert contents[0] == contents[1]
    names = [entry["name"] for entry in schema.to_table_schema()["fields"]]
    assert names == list(frame) and "unit" not in names and "crp_status" in names
