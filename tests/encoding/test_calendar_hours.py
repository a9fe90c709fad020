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
from dpsynth.errors import SchemaError
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


def departure(unit: str = "d", **own: Any) -> dict[str, Any]:
    return {"name": "left", "type": "datetime", "dpsynth": BASIS | {"after": "arrived"} | own | {
        "unit": unit, "calendar": "hour"}}  # fmt: skip


def test_a_date_after_another_keeps_its_hour_and_its_gap() -> None:
    """A gap of whole days leaves a day of time, in which each hour comes once."""
    arrived = schema_field("arrived", "datetime", BASIS | {"calendar": ["hour"]},
                           minimum=START, maximum=END)  # fmt: skip
    schema = Schema.from_dict(document(arrived, departure(longest=9)))
    assert Schema.from_dict(schema.to_dict()) == schema
    codec, rng = Codec(schema), np.random.default_rng(5)
    assert codec.names[:4] == ("arrived", "arrived: hour", "left", "left: hour")
    first = pd.Timestamp("2023-06-01") + pd.to_timedelta(
        rng.integers(0, 400_000, 3_000), unit="min"
    )
    later = first.normalize() + pd.to_timedelta(rng.integers(1, 8, 3_000), unit="D")
    later += pd.to_timedelta(rng.choice([9, 11, 15], 3_000), unit="h")
    cells = {"arrived": first, "left": later}
    frame = pd.DataFrame({k: v.strftime("%Y-%m-%dT%H:%M:%S") for k, v in cells.items()})
    codes = codec.encode(frame)
    assert (codes[:, 3] == later.hour).all()
    back = codec.decode(codes, np.random.default_rng(0))
    assert codec.conforms(back) == []
    assert (codec.encode(back)[:, 1:] == codes[:, 1:]).all()


def test_any_drawn_hour_keeps_the_gap_within_its_bounds() -> None:
    arrived = schema_field("arrived", "datetime", BASIS, minimum=START, maximum=END)
    codes, frame, codec = drawn(Schema.from_dict(document(arrived, departure(longest=9))))
    assert codec.conforms(frame) == []
    present = frame["left"].notna().to_numpy()
    assert (codec.encode(frame)[present, 1] == codes[present, 1]).all()
    kept = (frame["left"].dt.hour == codes[:, 2])[present & (codes[:, 1] < 9) & (codes[:, 2] < 24)]
    assert kept.all() and len(kept) > 2_000  # the longest gap is one moment


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"unit": "h"}, "the hour follows from a gap in hours or less; remove it"),
        ({"calendar": ["hour", "month"]}, "an interval keeps the hour alone; declare others"),
    ],
)
def test_hours_that_an_interval_cannot_keep(own: dict[str, Any], message: str) -> None:
    arrived = schema_field("arrived", "datetime", BASIS, minimum=START, maximum=END)
    left = departure(longest=9)
    left["dpsynth"] |= own
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(document(arrived, left))
