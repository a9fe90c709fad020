"""Rows to gaps and back: intervals, derived columns, and the weekday of a drawn date."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth import inspection
from dpsynth.encoding import Codec
from dpsynth.schema import Interval, Schema
from dpsynth.schema.relations import completed_years

from ..support.related_columns import ADMITTED, AGE, BMI, BORN, DISCHARGED, SEEN, SIZES, document

NULLABLE = {**DISCHARGED, "constraints": {}}
CALENDAR = {**ADMITTED, "dpsynth": ADMITTED["dpsynth"] | {"calendar": ["weekday", "month"]}}
WHOLE = Schema.from_dict(document(DISCHARGED, ADMITTED, BORN, SEEN, *SIZES, BMI, AGE))
DAYS = st.integers(-30_000, 30_000)
LEAP_DAYS = st.sampled_from(range(1904, 2048, 4)).map(lambda y: day(f"{y}-02-29"))


def day(text: str) -> int:
    return int(np.datetime64(text, "D").astype(int))


def drawn(schema: Schema, rows: int = 4_000, seed: int = 1) -> tuple[np.ndarray, pd.DataFrame]:
    codec, rng = Codec(schema), np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, rows) for size in codec.sizes], axis=1)
    return codes, codec.decode(codes, rng)


def stays(*pairs: tuple[str, str], **own: Any) -> list[Any]:
    """Bounded gaps of pairs of dates; None where missing."""
    field = {**NULLABLE, "dpsynth": NULLABLE["dpsynth"] | own}
    schema = Schema.from_dict(document(field, ADMITTED))
    frame = pd.DataFrame(pairs, columns=["admitted", "discharged"])
    gaps = Codec(schema).read(frame)[1]["discharged"]
    return [None if pd.isna(gap) else int(gap) for gap in gaps]


def age_of(born: int, then: int) -> int:
    first, last = (date.fromordinal(d + date(1970, 1, 1).toordinal()) for d in (born, then))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


@given(DAYS | LEAP_DAYS, DAYS | LEAP_DAYS)
def test_completed_years_are_those_of_the_calendar(born: int, then: int) -> None:
    assert completed_years(np.array([born]), np.array([then])).tolist() == [age_of(born, then)]


@given(DAYS | LEAP_DAYS, st.integers(0, 120), st.booleans())
def test_the_ends_of_an_age_are_its_first_and_last_day(base: int, age: int, before: bool) -> None:
    interval = Interval("base", "a", longest=200, before=before)
    ends = interval.ends(np.array([base]), np.array([age]), tick=86_400)
    first, last = (int(end[0]) for end in ends)
    for value, same in ((first, True), (last, True), (first - 1, False), (last + 1, False)):
        gap = interval.gaps(np.array([base]), np.array([value]), tick=86_400)
        assert (gap == age).all() == same


def test_every_code_comes_back_and_every_drawn_row_conforms() -> None:
    codes, frame = drawn(WHOLE)
    codec = Codec(WHOLE)
    assert codec.names == ("discharged", "admitted", "born", "seen", "weight", "height")
    assert codec.sizes[:4] == (91, 1826, 112, 50)
    assert codec.conforms(frame) == []
    assert (codec.encode(frame) == codes).all()
    text = frame.astype(object).where(frame.notna(), "").astype(str)
    assert (codec.encode(text) == codes).all()
    assert list(frame.columns) == [column.name for column in WHOLE.modelled]


def test_a_gap_is_that_of_the_row_clipped_to_its_bounds() -> None:
    pairs = [
        ("2010-01-01", "2010-01-04"),
        ("2010-01-01", "2010-12-01"),
        ("2010-01-05", "2010-01-04"),
    ]
    assert stays(*pairs) == [3, 90, 0]
    assert stays(*pairs, shortest=-1) == [3, 90, -1]
    # Both dates beyond the bounds of admitted: the stay is still that of the row.
    assert stays(("1999-01-01", "1999-01-08")) == [7]


def test_a_missing_or_bad_date_leaves_no_gap() -> None:
    pairs = [("2010-01-01", ""), ("", "2010-01-04"), ("2010-01-01", "soon"), ("?", "x")]
    assert stays(*pairs) == [None, None, None, None]
    assert stays(*pairs, on_bad="maximum") == [None, None, 90, None]


def test_a_review_counts_gaps_beyond_the_bounds_as_clipped() -> None:
    rows = [
        ("2010-01-01", "2010-12-01"),
        ("2010-01-01", ""),
        ("2010-01-01", "x"),
        ("2010-01-01",) * 2,
    ]
    frame = pd.DataFrame(rows, columns=["admitted", "discharged"]).assign(patient="p")
    shares = inspection.check(frame, Schema.from_dict(document(NULLABLE, ADMITTED))).cells[
        "discharged"
    ]
    assert (shares.clipped, shares.missing, shares.bad, shares.unknown) == (0.25, 0.25, 0.25, 0)


def test_a_date_is_missing_where_the_other_one_is() -> None:
    base = {**ADMITTED, "constraints": {"minimum": "2010-01-01", "maximum": "2010-01-31"}}
    schema = Schema.from_dict(document(base, NULLABLE))
    frame = Codec(schema).decode(np.array([[31, 5], [3, 91], [3, 5]]), np.random.default_rng(1))
    assert frame["discharged"].isna().tolist() == [True, True, False]
    assert str(frame["discharged"][2].date()) == "2010-01-09"
    broken = pd.DataFrame({"admitted": ["", "2010-01-05"], "discharged": ["2010-01-09"] * 2})
    [problem] = Codec(schema).conforms(broken)
    assert str(problem).endswith("has a date where 'admitted' is missing: 1 row")


def test_hours_are_rounded_down_and_drawn_to_the_minute() -> None:
    frame = drawn(Schema.from_dict(document(ADMITTED, SEEN)))[1]
    minutes = (frame["seen"] - frame["admitted"]).dt.total_seconds() / 60
    assert minutes.max() == 48 * 60 and minutes.min() < 60  # none is beyond the longest
    assert set(minutes.dropna() % 60) == {float(minute) for minute in range(60)}
    base = {
        **ADMITTED,
        "type": "datetime",
        "constraints": {"minimum": "2010-01-01", "maximum": "2010-02-01"},
    }
    for unit, cell, gap in (("min", "2010-01-02T10:01:59", 1), ("h", "2010-01-02T11:59:00", 1)):
        seen = {**SEEN, "dpsynth": SEEN["dpsynth"] | {"unit": unit}}
        row = pd.DataFrame({"admitted": ["2010-01-02T10:00:00"], "seen": [cell]})
        assert Codec(Schema.from_dict(document(base, seen))).read(row)[1]["seen"].tolist() == [gap]
    mixed = Codec(Schema.from_dict(document(base, {**NULLABLE})))  # a date after a datetime
    row = pd.DataFrame(
        {"admitted": [datetime(2010, 1, 2, 23)], "discharged": [datetime(2010, 1, 3)]}
    )
    assert mixed.read(row)[1]["discharged"].tolist() == [1]


@pytest.mark.parametrize(
    ("column", "cells", "problem"),
    [
        ("discharged", ["2010-01-01", "2010-06-30"], "not 0 to 90 days after admitted: 1 row"),
        ("bmi", ["25.0", "25.1"], "not weight / (height / 100) ^ 2: 1 row"),
        ("age", ["30", ""], "not years(born, admitted): 1 row"),
    ],
)
def test_a_table_that_breaks_a_relation_does_not_conform(
    column: str, cells: list[str], problem: str
) -> None:
    rows = {"discharged": "2010-01-02", "admitted": "2010-01-01", "born": "1980-01-01"}
    rows |= {"seen": "", "weight": "100.0", "height": "200", "bmi": "25.0", "age": "30"}
    frame = pd.DataFrame({name: [cell] * 2 for name, cell in rows.items()})
    assert Codec(WHOLE).conforms(frame) == []
    departures = Codec(WHOLE).conforms(frame.assign(**{column: cells}))
    assert [str(one) for one in departures] == [f"column '{column}': {problem}"]


def test_derived_columns_are_computed_clipped_and_never_read() -> None:
    codec = Codec(WHOLE)
    assert "bmi" not in codec.schema.to_dict()["fields"]
    frame = drawn(WHOLE)[1]
    exact = frame["weight"] / (frame["height"].astype(float) / 100) ** 2
    wanted = exact.clip(8, 100).where(frame["height"] > 0)  # a division by zero has no result
    assert frame["bmi"].isna().tolist() == wanted.isna().tolist()
    assert (frame["bmi"] - wanted).abs().max() <= 0.05 + 1e-9
    alone = frame.drop(columns=["bmi", "age"])
    assert (codec.encode(alone) == codec.encode(frame)).all()
    assert codec.bounded(alone)["age"].equals(frame["age"])


def test_a_drawn_date_moves_to_the_drawn_weekday_and_month() -> None:
    schema = Schema.from_dict(document(CALENDAR, DISCHARGED))
    codec = Codec(schema)
    assert codec.names == ("admitted", "admitted: weekday", "admitted: month", "discharged")
    codes, frame = drawn(schema)
    assert (frame["admitted"].dt.dayofweek == codes[:, 1]).all()
    assert (frame["admitted"].dt.month - 1 == codes[:, 2]).all()
    assert codec.conforms(frame) == []
    assert (codec.encode(frame)[:, 1:] == codes[:, 1:]).all()
    apart = pd.Timestamp("2010-01-01") + pd.to_timedelta(codes[:, 0], "D") - frame["admitted"]
    inner = (codes[:, 0] > 220) & (codes[:, 0] < 1600)  # away from the ends
    assert apart[inner].abs().max() < pd.Timedelta(days=200)


def test_without_relations_nothing_changes() -> None:
    schema = Schema.load("demo")
    codec = Codec(schema)
    assert codec.schema is schema and codec.names == tuple(c.name for c in schema.modelled)
