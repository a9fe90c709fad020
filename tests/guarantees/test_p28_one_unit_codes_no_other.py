"""P28: one unit changes how no other is coded, whoever reads the file and infers types.

The check is metamorphic: a CSV file goes through every reader, once as it is and once with one
hostile unit more, whose cells make a reader infer other types. Then the others' codes, kinds and
bounded cells, which rows of theirs are one unit, and their order must be the same, or one of both
tables must be refused whole, for one of the documented reasons. The broken version codes whatever
arrives: while all codes are digits, 008 is 8.

Not among the others' cells is what a reader takes for a number, a truth value or a date and dpsynth
does not (0x10, yes, 1/2/2001): docs/privacy.md says so. Nor are keys and codes in which one number
is written in two ways (007 and 7), where a reader makes whole numbers of them: each whole number is
assumed to have one text there. Another broken version takes floating-point numbers for keys, too.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.encoding import order_of
from dpsynth.encoding.cohort import ranks_of
from dpsynth.errors import TableError
from dpsynth.schema import Column, Schema
from dpsynth.tables import Keys, Table, cell_kinds, needed_columns, open_columns, open_table
from dpsynth.tables.cell_kinds import Held

from ..support.some_cases import some_of
from .table_cases import HOSTILE, KINDS, OPTIONS, ROWS, Case, column_cases, key_cases, written
from .table_readers import READERS, Source

Open = Callable[[Source, Schema], Table]
Facts = dict[str, Any]

_FACTS: dict[Any, Facts] = {}

SHARE = 5  # each reader meets one hostile cell in five, and each cell a fifth of the readers
FEWER = 4 * SHARE  # one in twenty, for `make test`; all readers, columns and keys are there as well
LEAST = {SHARE: 50, FEWER: 10}  # comparisons of each reader and of each column, at the least
SHARES = pytest.mark.parametrize("share", [FEWER, pytest.param(SHARE, marks=pytest.mark.long)])
OWN = ("CSV", "CSV, gzipped", "dpsynth.read_table")  # they read in the declared dialect
REASONS = re.compile(
    "must be text|may get different codes|fewer digits|differ from the local time|and its type is"
    "|the key of the unit|many readers take|lacks a column|a cell must hold"
)


def as_it_comes(source: Source, schema: Schema) -> Table:
    """The broken version: whatever a reader made of the cells is coded."""
    return open_columns(source, schema, needed_columns(schema), private=False)


@dataclass
class Tally:
    """What came of all comparisons, by reader and by column."""

    compared: Counter[str]
    refused: Counter[str]
    changed: list[str]


def facts_of(source: Source, case: Case, opened: Open, rows: slice) -> Facts | None:
    """All that a fit makes of the others' rows; None if the table is refused whole."""
    if isinstance(source, pd.DataFrame):
        source = source[[name for name in needed_columns(case.schema) if name in source]]
    with whole_numbers() as whole:
        try:
            table = opened(source, case.schema)
        except TableError as error:
            assert REASONS.search(str(error)), error
            return None
    if not one_text(case.others) and whole & {case.schema.unit.column, *texts_in(case.schema)}:
        return None  # docs/privacy.md assumes that there is no such table
    chunk = pd.concat(table.chunks(), ignore_index=True)
    content = tuple((str(chunk[name].dtype), repr(chunk[name].tolist())) for name in chunk)
    key = (case.name, case.schema, rows.start, content)  # many readers give the same cells
    if key not in _FACTS:
        _FACTS[key] = coded(chunk, case, rows)
    return _FACTS[key]


@contextmanager
def whole_numbers() -> Iterator[set[str]]:
    """Give the columns that the check of kinds finds to hold whole numbers within the block."""
    found, judge = set[str](), cell_kinds.refusal

    def seen(column: Column, kind: Held, schema: Schema) -> str | None:
        if kind is Held.WHOLE:
            found.add(column.name)
        return judge(column, kind, schema)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_kinds, "refusal", seen)
        yield found


def one_text(cells: Sequence[str]) -> bool:
    """Tell whether each number and truth value among texts is written as a whole number is."""
    counted = re.compile("[0-9]|true|false", re.IGNORECASE)  # what a program may store as a number
    return all(re.fullmatch("0|-?[1-9][0-9]*", text) for text in cells if counted.search(text))


def texts_in(schema: Schema) -> set[str]:
    """The columns of type string."""
    return {column.name for column in schema.columns if column.kind.is_text}


def coded(chunk: pd.DataFrame, case: Case, rows: slice) -> Facts:
    """Code a table as a fit does; its result for the others' rows."""
    keys = Keys(case.schema)
    [column] = case.schema.modelled
    units = keys.own_units(keys.units(chunk))[rows]
    codes, cells = case.codec.read(chunk)
    facts = {
        "codes": codes[rows].tobytes(),
        "kinds": case.coder.kinds(chunk[column.name])[rows].tobytes(),
        "cells": repr(cells.iloc[rows].to_numpy(dtype=object).tolist()),
        "units": np.where(units < 0, -1, pd.factorize(units)[0]).tobytes(),
    }
    if column.type != "boolean":  # which cannot order a unit's rows
        order = order_of(chunk[column.name], column, case.schema.dialect)
        facts["order"] = ranks_of(order[rows]).tobytes()
    return facts


def read(reader: str, path: Path, schema: Schema) -> Source | None:
    """Let a reader read a file; None if it will not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return READERS[reader](path, schema)
        except Exception:  # of whatever library: a table that cannot be read is not fitted
            return None


def compare(
    reader: str,
    cases: list[Case],
    whole: Schema,
    opened: Open,
    folder: Path,
    tally: Tally,
    rest: dict[str, tuple[str, ...]],
    hostile_rest: dict[str, str],
    share: int,
) -> None:
    """Read the others alone, and beside each hostile unit, which has the first row and the last."""
    delimiter = whole.dialect.delimiter if reader in OWN else ","
    others = rest | {case.name: case.others for case in cases}
    alone = read(reader, written(folder / "alone.csv", others, delimiter), whole)
    first = {}
    for case in cases:
        facts = None if alone is None else facts_of(alone, case, opened, slice(0, ROWS))
        first[case.name] = facts
    for text in HOSTILE[list(READERS).index(reader) % share :: share]:
        beside = {
            name: (hostile_rest.get(name, text), *cells, hostile_rest.get(name, text))
            for name, cells in others.items()
        }
        source = read(reader, written(folder / "beside.csv", beside, delimiter), whole)
        for case in cases:
            before, after = first[case.name], None
            if source is not None and before is not None:
                after = facts_of(source, case, opened, slice(1, ROWS + 1))
            if before is None or after is None:
                tally.refused[reader] += 1
                continue
            tally.compared[reader] += 1
            tally.compared[case.name] += 1
            if before != after:
                parts = ", ".join(part for part in before if before[part] != after[part])
                tally.changed.append(f"{reader}: {case.name} beside {text!r}: {parts}")


def columns_through(readers: list[str], opened: Open, folder: Path, share: int = SHARE) -> Tally:
    """Compare every kind of column."""
    tally = Tally(Counter(), Counter(), [])
    keys = tuple(f"p{row // 2}" for row in range(ROWS))
    for comma in (False, True):
        cases, whole = column_cases(comma)
        for reader in readers:
            compare(
                reader, cases, whole, opened, folder, tally, {"key": keys}, {"key": "p99"}, share
            )
    return tally


def keys_through(
    readers: list[str],
    opened: Open,
    folder: Path,
    option: str,
    type_: str = "string",
    share: int = SHARE,
) -> Tally:
    """Compare every kind of key."""
    tally = Tally(Counter(), Counter(), [])
    cases, whole = key_cases(option, type_)
    rest = {"unit": ("u",) * ROWS, "sex": ("F", "M") * (ROWS // 2)}
    for reader in readers:
        compare(reader, cases, whole, opened, folder, tally, rest, {"unit": "u", "sex": "F"}, share)
    return tally


def described(tally: Tally, what: str) -> str:
    """Say how much was compared, for docs/privacy.md."""
    cases = sum(tally.compared[reader] for reader in READERS)
    return (
        f"{len(READERS)} readers x {len(KINDS)} kinds of column x {len(HOSTILE)} hostile cells, "
        f"{what}: {cases} cases compared, {tally.refused.total()} with a table refused"
    )


@SHARES
def test_no_cell_of_another_changes_a_code(share: int, tmp_path: Path) -> None:
    tally = columns_through(list(READERS), open_table, tmp_path, share)
    print(described(tally, "columns"))
    assert tally.changed == []
    assert sum(tally.compared[reader] for reader in READERS) > 25_000 / share
    assert all(tally.compared[reader] > LEAST[share] for reader in READERS), tally.compared
    for comma in (False, True):  # each column through several readers at least
        for case in column_cases(comma)[0]:
            assert tally.compared[case.name] > LEAST[share], (case.name, tally.compared[case.name])
    for reader in READERS:  # whoever reads text is refused only where a column has no cell at all
        if "text" in reader or reader in OWN:
            assert tally.refused[reader] < 0.1 * tally.compared[reader], reader


@SHARES
@pytest.mark.parametrize("option", some_of(list(OPTIONS), every=2))
def test_no_key_of_another_changes_a_unit(option: str, share: int, tmp_path: Path) -> None:
    type_ = "integer" if option == "leading zeros" else "string"  # keys are text in any case
    tally = keys_through(list(READERS), open_table, tmp_path, option, type_, share)
    print(described(tally, f"keys, {option}"))
    assert tally.changed == []
    assert sum(tally.compared[reader] for reader in READERS) > 5_000 / share


@pytest.mark.parametrize("reader", ["pandas", "polars", "Arrow", "Parquet by DuckDB"])
def test_the_check_finds_cells_that_are_coded_as_they_come(reader: str, tmp_path: Path) -> None:
    """The broken version: the same comparisons, without the check of what the cells are."""
    columns = columns_through([reader], as_it_comes, tmp_path).changed
    keys = keys_through([reader], as_it_comes, tmp_path, "plain").changed
    assert len(columns) > 15 and len(keys) > 8
    for part, found in (("codes", columns), ("kinds", columns), ("units", keys)):
        assert any(part in line for line in found), part


@pytest.mark.parametrize("reader", ["pandas", "pandas, convert_dtypes", "Parquet by Arrow"])
def test_the_check_finds_floating_point_keys(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version: a key may be any number. One missing key then rounds all others."""
    judge = cell_kinds.refusal

    def lax(column: Column, kind: Held, schema: Schema) -> str | None:
        numbers = (Held.WHOLE, Held.FLOAT, Held.ROUNDED)
        whose = column.name == schema.unit.column
        return None if whose and kind in numbers else judge(column, kind, schema)

    monkeypatch.setattr(cell_kinds, "refusal", lax)
    changed = keys_through([reader], open_table, tmp_path, "plain", share=1).changed
    assert any("long digits" in line for line in changed)


def test_codes_with_leading_zeros_are_refused_unless_they_are_text(tmp_path: Path) -> None:
    """The case of a code list: without V27, pandas makes numbers of 008, 038 and 250."""
    cases, _ = column_cases(comma=False)
    [case] = [one for one in cases if one.name == "string, digits 0"]
    path = written(tmp_path / "t.csv", {"key": ("p",) * ROWS, case.name: case.others})
    with pytest.raises(TableError, match="holds .* numbers, and its type is string") as refused:
        open_table(pd.read_csv(path), case.schema)
    assert "dpsynth.read_table(path, schema)" in str(refused.value)
    assert "dtype=str" in str(refused.value) and "leading zeros" in str(refused.value)
    for frame in (pd.read_csv(path, dtype=str), dpsynth.read_table(path, case.schema)):
        codes = case.codec.encode(pd.concat(open_table(frame, case.schema).chunks()))
        assert codes[:, 0].tolist() == [0, 1, 2, 0, 1, 0, 2, 4, 0, 2, 1, 0]
