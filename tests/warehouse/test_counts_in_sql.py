"""Counts of a warehouse are those of the rows in memory, and its cap is one choice of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Codec, Lookup, UnitRows, WarehouseRows, counted_rows, read_cohort
from dpsynth.errors import NoRowsError, RefusedCellError, TableError
from dpsynth.privacy import ChosenHistograms, JointHistograms, OsEntropy, exact_counts
from dpsynth.schema import Schema
from dpsynth.tables import open_table, warehouse_table

from ..support.warehouse_tables import FIELDS, PAIRS, duckdb_table, fresh, postgres_table, schema_of

NAMES = ("sex", "age", "weight", "seen")
KINDS = {"key": "text"} | {name: FIELDS[name][0] for name in NAMES}
KEYS = ["a", "a ", "\u2003a", "b", "b", None, "", "NA", "c", "c", "c", "d"]


def cells(keys: list[str | None]) -> list[list[str | None]]:
    """One row for each key; ages follow from the place of the row."""
    return [
        [
            key,
            "FM-x"[place % 4],
            str(place % 120),
            f"{30 + place % 170}.5",
            f"2010-05-{1 + place % 28:02}",
        ]
        for place, key in enumerate(keys)
    ]


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: Any) -> Any:
    return request.param


@pytest.fixture
def written(database: str, request: Any, tmp_path: Path) -> Any:
    """What writes rows of texts into a table, and returns its address."""
    if database == "duckdb":
        return lambda rows, kinds=KINDS: duckdb_table(fresh(tmp_path), kinds, rows)
    url = request.getfixturevalue("server").new()
    return lambda rows, kinds=KINDS: postgres_table(url, kinds, rows)


@contextmanager
def counted(address: str, schema: Schema) -> Iterator[WarehouseRows]:
    table = warehouse_table(open_table(address, schema))
    with counted_rows(table, Codec(schema)) as rows:
        yield rows


def joint(columns: int, rows: int, mass: int | None = None) -> Any:
    return JointHistograms("counts", columns, rows, 9.0, mass)


def of_ages(address: str, schema: Schema) -> list[int]:
    """Which rows are kept, by their ages; each count is 0 or 1."""
    with counted(address, schema) as rows:
        sizes = Codec(schema).sizes
        (found,) = rows.counts([(1,)], sizes, joint(len(sizes), 3))
    return np.flatnonzero(found).tolist()


@pytest.mark.parametrize(("database", "missing_key"), PAIRS)
def test_counts_are_those_of_the_rows_in_memory(written: Any, missing_key: str) -> None:
    schema = schema_of(NAMES, few=True, missing_key=missing_key)
    address, codec = written(cells(KEYS)), Codec(schema)
    cohort = read_cohort(open_table(address, schema), codec, schema, OsEntropy())
    bins = np.arange(codec.sizes[1], dtype=np.uint16) // 40
    recoding = [UnitRows(), Lookup(0), Lookup(1, bins), Lookup(2), Lookup(3)]
    sizes = [3, codec.sizes[0], int(bins.max()) + 1, *codec.sizes[2:4]]
    pairs = [(0, 1), (2, 1), (3, 4), (2, 0)]
    with counted(address, schema) as rows:
        assert (rows.columns, rows.rows_per_unit) == (len(codec.names), 3)
        rows = rows.recoded(recoding)
        for mass, histograms in ((None, pairs), (60, pairs), (7, [(0,), (1,), (2,), (3,), (4,)])):
            event = joint(len(sizes), 3, mass)
            found = rows.counts(histograms, sizes, event)
            expected = exact_counts(cohort.recoded(recoding), histograms, sizes, event)
            assert [one.tolist() for one in found] == [one.tolist() for one in expected]
            assert all(one.dtype == np.int64 for one in found)


def test_every_count_is_of_one_choice_of_rows(written: Any) -> None:
    schema = schema_of(NAMES, few=True)
    address, sizes = written(cells(["a"] * 100 + ["b"])), Codec(schema).sizes
    event = joint(len(sizes), 3)
    with counted(address, schema) as rows:
        first, again = (rows.counts([(1,), (2,), (1, 2)], sizes, event) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    ages, weights, pair = first
    assert ages.sum() == weights.sum() == pair.sum() == 4 and ages[100] == 1
    assert np.array_equal(pair.reshape(sizes[1], sizes[2]).sum(axis=1), ages)


def test_rows_are_kept_at_random(written: Any) -> None:
    keys = [f"p{place % 3}" for place in range(120)]
    address, schema = written(cells(keys)), schema_of(NAMES, few=True)
    first, again = of_ages(address, schema), of_ages(address, schema)
    assert len(first) == len(again) == 9 and first != again  # the same once in 10^12


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([], NoRowsError, "no rows"),
        ([None, "", " \u2003"], TableError, "no row has a key"),
    ],
)
def test_a_table_without_units_stops(written: Any, rows: Any, error: Any, words: str) -> None:
    with (
        pytest.raises(error, match=words),
        counted(written(cells(rows)), schema_of(NAMES, few=True)),
    ):
        pass


def test_a_refused_cell_stops_and_is_not_quoted(written: Any) -> None:
    schema, kinds = schema_of(["strict"]), {"key": "text", "strict": "text"}
    address = written([["x", "a"], [None, "CANARY"]], kinds)
    with pytest.raises(RefusedCellError, match="'strict' declares `refuse`") as refused:
        with counted(address, schema):
            pass
    assert "CANARY" not in str(refused.value)


def test_nothing_is_left_in_the_database(written: Any) -> None:
    schema = schema_of(NAMES, few=True)
    table = warehouse_table(open_table(written(cells(KEYS)), schema))
    with counted_rows(table, Codec(schema)) as rows:
        rows.counts([(0, 1)], Codec(schema).sizes, ChosenHistograms("pairs", 1, 3, 9.0))
    with table.session() as session:
        query = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'dpsynth%'"
        session.fill("ready", ["nothing"], "SELECT 1")
        assert session.rows(query) == []


@pytest.mark.long
def test_keys_are_compared_byte_by_byte_whatever_the_collation(tmp_path: Path) -> None:
    schema = schema_of(NAMES, few=True)
    kinds = KINDS | {"key": "varchar collate nocase"}
    address = duckdb_table(fresh(tmp_path), kinds, cells(["a"] * 3 + ["A"] * 3))
    assert of_ages(address, schema) == [*range(6)]
