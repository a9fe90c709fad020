"""P20: where rows stay in a warehouse, a statistic counts a unit with all its rows as one.

Units that are alike come as one pattern with their number. The check removes a unit and looks at
the exact answers: they move by what its kept rows add, whoever is like it. Each broken version
below looks right where every unit has one row, and fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pytest

from dpsynth.encoding import counted_rows, sql_counts
from dpsynth.encoding.sql_counts import UNIT
from dpsynth.errors import InputError
from dpsynth.privacy import Contributions, RowSums, Stays, StaySums, row_sums, stay_sums
from dpsynth.stats import StatisticsRequest
from dpsynth.stats.answering import StayingRows
from dpsynth.tables import open_table, warehouse_table

from ..support.bare_counts import Silence
from ..support.warehouse_tables import FIELDS, duckdb_table, fresh, schema_of

KINDS = {"key": "text", "age": FIELDS["age"][0]}
ALIKE = [(f"p{place}", age) for place in range(5) for age in (10, 50)]
OFTEN = [("often", 1 + place % 90) for place in range(200)]
ENTRIES = [
    {"name": "patients", "count": "patients", "by": [{"age": [18, 40, 65]}]},
    {"name": "anybody", "count": "patients"},
]
Rows = list[tuple[str | None, int]]


def patients(folder: Path, rows: Rows, **own: Any) -> tuple[np.ndarray, int]:
    """Patients in each group of ages, and all of them, without noise."""
    request = StatisticsRequest.from_dict(
        {"schema": schema_of(["age"], **own).to_dict(), "statistics": ENTRIES}
    )
    cells = [[key, str(age)] for key, age in rows]
    table = open_table(duckdb_table(fresh(folder), KINDS, cells), request.schema)
    plan = request.plan(epsilon=3, delta=1e-6)
    events = {event.name: event for event in plan.events}
    with counted_rows(warehouse_table(table), request.codec, numbered=True) as counted:
        staying = StayingRows(counted)
        answers: dict[str, Any] = {}
        for one in request.statistics:
            answers |= one.answer(staying.reading(one.reads), events, Silence())
    by_age, whole = (np.asarray(answers[entry["name"]][0]) for entry in ENTRIES)
    return by_age, int(whole[0])


def check_one_unit(folder: Path, unit: Rows, others: Rows = ALIKE, **own: Any) -> None:
    """A patient who comes is one patient more, in at most as many groups as she has rows kept."""
    without, alone = patients(folder, others, **own)
    with_her, all_of_them = patients(folder, others + unit, **own)
    moved = with_her - without
    assert all_of_them - alone == 1, "a patient for each row"
    assert (moved >= 0).all() and moved.max() == 1 and moved.sum() <= 3, "more than her rows"


@pytest.mark.parametrize("unit", [ALIKE[:2], OFTEN], ids=["like others", "often"])
def test_a_unit_is_one_unit(tmp_path: Path, unit: Rows) -> None:
    check_one_unit(tmp_path, [("new", age) for _, age in unit])


def test_rows_without_a_key_are_units_of_their_own(tmp_path: Path) -> None:
    keyless: Rows = [(None, 10), (None, 10), (None, 50)]
    check_one_unit(tmp_path, keyless[:1], keyless[1:], missing_key="own")


def test_units_that_are_their_rows_are_noticed(tmp_path: Path, monkeypatch: Any) -> None:
    whole = sql_counts.capped

    def by_row(rows: Any, unit: Any, codes: Any) -> Any:
        return whole(rows, unit, codes).mutate(**{UNIT: ibis.row_number().over(ibis.window())})

    monkeypatch.setattr(sql_counts, "capped", by_row)
    with pytest.raises(AssertionError, match="a patient for each row"):
        check_one_unit(tmp_path, OFTEN)


EVENT = RowSums("patients", 1, 2, largest=1, signed=False, once=True, shared=False, sigma=9.0)
UNITS, CELLS = np.array([0, 0, 1]), np.array([[1], [1], [0]])


@pytest.mark.parametrize(
    "like", [[2, 3, 1], [0, 0, 1], [-1, -1, 1], [2, 2]], ids=["two", "none", "less", "short"]
)
def test_units_that_one_stands_for_are_a_number_of_each_unit(like: list[int]) -> None:
    numbers = np.array(like, dtype=np.int64)
    with pytest.raises(InputError, match="a whole number of each unit"):
        row_sums(Contributions(UNITS, CELLS, None, numbers), [2], EVENT, Silence())
    stays = Stays(UNITS, np.zeros(3, np.int64), CELLS[:, 0], CELLS[:, 0], numbers)
    event = StaySums("beds", 4, longest=2, stays_per_unit=2, sigma=9.0)
    with pytest.raises(InputError, match="a whole number of each unit"):
        stay_sums(stays, 1, event, Silence())
