"""The hour of the day as a part of the calendar: from cells, and back into drawn datetimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding import Codec
from dpsynth.encoding.relations import moved_dates
from dpsynth.inspection import schema_warnings
from dpsynth.schema import Schema

from ..support.related_columns import BASIS, document
from ..support.schema_fields import schema_field

START, END = "2023-01-02T06:30:00", "2024-12-30T20:15:00"
MOMENTS = st.datetimes(pd.Timestamp(START).to_pydatetime(), pd.Timestamp(END).to_pydatetime())
ALL = ["weekday", "month", "hour"]


def schema_of(calendar: list[str] | None, start: str = START, end: str = END, **own: Any) -> Schema:
    extra = own | ({"calendar": calendar} if calendar else {})
    arrived = schema_field("arrived", "datetime", BASIS | extra, minimum=start, maximum=end)
    left = {
        "name": "left",
        "type": "datetime",
        "dpsynth": BASIS | {"after": "arrived", "longest": 4320, "unit": "min"},
    }
    return Schema.from_dict(document(arrived, left))


def drawn(schema: Schema, rows: int = 4_000) -> tuple[np.ndarray, pd.DataFrame, Codec]:
    codec, rng = Codec(schema), np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, rows) for size in codec.sizes], axis=1)
    return codes, codec.decode(codes, rng), codec


@pytest.mark.long
@given(st.lists(MOMENTS, min_size=1, max_size=20))
def test_the_hour_of_a_cell_is_coded_and_comes_back(moments: list[Any]) -> None:
    codec = Codec(schema_of(ALL))
    cells = [moment.strftime("%Y-%m-%dT%H:%M:%S") for moment in moments]
    frame = pd.DataFrame({"arrived": cells, "left": cells})
    codes = codec.encode(frame)
    place = codec.names.index("arrived: hour")
    assert codes[:, place].tolist() == [moment.hour for moment in moments]
    back = codec.decode(codes, np.random.default_rng(0))
    inner = [i for i, m in enumerate(moments) if "2023-02" < m.isoformat() < "2024-12"]
    again = codec.encode(back)[:, 1:4]
    assert (again[inner] == codes[inner, 1:4]).all()
    assert codec.conforms(back) == []


def test_drawn_times_have_the_drawn_hour_weekday_and_month() -> None:
    codes, frame, codec = drawn(schema_of(ALL))
    assert codec.names[:4] == ("arrived", "arrived: weekday", "arrived: month", "arrived: hour")
    there = (codes[:, :4] < [codec.sizes[0] - 1, 7, 12, 24]).all(axis=1)  # none is missing
    arrived = frame["arrived"][there]
    assert (arrived.dt.hour == codes[there, 3]).all()
    assert (arrived.dt.dayofweek == codes[there, 1]).all()
    assert (arrived.dt.month - 1 == codes[there, 2]).mean() > 0.99  # but near a cut day
    assert arrived.between(START, END).all() and codec.conforms(frame) == []


@given(MOMENTS, st.integers(0, 23))
def test_the_hour_alone_leaves_the_day_and_the_minute(moment: Any, hour: int) -> None:
    column = schema_of(["hour"]).column("arrived")
    before = pd.Timestamp(moment).floor("min")
    cells = {"arrived": pd.Series([before]), "arrived: hour": pd.Series([f"{hour:02}"])}
    (after,) = moved_dates(cells, column)
    assert (after.hour, after.minute) == (hour, before.minute)
    wanted = before.replace(hour=hour)
    assert after == wanted or not pd.Timestamp(START) <= wanted <= pd.Timestamp(END)
    assert after.dayofweek == before.dayofweek


def test_an_hour_that_no_day_has_leaves_the_time() -> None:
    schema = schema_of(["hour"], "2023-01-02T08:00:00", "2023-01-02T09:59:00")
    codes, frame, codec = drawn(schema)
    there = codes[:, 0] < codec.sizes[0] - 1
    assert frame["arrived"][there].between("2023-01-02 08:00", "2023-01-02 09:59").all()


def test_a_warning_says_what_happens_to_the_time_of_day() -> None:
    (warning,) = schema_warnings(schema_of(["weekday"]))
    assert warning.place == "arrived" and "time of day will be even" in warning.message
    assert "dpsynth: {calendar: [weekday, hour]}" in warning.message
    assert schema_warnings(schema_of(["hour"])) == ()
    assert schema_warnings(schema_of(None, step=7200)) == ()
    stays = schema_of(["hour"]).to_dict()
    stays["fields"][-1]["dpsynth"] |= {"unit": "d", "longest": 3}
    (warning,) = schema_warnings(Schema.from_dict(stays))
    assert warning.place == "left" and "unit: min" in warning.message
