"""The profile of a synthetic table: exact, whatever the chunks, in bins that people choose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.bundle.gates import ColumnProfile, Profile
from dpsynth.bundle.gates.profile import MAX_BINS, bins_of
from dpsynth.encoding import typed_frames
from dpsynth.schema import Column, Lattice, Schema, lattice_of

TABLE = "data/synthetic.parquet"


@pytest.fixture
def table(bundle: Path, every_type: Schema) -> pd.DataFrame:
    return pd.concat(typed_frames(bundle / TABLE, every_type), ignore_index=True)


def profile_of(schema: Schema, frame: pd.DataFrame, step: int = 1000) -> dict[str, ColumnProfile]:
    def chunks() -> Iterator[pd.DataFrame]:
        for start in range(0, len(frame), step):
            yield frame.iloc[start : start + step].reset_index(drop=True)

    profile = Profile.of(schema, chunks())
    assert profile.rows == len(frame)
    return {column.column.name: column for column in profile.columns}


def test_figures_are_those_of_pandas(table: pd.DataFrame, every_type: Schema) -> None:
    columns = profile_of(every_type, table)
    for name in ("age", "weight"):
        assert columns[name].mean == pytest.approx(float(table[name].mean()), rel=1e-12)
        known = np.sort(table[name].dropna().to_numpy(dtype=float))
        quartiles = np.quantile(known, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
        assert [float(text) for text in columns[name].five] == quartiles.tolist()
    for name, column in columns.items():
        assert column.missing == table[name].isna().sum()
        assert column.distinct == table[name].nunique()
        assert sum(one.rows for one in column.bins) == len(table) - column.missing
        assert (column.strange, column.others, column.constant) == (0, 0, False)
    times = table["measured"].dropna().sort_values()
    assert columns["measured"].five[0] == f"{times.iloc[0]:%Y-%m-%d %H:%M}"
    assert columns["admitted"].five[4] == f"{table['admitted'].max():%Y-%m-%d}"
    assert columns["sex"].mean is None and columns["sex"].five == ()
    counts = table["sex"].value_counts()
    assert {one.label: one.rows for one in columns["sex"].bins} == counts.to_dict()
    assert [one.label for one in columns["grade"].bins] == ["1", "2", "3"]
    assert [one.label for one in columns["smoker"].bins] == ["false", "true"]


@pytest.mark.parametrize("step", [1, 7, 299])
def test_chunks_change_nothing(
    table: pd.DataFrame, every_type: Schema, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = profile_of(every_type, table)
    monkeypatch.setattr("dpsynth.bundle.gates.profile._MANY", 50)  # parts are merged on the way
    assert profile_of(every_type, table, step) == whole


@pytest.mark.parametrize(
    ("name", "value"),
    [("age", 17), ("weight", 200.1), ("weight", 70.05), ("weight", np.inf), ("grade", 4)],
)
def test_a_cell_that_the_schema_does_not_allow_is_counted(
    table: pd.DataFrame, every_type: Schema, name: str, value: float
) -> None:
    column = every_type.column(name)
    table[name] = table[name].astype("Float64")
    table.loc[[3, 5], name] = value
    assert profile_of(every_type, table)[column.name].strange == 2


def test_an_unknown_category_and_a_needed_cell_are_counted(
    table: pd.DataFrame, every_type: Schema
) -> None:
    table.loc[3, "sex"] = "X"
    table.loc[4, "age"] = pd.NA
    columns = profile_of(every_type, table)
    assert (columns["sex"].strange, columns["age"].strange) == (1, 1)


def test_broken_rules_are_counted(table: pd.DataFrame, every_type: Schema) -> None:
    table.loc[[0, 1], "admitted"] = pd.Timestamp("2020-12-31")
    table.loc[[0, 1], "discharged"] = pd.Timestamp("2015-01-01")
    [rule] = Profile.of(every_type, [table]).rules
    assert (rule.text, rule.broken) == ("admitted <= discharged", 2)


def test_a_dead_column_is_constant(table: pd.DataFrame, every_type: Schema) -> None:
    table["sex"] = "F"
    table["grade"] = pd.array([pd.NA] * len(table), dtype="Int64")
    table["weight"] = [50.0, np.nan] * (len(table) // 2)
    columns = profile_of(every_type, table)
    assert [columns[name].constant for name in ("sex", "grade", "weight")] == [True, True, False]
    assert columns["grade"].bins[0].rows == 0 and columns["grade"].distinct == 0


def test_many_categories_leave_the_most_frequent(every_type: Schema) -> None:
    document = every_type.to_dict()
    field = next(field for field in document["fields"] if field["name"] == "sex")
    field["constraints"]["enum"] = [f"c{place:02}" for place in range(40)]
    field["categories"] = [{"value": "c39", "label": "the last"}]
    field["categories"] += [{"value": f"c{place:02}"} for place in range(39)]
    document["fields"] = [document["fields"][0], field]
    del document["dpsynth"]["rules"]
    schema = Schema.from_dict(document)
    cells = [f"c{place:02}" for place in range(40) for _ in range(place + 1)]
    column = profile_of(schema, pd.DataFrame({"sex": cells}))["sex"]
    assert (column.bins[0].label, column.bins[0].rows) == ("the last", 40)
    assert len(column.bins) == 30 and column.others == sum(range(1, 11))


LATTICE = Lattice(first=-35, stride=5, points=400, decimals=1)  # -3.5, -3.0, ..., 196
NUMBER = Column("x", "number", minimum=-3.5, maximum=196.0, step=0.5)


@settings(max_examples=60)
@given(st.sets(st.integers(0, 399), min_size=1, max_size=200))
def test_bins_hold_every_value_once_and_are_equally_wide(places: set[int]) -> None:
    positions = np.array(sorted(places))
    values = LATTICE.values(positions)
    bins = bins_of(NUMBER, LATTICE, values, np.ones(len(values), dtype=np.int64))
    assert 1 <= len(bins) <= MAX_BINS
    assert sum(one.rows for one in bins) == len(values)
    ends = [tuple(map(float, one.label.split(" to "))) for one in bins]
    for one, (low, high) in zip(bins, [(end[0], end[-1]) for end in ends], strict=True):
        assert one.rows == ((values >= low) & (values <= high)).sum()
    inner = [end[1] - end[0] for end in ends[1:-1] if len(end) == 2]
    assert len({round(width, 6) for width in inner}) <= 1


@pytest.mark.parametrize(
    ("first", "last", "labels"),
    [
        ("2018-01-01", "2018-01-03", ["2018-01-01", "2018-01-02", "2018-01-03"]),
        ("2018-01-03", "2018-03-01", ["week of 2018-01-01", "week of 2018-02-26"]),
        ("2018-01-31", "2019-12-01", ["2018-01", "2019-12"]),
        ("2018-01-31", "2024-12-31", ["2018, quarter 1", "2024, quarter 4"]),
        ("2001-01-31", "2024-12-31", ["2001", "2024"]),
        ("1931-01-31", "2024-12-31", ["1930 to 1934", "2020 to 2024"]),
        ("1600-01-31", "2024-12-31", ["1600 to 1649", "2000 to 2049"]),
    ],
)
def test_dates_are_divided_as_calendars_are(first: str, last: str, labels: list[str]) -> None:
    column = Column("d", "date", minimum=pd.Timestamp(first), maximum=pd.Timestamp(last))
    days = np.array([first, last], dtype="datetime64[D]").astype(np.int64).astype(float)
    bins = bins_of(column, lattice_of(column), days, np.array([2, 3]))
    parts = [one.label for one in bins]
    assert parts == labels if len(labels) == 3 else [parts[0], parts[-1]] == labels
    assert len(bins) <= MAX_BINS and (bins[0].rows, bins[-1].rows) == (2, 3)


def test_an_hour_of_times_is_divided_by_minutes() -> None:
    column: Any = Column("t", "datetime")
    seconds = np.array([0.0, 1500.0])
    bins = bins_of(column, LATTICE, seconds, np.array([1, 1]))
    assert (len(bins), bins[0].label, bins[-1].label) == (
        *(26, "from 1970-01-01 00:00", "from 1970-01-01 00:25"),
    )
