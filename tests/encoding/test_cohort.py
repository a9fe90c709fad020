from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding import Codec, Cohort, read_cohort, select
from dpsynth.errors import RefusedCellError, TableError
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import PrivacyUnit, Schema
from dpsynth.tables import open_table
from dpsynth.tables.unit_keys import NO_KEY, normalised

from ..support.sharded_visits import visits


def cohort_of(
    patients: Any, schema: Schema, *, visit: Any = None, values: Any = None, seed: int = 1
) -> Cohort:
    """Read rows whose values are 0, 1, 2, ... unless given."""
    frame = pd.DataFrame({"patient": patients})
    frame["value"] = np.arange(len(frame)) if values is None else values
    frame["visit"] = 0 if visit is None else visit
    return read_cohort(open_table(frame, schema), Codec(schema), schema, SeededEntropy(seed))


def rows_of(cohort: Cohort) -> list[tuple[int, ...]]:
    """The values that each unit kept, in the order of its rows."""
    return [
        tuple(int(code) for code in codes[mask, 0])
        for codes, mask in zip(cohort.codes, cohort.mask, strict=True)
    ]


def test_rows_are_grouped_by_patient() -> None:
    cohort = cohort_of(["a", "b", "a", "c", "b", "a"], visits())
    assert cohort.codes.shape == (3, 3, 1)
    assert cohort.codes.dtype == np.uint16
    assert cohort.mask.shape == (3, 3)
    assert {tuple(sorted(rows)) for rows in rows_of(cohort)} == {(0, 2, 5), (1, 4), (3,)}


def test_padding_comes_last_and_holds_nothing() -> None:
    cohort = cohort_of(["a", "b", "b"], visits(maximum=4), values=[150, 160, 170])
    assert cohort.mask.shape == (2, 4), "as wide as declared, whatever the rows are"
    for codes, mask in zip(cohort.codes, cohort.mask, strict=True):
        assert mask.tolist() == sorted(mask.tolist(), reverse=True)
        assert (codes[~mask] == 0).all()
        assert (codes[mask] >= 150).all()


def test_units_may_span_chunks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 2)
    patients = ["a", "b", "a", "c", "b", "a", "?"]
    assert sorted(map(sorted, rows_of(cohort_of(patients, visits())))) == [[0, 2, 5], [1, 4], [3]]
    path = tmp_path / "t.csv"
    path.write_text("patient,value\n" + "".join(f"{p},{i}\n" for i, p in enumerate(patients)))
    schema = visits()
    done: list[float] = []
    cohort = read_cohort(
        open_table(path, schema), Codec(schema), schema, SeededEntropy(1), done.append
    )
    assert sorted(map(sorted, rows_of(cohort))) == [[0, 2, 5], [1, 4], [3]]
    assert done[-1] == 1.0


def test_each_row_is_a_unit_where_none_is_declared() -> None:
    document = visits().to_dict()
    del document["fields"][1], document["dpsynth"]["max_rows"]
    schema = Schema.from_dict(document)
    cohort = cohort_of(["a"] * 9, schema)
    assert cohort.codes.shape == (9, 1, 1)
    assert cohort.mask.all()
    assert sorted(rows_of(cohort)) == [(i,) for i in range(9)]
    assert rows_of(cohort) != [(i,) for i in range(9)], "units come in random order"


def test_at_most_max_rows_count() -> None:
    cohort = cohort_of(["a"] * 50 + ["b"] * 2, visits(maximum=3))
    kept = sorted(rows_of(cohort), key=len)
    assert [len(rows) for rows in kept] == [2, 3]
    assert set(kept[1]) <= set(range(50))
    assert len(set(kept[1])) == 3


def test_kept_rows_are_a_uniform_subset_in_random_order() -> None:
    units = np.repeat(np.arange(6000), 4)
    rows, places = select(units, 2, SeededEntropy(7))
    assert len(rows) == 12_000
    assert (np.diff(units[rows]) >= 0).all()
    assert (places == np.tile([0, 1], 6000)).all()
    pairs = Counter(map(tuple, (rows % 4).reshape(-1, 2).tolist()))
    # 12 ordered pairs, 500 each; 11 degrees of freedom; 60 has probability 1e-8. Seeded.
    assert len(pairs) == 12
    assert sum((count - 500) ** 2 / 500 for count in pairs.values()) < 60


@pytest.mark.long
def test_windows_are_consecutive_and_start_anywhere() -> None:
    schema = visits(maximum=3, keep="window")
    starts: Counter[int] = Counter()
    for seed in range(200):
        # Visits 5, 4, .. 1 of one patient, and a patient of two visits, who keeps both.
        cohort = cohort_of(
            ["a"] * 5 + ["b"] * 2, schema, visit=[50, 40, 30, 20, 10, 9, 8], seed=seed
        )
        long, short = sorted(rows_of(cohort), key=len, reverse=True)
        assert short == (6, 5)
        assert long in {(4, 3, 2), (3, 2, 1), (2, 1, 0)}
        starts[long[0]] += 1
    assert set(starts) == {4, 3, 2}
    assert min(starts.values()) > 40  # 67 each; standard deviation 6.7; seeded


@pytest.mark.parametrize(
    ("order", "visit"),
    [
        ("integer", ["10", "9", "100", "?"]),  # as text, 10 < 100 < 9
        ("integer", [10, 9, 100, None]),
        ("number", ["1.5", "-2", "1e3", "bad"]),
        ("date", ["2001-02-01", "1999-12-31", "2001-02-02", ""]),
        ("datetime", ["2001-02-01T10:00:00", "2001-02-01T09:59:59", "2001-02-01 23:00", None]),
        ("year", ["2001", "1999", "2002", ""]),
        ("string", ["b", "a", "c", None]),
    ],
)
def test_windows_by_every_type_of_order(order: str, visit: list[Any]) -> None:
    schema = visits(maximum=4, keep="window", order=order)
    (rows,) = rows_of(cohort_of(["a"] * 4, schema, visit=visit))
    assert rows == (1, 0, 2, 3) if order != "string" else (3, 1, 0, 2)


def test_ties_in_the_order_keep_the_order_of_the_file() -> None:
    schema = visits(maximum=9, keep="window")
    (rows,) = rows_of(cohort_of(["a"] * 9, schema, visit=[1, 0] * 4 + [0]))
    assert rows == (1, 3, 5, 7, 8, 0, 2, 4, 6)


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ({}, [[0, 1], [2], [3], [4], [5]]),  # trimmed
        ({"trim": False}, [[0], [1], [2], [3], [4], [5]]),
        ({"leading_zeros": False}, [[0, 1, 2], [3], [4], [5]]),
        ({"case": True}, [[0, 1], [2], [3, 4], [5]]),
    ],
)
def test_keys_are_compared_as_declared(key: dict[str, bool], groups: list[list[int]]) -> None:
    patients = ["7", " 7 ", "007", "a7", "A7", "0"]
    cohort = cohort_of(patients, visits(key=key))
    assert sorted(map(sorted, rows_of(cohort))) == groups


def test_normalised_keys() -> None:
    plain = PrivacyUnit("id", 1, None)
    assert normalised(" 07 ", plain) == "07"
    zeros = replace(plain, leading_zeros=False)
    assert [normalised(key, zeros) for key in ("07", "0", "000", "70", "-07")] == [
        *("7", "0", "0", "70", "-07"),
    ]
    assert normalised("Stra\xdfe", replace(plain, case=True)) == "strasse"


@pytest.mark.parametrize(
    "patients",
    [
        ["7", "8", "7"],
        pd.array(["7", "8", "7"], dtype="string"),
        pd.array(["7", "8", "7"], dtype="string[pyarrow]"),
        pd.Categorical(["7", "8", "7"]),
        [7, 8, 7],
        pd.array([7, 8, 7], dtype="Int64"),
    ],
)
def test_keys_of_any_text_type(patients: Any) -> None:
    assert sorted(map(sorted, rows_of(cohort_of(patients, visits())))) == [[0, 2], [1]]


@pytest.mark.parametrize("patients", [[7.0, 8.0, 7.0], pd.array([7, 8, 7], "Float64"), ["7", 8, 7]])
def test_keys_that_are_neither_text_nor_whole_numbers_are_refused(patients: Any) -> None:
    """Were they taken, long keys would fall together once a key is missing."""
    with pytest.raises(TableError, match="column 'patient' holds"):
        cohort_of(patients, visits())


def test_long_keys_do_not_fall_together() -> None:
    patients = [str(2**60), str(2**60 + 1), None, str(2**60)]
    assert sorted(map(sorted, rows_of(cohort_of(patients, visits())))) == [[0, 3], [1]]


def test_rows_without_a_key() -> None:
    patients = ["a", "", None, " ? ", "a", np.nan]
    assert sorted(map(sorted, rows_of(cohort_of(patients, visits())))) == [[0, 4]]
    cohort = cohort_of(patients, visits(missing_key="own"))
    assert sorted(map(sorted, rows_of(cohort))) == [[0, 4], [1], [2], [3], [5]]
    with pytest.raises(TableError, match="no row has a key in column 'patient'"):
        cohort_of(["", None, "?"], visits())
    alone = cohort_of(["", None, "?"], visits(missing_key="own"))
    assert sorted(rows_of(alone)) == [(0,), (1,), (2,)]


def test_units_come_in_random_order() -> None:
    patients = [f"p{i}" for i in range(100)]
    first, again, other = (rows_of(cohort_of(patients, visits(), seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other) == [(i,) for i in range(100)]


def test_refused_cells_stop_the_reading() -> None:
    schema = visits(value={"on_bad": "refuse"})
    with pytest.raises(RefusedCellError, match="column 'value'"):
        cohort_of(["a", "b"], schema, values=["3", "canary"])


@settings(deadline=None)
@given(
    st.lists(st.integers(-1, 6), min_size=1, max_size=60),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 99),
)
def test_no_unit_has_more_than_its_share(
    units: list[int], most: int, window: bool, seed: int
) -> None:
    of_row = np.array(units, dtype=np.int64)
    order = np.arange(len(units))[::-1].copy() if window else None
    rows, places = select(of_row, most, SeededEntropy(seed), order=order)
    assert len(set(rows.tolist())) == len(rows), "no row counts twice"
    counts = Counter(units)
    del counts[NO_KEY]
    for unit, count in counts.items():
        kept = rows[of_row[rows] == unit]
        assert len(kept) == min(count, most)
        assert places[of_row[rows] == unit].tolist() == list(range(len(kept)))
        if window:  # consecutive among the unit's rows, latest first
            own = np.flatnonzero(of_row == unit)[::-1].tolist()
            start = own.index(kept[0])
            assert kept.tolist() == own[start : start + len(kept)]


@pytest.mark.long
def test_real_patients() -> None:
    folder = os.environ.get("DPSYNTH_DATA")
    if not folder:
        pytest.skip("DPSYNTH_DATA is not set: it names the folder of the real tables")
    path = Path(folder) / "diabetes130.csv.gz"
    schema = Schema.load("diabetes130")
    assert schema.unit.column == "patient_nbr"
    cohort = read_cohort(open_table(path, schema), Codec(schema), schema, SeededEntropy(3))
    with gzip.open(path, "rt") as file:
        visits_of = Counter(row["patient_nbr"] for row in csv.DictReader(file))
    most = schema.unit.max_rows
    assert len(cohort.mask) == len(visits_of) == 71_518
    assert Counter(cohort.mask.sum(axis=1).tolist()) == Counter(
        min(count, most) for count in visits_of.values()
    )
