"""P20: where rows stay in a warehouse, one unit enters all counts with one choice of its rows.

The cap is part of the query. Each broken version below is a query that looks right, and fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pytest

from dpsynth.encoding import Codec, counted_rows, sql_counts
from dpsynth.encoding.sql_counts import ROWS
from dpsynth.errors import InputError
from dpsynth.privacy import JointHistograms
from dpsynth.schema import Schema
from dpsynth.tables import open_table, warehouse, warehouse_table

from ..support.warehouse_tables import FIELDS, duckdb_table, fresh, schema_of

MOST, MASS = 3, 60
NAMES = ("age", "weight")
KINDS = {"key": "text"} | {name: FIELDS[name][0] for name in NAMES}
FEW = [(f"p{place}", place) for place in range(4)]
MANY = [("hospitalised often", 10 + place % 80) for place in range(200)]
KEYLESS = [(None, 10 + place) for place in range(20)]
Rows = list[tuple[str | None, int]]


def counts(folder: Path, rows: Rows, schema: Schema) -> list[np.ndarray]:
    """Counts of ages, of weights, and of ages again; a weight says the age."""
    cells = [[key, str(age), str(30 + age)] for key, age in rows]
    table = open_table(duckdb_table(fresh(folder), KINDS, cells), schema)
    sizes = Codec(schema).sizes
    event = JointHistograms("counts", len(sizes), MOST, 99.0, MASS)
    with counted_rows(warehouse_table(table), Codec(schema)) as counted:
        ages, weights, again = counted.counts([(0,), (1,), (0,)], sizes, event)
    lattice = Codec(schema).lattice("weight")
    assert lattice is not None
    by_age = weights[lattice.positions(np.arange(len(ages)) + 30.0)]
    return [ages, by_age, again]


def check_one_unit(folder: Path, unit: Rows, others: Rows = FEW, **own: Any) -> None:
    """A unit moves each count by at most its mass, and all by the same rows."""
    schema = schema_of(NAMES, **own)
    without, with_it = (counts(folder, rows, schema) for rows in (others, others + unit))
    moved = [one - other for one, other in zip(with_it, without, strict=True)]
    for one in moved:
        assert (one >= 0).all() and 0 < one.sum() <= MASS, "beyond the mass of a unit"
        assert np.array_equal(one[:99], moved[0][:99]), "another choice of rows"


def test_one_unit_moves_each_count_by_its_mass(tmp_path: Path) -> None:
    check_one_unit(tmp_path, MANY)


def test_rows_without_a_key_are_units_of_their_own(tmp_path: Path) -> None:
    check_one_unit(tmp_path, KEYLESS[:1], KEYLESS[1:], missing_key="own")


def no_cap(rows: Any, unit: Any, codes: Any) -> Any:
    return rows.select(*codes, **{ROWS: ibis.literal(1, type="int32")})


def weights_of_the_cap(rows: Any, unit: Any, codes: Any) -> Any:
    """Rows are weighed as if each unit kept as many as it may, but all are kept."""
    return rows.select(*codes, **{ROWS: ibis.literal(MOST, type="int32")})


@pytest.mark.parametrize("broken", [no_cap, weights_of_the_cap])
def test_a_forgotten_cap_is_noticed(tmp_path: Path, broken: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sql_counts, "capped", broken)
    with pytest.raises(AssertionError, match="beyond the mass"):
        check_one_unit(tmp_path, MANY)


def test_rows_without_a_key_as_one_unit_are_noticed(tmp_path: Path, monkeypatch: Any) -> None:
    """NULL is one group to GROUP BY and PARTITION BY: all such rows share three places."""

    def one_unit(rows: Any, unit: Any, codes: Any) -> Any:
        window = ibis.window(group_by=rows.key)
        turn = ibis.row_number().over(ibis.window(group_by=rows.key, order_by=rows.draw))
        ranked = rows.select(*codes, turn=turn, every=rows.count().over(window))
        kept = ranked.filter(ranked.turn < MOST)
        least = ibis.ifelse(kept.every < MOST, kept.every, MOST).cast("int32")
        return kept.select(*codes, **{ROWS: least})

    monkeypatch.setattr(sql_counts, "capped", one_unit)
    with pytest.raises(AssertionError, match="beyond the mass"):
        check_one_unit(tmp_path, KEYLESS[:1], KEYLESS[1:], missing_key="own")


def test_rows_drawn_for_each_query_are_noticed(tmp_path: Path, monkeypatch: Any) -> None:
    def view(self: Any, table: str, columns: Any, select: str, ask: Any = ()) -> list[Any]:
        answers = [row for query in ask for row in self.rows(query)]
        self.rows(f"CREATE TEMPORARY VIEW {table} AS {select}")
        return answers

    monkeypatch.setattr(warehouse.DuckdbSession, "fill", view)
    monkeypatch.setattr(warehouse.DuckdbSession, "drop", lambda self, table: None)
    with pytest.raises(AssertionError, match="another choice"):
        check_one_unit(tmp_path, MANY)


def test_a_unit_beyond_its_cap_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    def uncapped(rows: Any, unit: Any, codes: Any) -> Any:
        every = rows.count().over(ibis.window(group_by=rows.key)).cast("int32")
        return rows.select(*codes, **{ROWS: every})

    monkeypatch.setattr(sql_counts, "capped", uncapped)
    with pytest.raises(InputError, match="more rows than its cap"):
        check_one_unit(tmp_path, MANY)
