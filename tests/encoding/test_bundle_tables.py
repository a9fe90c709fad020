"""The tables of a bundle: every cell, column and rule, and both formats alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import cell_values, typed_frames
from dpsynth.schema import Schema
from dpsynth.tables import write_table

from ..support.forger import Forger

Document = dict[str, Any]
TABLE, TEXT = "data/synthetic.parquet", "data/synthetic.csv"


TEXT_CHANGES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "a cell below the minimum": (lambda x: [x[0], "17" + x[1][2:], *x[2:]], "column 'age'"),
    "a cell of another type": (lambda x: [x[0], "??" + x[1][2:], *x[2:]], "column 'age'"),
    "a missing cell": (lambda x: [x[0], x[1][2:], *x[2:]], "column 'age'"),
    "another valid cell": (
        lambda x: [x[0], ("19" if x[1][:2] == "18" else "18") + x[1][2:], *x[2:]],
        "has other rows",
    ),
    "one row less": (lambda x: x[:-1], "has other rows"),
    "one row more": (lambda x: [*x, x[-1]], "has other rows"),
    "two rows swapped": (lambda x: [x[0], *sorted(x[1:])], "has other rows"),
    "one column more": (lambda x: [line + ",1" for line in x], "columns are not those"),
    "another column's name": (lambda x: ["x" + x[0], *x[1:]], "columns are not those"),
    "no rows": (lambda x: x[:1], "a header and no rows"),
    "a row that is too long": (lambda x: [*x, x[-1] + ",1"], "table"),
}


@pytest.mark.parametrize("name", TEXT_CHANGES)
def test_a_changed_text_table_is_found(forger: Forger, name: str) -> None:
    change, message = TEXT_CHANGES[name]
    forger.rewrite_text(change)
    findings = forger.findings()
    assert f"{TEXT}: " in findings and message in findings
    assert f"{TABLE}: " not in findings


def replaced(column: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(column)
        cells = [value, *table.column(column).to_pylist()[1:]]
        field = table.schema.field(column)
        return table.set_column(place, field, pa.array(cells, type=field.type))

    return change


def nullable(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([pa.field(f.name, f.type) for f in table.schema]))


TABLE_CHANGES: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "a number above the maximum": (replaced("weight", 200.1), "column 'weight'"),
    "a number between two steps": (replaced("weight", 70.05), "column 'weight'"),
    "an infinite number": (replaced("weight", float("inf")), "column 'weight'"),
    "an unknown category": (replaced("sex", "X"), "column 'sex'"),
    "an unknown grade": (replaced("grade", 4), "column 'grade'"),
    "a date out of bounds": (replaced("discharged", pd.Timestamp("2021-01-01")), "'discharged'"),
    "a missing cell": (lambda t: replaced("age", None)(nullable(t)), "column 'age'"),
    "a column less": (lambda t: t.drop_columns(["sex"]), "columns are not those"),
    "a column more": (lambda t: t.append_column("key", t.column("sex")), "columns are not those"),
    "another order": (lambda t: t.select(t.column_names[::-1]), "columns are not those"),
    "another type": (
        lambda t: t.cast(t.schema.set(0, pa.field("age", pa.int32()))),
        "another type than the schema gives it",
    ),
    "text for numbers": (
        lambda t: t.cast(t.schema.set(0, pa.field("age", pa.string()))),
        "another type than the schema gives it",
    ),
    "notes beside the columns": (
        lambda t: t.replace_schema_metadata({"patients": "Ms Miller"}),
        "the file holds notes",
    ),
    "notes on a column": (
        lambda t: t.cast(t.schema.set(0, t.schema.field(0).with_metadata({"note": "Ms Miller"}))),
        "the file holds notes",
    ),
    "a row less": (lambda t: t.slice(1), "another number of rows"),
    "no row": (lambda t: t.slice(0, 0), "no rows"),
}


@pytest.mark.parametrize("name", TABLE_CHANGES)
def test_a_changed_table_is_found(forger: Forger, bundle: Path, name: str) -> None:
    change, message = TABLE_CHANGES[name]
    pq.write_table(change(pq.read_table(bundle / TABLE)), bundle / TABLE)
    forger.relist()
    findings = forger.findings()
    assert f"{TABLE}: " in findings and message in findings
    assert "Miller" not in findings


def test_a_file_that_is_no_table_is_found(forger: Forger, bundle: Path) -> None:
    (bundle / TABLE).write_bytes(b"PAR1 and nothing else")
    forger.relist()
    assert f"{TABLE}: table: " in forger.findings()


def test_a_broken_rule_is_found_in_both_formats(
    forger: Forger, bundle: Path, every_type: Schema
) -> None:
    table = pq.read_table(bundle / TABLE)
    late, early = pd.Timestamp("2020-12-31"), pd.Timestamp("2015-01-01")
    table = replaced("discharged", early)(replaced("admitted", late)(table))
    pq.write_table(table, bundle / TABLE)
    frames = typed_frames(bundle / TABLE, every_type)
    write_table(frames, bundle / TEXT, every_type, overwrite=True)
    forger.relist()
    findings = forger.findings()
    for path in (TABLE, TEXT):
        assert f"{path}: rule 'admitted <= discharged': some rows break it" in findings
    assert "has other rows" not in findings


def test_text_and_typed_cells_read_the_same(bundle: Path, every_type: Schema) -> None:
    [table] = typed_frames(bundle / TABLE, every_type)
    [text] = typed_frames(bundle / TEXT, every_type)
    pd.testing.assert_frame_equal(table, text)
    assert table.isna().any().sum() >= 4


def test_cells_are_read_as_written_by_hand(every_type: Schema) -> None:
    def values(name: str, cells: list[Any]) -> list[float]:
        return cell_values(pd.Series(cells, dtype=object), every_type.column(name)).tolist()

    np.testing.assert_equal(values("weight", ["70.5", "", None, "NA"]), [70.5] + [np.nan] * 3)
    np.testing.assert_equal(values("sex", ["M, or other", "F", "X"]), [1, 0, np.nan])
    assert values("smoker", ["true", "false"]) == [1, 0]
    assert values("admitted", ["1970-01-04"]) == [3]
    assert values("measured", ["1970-01-01T00:00:01.000002"]) == [1.000002]
    times = pd.Series(pd.to_datetime(["1970-01-01T00:00:01.000002"]))
    assert cell_values(times, every_type.column("measured")).tolist() == [1.000002]
