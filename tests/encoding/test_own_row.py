"""Rows to gaps above other columns and back, groups of codes, and cells left empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import inspection
from dpsynth.encoding import Codec
from dpsynth.schema import Schema

from ..support.following_columns import HIGH, LOW, TOP, WHOLE, as_text, drawn, schema_of
from ..support.related_columns import BASIS
from ..support.schema_fields import schema_field

PAIR = schema_of(LOW, HIGH, rules=[{"order": "low < high"}])


def gaps(*pairs: tuple[Any, Any], schema: Schema = PAIR) -> list[Any]:
    """The coded gap of each row; None where missing."""
    cells = Codec(schema).read(pd.DataFrame(pairs, columns=["low", "high"]))[1]["high"]
    return [None if pd.isna(cell) else float(cell) for cell in cells]


def there_and_back(*pairs: tuple[Any, Any], schema: Schema = PAIR) -> list[Any]:
    codec = Codec(schema)
    codes = codec.encode(pd.DataFrame(pairs, columns=["low", "high"]))
    frame = codec.decode(codes, np.random.default_rng(1))
    return [None if pd.isna(cell) else float(cell) for cell in frame["high"]]


def test_every_drawn_row_keeps_order_group_and_condition() -> None:
    frame, codec = drawn(WHOLE), Codec(WHOLE)
    assert codec.conforms(frame) == [] and codec.conforms(as_text(frame)) == []
    both = frame["high"].notna()
    assert (frame["low"] < frame["high"])[both].all()
    assert (frame["high"] <= frame["top"])[both & frame["top"].notna()].all()
    assert frame["high"].max() == 260 and frame["top"].max() == 300  # never beyond their bounds
    allowed = (frame["sex"] == "F") & (frame["age"] < 55).fillna(False)
    assert frame["pregnant"].isna()[~allowed].all() and frame["pregnant"].notna().any()
    assert (frame["chapter"] == "other").equals(frame["diagnosis"] == "other")
    [circulatory] = frame["chapter"][frame["diagnosis"] == "I10-I1A"].unique()
    assert circulatory == "circulatory"


def test_published_rows_are_coded_as_themselves() -> None:
    frame, codec = drawn(WHOLE), Codec(WHOLE)
    codes = codec.encode(frame)
    assert (codec.encode(as_text(frame)) == codes).all()
    again = codec.decode(codes, np.random.default_rng(2))
    pd.testing.assert_frame_equal(again, frame)


def test_a_gap_counts_from_the_least_value_that_the_row_allows() -> None:
    assert gaps((80, 120), (40, 120), (80, 81), (159, 260)) == [39, 60, 0, 100]
    assert there_and_back((80, 120), (40, 120), (80, 81)) == [120, 120, 81]


def test_a_record_that_breaks_the_order_is_moved_to_the_least_value() -> None:
    assert there_and_back((120, 80), (120, 120), (120, 999), (20, 10)) == [121, 121, 260, 60]


def test_a_missing_value_says_nothing_of_the_other_column() -> None:
    nullable = {**LOW, "constraints": {"minimum": 30, "maximum": 159}}
    schema = schema_of(nullable, HIGH, rules=[{"order": "low < high"}])
    assert there_and_back(("", 62), (80, ""), ("", ""), schema=schema) == [62, None, None]


def test_a_gap_is_at_most_the_declared_one() -> None:
    schema = schema_of(LOW, HIGH, rules=[{"order": "low < high", "longest": 30}])
    assert there_and_back((80, 100), (80, 200), schema=schema) == [100, 111]


def test_bad_cells_follow_the_column() -> None:
    own = BASIS | {"on_bad": "maximum"}
    high = {**HIGH, "dpsynth": own}
    schema = schema_of(LOW, high, rules=[{"order": "low < high"}])
    assert there_and_back((80, "x"), (80, ""), schema=schema) == [260, None]
    refusing = schema_of(
        LOW, {**HIGH, "dpsynth": BASIS | {"on_bad": "refuse"}}, rules=[{"order": "low < high"}]
    )
    frame = pd.DataFrame({"low": [80, 80], "high": ["x", "90"]})
    assert Codec(refusing).accepted(frame)[1].tolist() == [False, True]


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_steps_of_any_width_keep_the_order(data: Any) -> None:
    step = st.sampled_from([0.1, 0.25, 0.5, 1, 3])
    number = st.integers(-40, 40)
    starts, widths = [data.draw(number), data.draw(number)], [data.draw(step), data.draw(step)]
    points = [data.draw(st.integers(1, 60)) for _ in range(2)]
    ends = [
        first + width * count for first, width, count in zip(starts, widths, points, strict=True)
    ]
    strict = data.draw(st.booleans())
    ends[1] = max(ends[1], ends[0] + 2 * widths[1])
    fields = [
        schema_field(name, "number", BASIS | {"step": width}, minimum=first, maximum=round(last, 6))
        for name, width, first, last in zip(("low", "high"), widths, starts, ends, strict=True)
    ]
    schema = schema_of(*fields, rules=[{"order": f"low {'<' if strict else '<='} high"}])
    frame = drawn(schema, rows=300)
    whole = frame.dropna()
    assert ((whole["low"] < whole["high"]) if strict else (whole["low"] <= whole["high"])).all()
    assert Codec(schema).conforms(frame) == []
    codes = Codec(schema).encode(frame)
    pd.testing.assert_frame_equal(Codec(schema).decode(codes, np.random.default_rng(3)), frame)


def test_a_column_above_several_is_above_each() -> None:
    first, second = ({**LOW, "name": name} for name in ("low", "mid"))
    schema = schema_of(
        first, second, HIGH, TOP, rules=[{"order": "low < high"}, {"order": "mid <= high"}]
    )
    frame = drawn(schema)
    both = frame[frame["high"].notna()]
    assert (both["low"] < both["high"]).all() and (both["mid"] <= both["high"]).all()


def test_a_cell_beside_a_false_condition_is_missing() -> None:
    frame = as_text(drawn(WHOLE, rows=50)).assign(pregnant="true")
    cells = Codec(WHOLE).read(frame)[1]
    allowed = (
        (frame["sex"] == "F") & (frame["born"].replace("", "0").astype(float) > 1965)
    ).to_numpy()
    assert cells["pregnant"].notna().tolist() == allowed.tolist()
    place = Codec(WHOLE).names.index("pregnant")
    codes = Codec(WHOLE).encode(frame)[:, place]
    assert codes.tolist() == np.where(allowed, 1, 2).tolist()
    assert Codec(WHOLE).accepted(frame)[0][:, place].tolist() == codes.tolist()


def test_the_source_need_not_have_computed_columns() -> None:
    frame = as_text(drawn(WHOLE, rows=50))
    bare = frame.drop(columns=["age", "chapter"])
    lies = frame.assign(age="7", chapter="blood")
    codes = Codec(WHOLE).encode(frame)
    assert (Codec(WHOLE).encode(bare) == codes).all()
    assert (Codec(WHOLE).encode(lies) == codes).all()


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"high": 60}, "column 'high': not above low"),
        ({"pregnant": True}, "column 'pregnant': filled in where not sex == 'F'"),
        ({"chapter": "blood"}, "column 'chapter': not the chapter of diagnosis"),
    ],
)
def test_a_table_that_breaks_a_relation_does_not_conform(
    cells: dict[str, Any], problem: str
) -> None:
    frame = drawn(WHOLE).assign(**cells)
    found = " ".join(str(one) for one in Codec(WHOLE).conforms(frame))
    assert problem in found and " rows" in found


def test_a_check_counts_cells_and_broken_orders_of_the_source() -> None:
    frame = pd.DataFrame({"low": ["80"] * 10, "high": [*["120"] * 8, "70", "999"]})
    check = inspection.check(frame.assign(patient="p"), PAIR)
    assert check.cells["high"].clipped == 0.1
    [broken] = [one for one in check.findings if one.kind == "broken"]
    assert broken.place == "low < high" and "11.1 % (1 of 9 rows)" in broken.message
