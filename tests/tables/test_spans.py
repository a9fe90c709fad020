"""A file that is cut has the same rows as the whole, or is not cut."""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpsynth.errors import NoRowsError
from dpsynth.schema import Dialect, Schema
from dpsynth.tables import Reference, open_reference
from dpsynth.tables import csv as text_files

SCHEMA = Schema.load("demo")
CELLS = st.text(alphabet='ab,;"\n\r é5', max_size=6)


def rows_of(tables: list[Any]) -> list[list[str | None]]:
    """All rows of some tables, one after another; a part may be blank."""
    found: list[list[str | None]] = []
    for table in tables:
        with suppress(NoRowsError):
            found += [row for chunk in table.chunks() for row in chunk.to_numpy().tolist()]
    return found


def opened(path: Path, dialect: Dialect) -> Any:
    return open_reference(Reference.of(path), ("a", "b"), replace(SCHEMA, dialect=dialect))


def written(path: Path, rows: list[list[str]], dialect: Dialect, mark: str, ends: str) -> Any:
    with path.open("w", encoding=dialect.encoding, newline="") as file:
        file.write(mark)
        writer = csv.writer(
            file, delimiter=dialect.delimiter, quotechar=dialect.quote, lineterminator=ends
        )
        writer.writerows([["a", "b"], *rows])
    return opened(path, dialect)


@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=12),
    parts=st.integers(2, 9),
    block=st.integers(4, 40),
    delimiter=st.sampled_from(",;"),
    encoding=st.sampled_from(["utf-8", "cp1252"]),
    ends=st.sampled_from(["\n", "\r\n"]),
    marked=st.booleans(),
)
def test_the_parts_have_the_rows_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    parts: int,
    block: int,
    delimiter: str,
    encoding: str,
    ends: str,
    marked: bool,
) -> None:
    lone = any("\r" in cell for row in rows for cell in row)
    assume(ends == "\r\n" or not lone)  # else the writer leaves a line end without quotes
    dialect = Dialect(delimiter=delimiter, encoding=encoding)
    mark = "\ufeff" if marked and encoding == "utf-8" else ""
    path = tmp_path_factory.getbasetemp() / "cut.csv"
    table = written(path, rows, dialect, mark, ends)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "SPAN_BLOCK", block)
        cut = table.parts(parts)
    assert not cut or rows_of([*cut]) == rows_of([table])


def test_a_file_is_cut_into_about_as_many_parts_as_wanted(tmp_path: Path) -> None:
    rows = [[str(place), 'he said "no",\nand left'] for place in range(500)]
    table = written(tmp_path / "t.csv", rows, Dialect(), "", "\n")
    assert len(table.parts(7)) == 7
    assert rows_of([*table.parts(7)]) == rows_of([table])


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('a,b\n5" tube,x\n' * 3, Dialect()),
        ('a,b\nx,5"\n7",y\n' * 3, Dialect()),
        ('a,b\n"x"y,z\n' * 3, Dialect()),
        ("a,b\nx,y\n" * 3, Dialect(encoding="utf-16")),
        ("a,b\nx,y\n" * 3, Dialect(encoding="shift-jis")),
    ],
)
def test_a_file_whose_records_cannot_be_told_is_not_cut(
    tmp_path: Path, text: str, dialect: Dialect
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding=dialect.encoding, newline="")
    assert text_files.record_ends(tmp_path / "t.csv", dialect, 3) == []


def test_without_quotes_every_line_is_a_record(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n5" tube,x\n' * 9)
    assert len(text_files.record_ends(tmp_path / "t.csv", Dialect(quote=""), 3)) == 2


def test_a_mark_within_a_file_is_a_letter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "x,\ufeffy\n" * 9)
    table = opened(tmp_path / "t.csv", Dialect())
    assert len(table.parts(4)) > 2
    assert rows_of([*table.parts(4)]) == rows_of([table])


def test_parquet_is_cut_between_row_groups(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(100), "b": "x"})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=7)
    table = open_reference(Reference.of(tmp_path / "t.parquet"), ("a", "b"), None)
    parts = table.parts(4)
    assert len(parts) == 4 and rows_of([*parts]) == rows_of([table])
    frame.to_parquet(tmp_path / "one.parquet")
    assert open_reference(Reference.of(tmp_path / "one.parquet"), ("a", "b"), None).parts(4) == []
