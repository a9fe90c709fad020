"""P28: what a schema declares about the writing of cells is read cell by cell, row by row.

Value maps, letter case, limits of detection, reasons of missing cells, units by another column and
several date formats are each a temptation to look at a whole column: at its most frequent format or
unit, at the lowest limit that occurs, at whether any cell is text. The check is metamorphic, as in
test_p28_one_unit_codes_no_other: the others' rows are coded alone, and beside the rows of one
hostile unit. The broken versions take the date format, or the unit, that most cells of the column
suggest, and the lowest limit that the column holds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.declared_cells import ALL, LEUKOCYTES, schema_of

SCHEMA = schema_of(**ALL, leukocytes=LEUKOCYTES)
CODEC = Codec(SCHEMA)
CELLS = {
    "smoker": ["ja", "JA", "J", "nein", "k.A.", "-8", "w.n.", "NA", "x", "", "1", "TRUE"],
    "crp": ["<5", "< 2", "<0.1", "<7", ">1000", ">1", "n.n.", "neg", "7", "7.0", "-8", "-8.0", "-9",
            "unbekannt", "", "NA", "1e9", "0x10", "true", "2012-02-03"],
    "hba1c": ["6", "6.5", "42", "48", "<4", "<20", "", "x", "1e3", "true"],
    "unit": ["%", "mmol/mol", " % ", "g", "", "1"],
    "seen": ["03.02.2012", "2012-02-03", "3.2.2012", "02/03/2012", "13.12.2012", "1900-01-01",
             "01.01.1900", "", "5", "2012-02-03T10:00"],
    "moved": ["J", "n", "TRUE", "false", "1", "0", "9", "9.0", "", "2"],
    "leukocytes": ["8,200", "12,400", "8200", "<1,000", "0,123", "8,20", "1,234,567", "12345,678",
                   "8.5", "8,200.5", "", "-8", ",123", "x"],
    "grade": ["1", "2.0", "3", "-8", "-8.0", "7", "", "x", "01"],
}  # fmt: skip
Rows = list[dict[str, str]]
Encode = Callable[[pd.DataFrame], Any]
rows = st.fixed_dictionaries({name: st.sampled_from(texts) for name, texts in CELLS.items()})
some = st.lists(rows, min_size=1, max_size=8)
hostile = st.lists(rows, min_size=1, max_size=12)


def examples(few: int, many: int) -> pytest.MarkDecorator:
    """Compare so many drawn tables in `make test`, and so many in `make test-all`."""
    return pytest.mark.parametrize("number", [few, pytest.param(many, marks=pytest.mark.long)])


def frame_of(content: Rows) -> pd.DataFrame:
    return pd.DataFrame(content, dtype=object)


def unlike(others: Rows, beside: Rows, encode: Encode) -> list[str]:
    """Name the columns in which the others' codes are not what they are alone."""
    alone = encode(frame_of(others))
    joined = encode(frame_of([*beside, *others, *beside]))[len(beside) : len(beside) + len(others)]
    return [CODEC.names[at] for at in np.flatnonzero((alone != joined).any(axis=0))]


@examples(75, 600)
def test_no_cell_of_another_row_changes_a_code(number: int) -> None:
    @settings(max_examples=number, deadline=None)
    @given(some, hostile)
    def compare(others: Rows, beside: Rows) -> None:
        assert unlike(others, beside, CODEC.encode) == []

    compare()


@settings(max_examples=50, deadline=None)
@given(rows, st.data())
def test_a_cell_depends_on_its_own_text_and_its_unit_only(
    row: dict[str, str], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(CELLS)))
    other = row | {name: data.draw(st.sampled_from(CELLS[name]))}
    changed = CODEC.encode(frame_of([row]))[0] != CODEC.encode(frame_of([other]))[0]
    own = {name, f"{name}_status"} if name != "unit" else {"hba1c", "hba1c_status"}
    assert {CODEC.names[at] for at in np.flatnonzero(changed)} <= own


def by_pandas(path: Path, schema: Schema) -> pd.DataFrame:
    return pd.read_csv(path)


def as_text(path: Path, schema: Schema) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str)


readers = pytest.mark.parametrize(
    "reader", [by_pandas, as_text, dpsynth.read_table, lambda path, _: path]
)


@readers
@examples(12, 80)
def test_whoever_reads_the_file(reader: Any, number: int, tmp_path: Path) -> None:
    @settings(max_examples=number, deadline=None)
    @given(others=some, beside=hostile)
    def compare(others: Rows, beside: Rows) -> None:
        same_through(reader, tmp_path / "t.csv", others, beside)

    compare()


def same_through(reader: Any, path: Path, others: Rows, beside: Rows) -> None:
    """Either table may be refused whole, never read otherwise."""
    codes = []
    for content in (others, [*beside, *others, *beside]):
        frame_of(content).to_csv(path, index=False)
        try:
            table = open_table(reader(path, SCHEMA), SCHEMA)
        except TableError:
            return
        codes.append(CODEC.encode(pd.concat(table.chunks(), ignore_index=True)))
    alone, joined = codes
    assert (joined[len(beside) : len(beside) + len(others)] == alone).all()


def by_the_usual_format(frame: pd.DataFrame) -> Any:
    """Broken: the whole column is read in the format that most of its cells have."""
    dotted = frame["seen"].str.contains(".", regex=False)
    keep = dotted if dotted.mean() > 0.5 else ~dotted
    return CODEC.encode(frame.assign(seen=frame["seen"].where(keep, "")))


def by_the_usual_unit(frame: pd.DataFrame) -> Any:
    """Broken: the whole column is in the unit that most of its rows name."""
    return CODEC.encode(frame.assign(unit=frame["unit"].mode()[0]))


def by_the_lowest_limit(frame: pd.DataFrame) -> Any:
    """Broken: a censored cell is taken for the lowest limit of the column."""
    censored = frame["crp"].str.startswith("<")
    lowest = "<2" if (frame["crp"] == "< 2").any() else "<5"
    return CODEC.encode(frame.assign(crp=frame["crp"].where(~censored, lowest)))


def by_the_usual_sign(frame: pd.DataFrame) -> Any:
    """Broken: a comma stands between thousands unless a cell of the column has it elsewhere."""
    decimal = frame["leukocytes"].str.fullmatch(r"[0-9]+,[0-9]{1,2}").any()
    cells = frame["leukocytes"].str.replace(",", ".") if decimal else frame["leukocytes"]
    return CODEC.encode(frame.assign(leukocytes=cells))


@pytest.mark.parametrize(
    ("broken", "column", "own", "other"),
    [
        (by_the_usual_format, "seen", "2012-02-03", "03.02.2012"),
        (by_the_usual_unit, "unit", "%", "mmol/mol"),
        (by_the_lowest_limit, "crp", "<5", "< 2"),
        (by_the_usual_sign, "leukocytes", "8,200", "8,20"),
    ],
)
def test_the_check_finds_a_column_that_is_read_as_a_whole(
    broken: Encode, column: str, own: str, other: str
) -> None:
    row = {name: texts[0] for name, texts in CELLS.items()}
    others, beside = [row | {column: own}], [row | {column: other}]
    found = "hba1c" if column == "unit" else column
    assert found in unlike(others, beside, broken)
    assert unlike(others, beside, CODEC.encode) == []
