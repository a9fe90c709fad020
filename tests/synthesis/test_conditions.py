"""Rows under a condition: the law of rows that would have been kept, however rare they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.schema import Rule, Schema
from dpsynth.synthesis import Run, Sampler, Support
from dpsynth.synthesis.conditions import MOST, Conditioned, boxes_of

from ..support.small_cohort import fitted

CONDITIONS = (
    "age >= 65 and sex == 'female'",
    "not (age < 30 or sex == 'male')",
    "age in (40, 50, 60) or 70 < age <= 75",
    "sbp > 150 implies diabetes == true",
    "60.5 > bmi and bmi != 25",
    "visit_date >= '2015-06-01' and hba1c < 6.05",
    "sbp < dbp",
)


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec(Schema.load("demo"))


@pytest.fixture(scope="module")
def rows(codec: Codec) -> tuple[np.ndarray, pd.DataFrame]:
    """Codes of all columns, drawn evenly, and their cells."""
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, size, 4000) for size in codec.sizes])
    return codes.astype(np.uint16), codec.decode(codes, rng)


@pytest.mark.parametrize("text", CONDITIONS)
def test_every_row_that_meets_a_condition_is_in_a_box(
    text: str, codec: Codec, rows: tuple[np.ndarray, pd.DataFrame]
) -> None:
    codes, frame = rows
    condition = Rule.parse(text)
    inside = np.any([box.holds(codes) for box in boxes_of(condition, codec)], axis=0)
    holds = condition.holds(frame, missing=False)
    assert holds.any() and inside[holds].all()
    if "dbp" not in text:  # codes of one value each: the boxes are the condition
        assert np.array_equal(inside, holds)


def test_boxes_that_would_be_too_many_narrow_nothing(codec: Codec) -> None:
    assert MOST < 40 * 10
    either = " or ".join(f"(age == {50 + i % 20} and sbp == {120 + i // 20})" for i in range(40))
    assert len(boxes_of(Rule.parse(either), codec)) == 40
    either = "(" + either + ") and (" + " or ".join(f"bmi == {20 + i}" for i in range(10)) + ")"
    [box] = boxes_of(Rule.parse(either), codec)
    assert not box.allowed
    assert boxes_of(Rule.parse("age > 40 and age < 30"), codec) == ()


def test_a_column_that_follows_from_several_codes_is_not_narrowed(every_type: Schema) -> None:
    field = {"name": "end", "type": "date", "dpsynth": {"after": "start", "longest": 9}}
    field["dpsynth"] |= {"bounds_basis": "protocol"}  # type: ignore[operator]
    start = {
        "name": "start",
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
        "dpsynth": {"calendar": ["weekday"], "bounds_basis": "protocol"},
    }
    facts = {"value": 900, "basis": "report"}
    document = {"fields": [start, field], "dpsynth": {"version": 1, "population": facts}}
    document["dpsynth"] |= {"rows": facts}  # type: ignore[operator]
    schema = Schema.from_dict(document)
    for text in ("start > '2020-06-01'", "end > '2020-06-01'"):
        assert [dict(box.allowed) for box in boxes_of(Rule.parse(text), Codec(schema))] == [{}]


def same_means(kept: pd.DataFrame, drawn: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Means differ by no more than five standard errors."""
    for name in columns:
        first, second = (frame[name].astype(float).dropna() for frame in (kept, drawn))
        error = np.hypot(first.sem(), second.sem())
        assert abs(first.mean() - second.mean()) < 5 * error, name


@pytest.mark.long
@pytest.mark.parametrize("text", ["age >= 65 and diabetes == true", "age < 40 or sbp > 150"])
def test_drawn_rows_have_the_law_of_kept_ones(demo_run: Run, text: str) -> None:
    everything = pd.concat(Sampler.of(demo_run, plain=True).frames(60_000, seed=1))
    kept = everything[Rule.parse(text).holds(everything, missing=False)]
    sampler = Sampler.of(demo_run, where=text, plain=True)
    assert sampler.conditioned is not None
    drawn = pd.concat(sampler.frames(6_000, seed=2))
    assert len(drawn) == 6_000 and Rule.parse(text).holds(drawn, missing=False).all()
    same_means(kept, drawn, ("age", "bmi", "sbp", "hba1c", "length_of_stay", "readmitted_30d"))
    assert sampler.share() == pytest.approx(len(kept) / len(everything), rel=0.15)


@pytest.mark.long
def test_a_row_in_two_boxes_counts_once(demo_run: Run) -> None:
    """Of women or the old, old women would be drawn twice as often as they should."""
    text = "sex == 'female' or age >= 60"
    everything = pd.concat(Sampler.of(demo_run, plain=True).frames(40_000, seed=1))
    kept = everything[Rule.parse(text).holds(everything, missing=False)]
    drawn = pd.concat(Sampler.of(demo_run, where=text, plain=True).frames(6_000, seed=2))
    both = [((f["sex"] == "female") & (f["age"] >= 60)).mean() for f in (kept, drawn)]
    assert both[0] == pytest.approx(both[1], abs=0.03)


def test_what_is_rarer_than_any_search_is_drawn_at_once(demo_run: Run) -> None:
    where = "age == 61 and 31 < bmi < 31.5 and sbp == 151 and hba1c == 6.1 and sex == 'female'"
    sampler = Sampler.of(demo_run, where=where)
    [frame] = sampler.frames(500, seed=1)
    assert len(frame) == 500 and Rule.parse(where).holds(frame, missing=False).all()
    support = Support.of(sampler, demo_run)
    assert support.share < 1e-4 and support.is_small and "knows little" in support.words
    common = Sampler.of(demo_run, where="age > 40")
    assert not Support.of(common, demo_run).is_small


def test_the_same_seed_gives_the_same_rows(demo_run: Run) -> None:
    where = "age > 70 or sbp > 160"
    first, again = (next(Sampler.of(demo_run, where=where).frames(300, seed=4)) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)


def test_a_condition_that_nothing_meets_is_refused(demo_run: Run) -> None:
    with pytest.raises(InputError, match="no row can meet both 'age > 40' and 'age < 30'"):
        Sampler.of(demo_run, where="age > 40 and age < 30")


@pytest.mark.long
@pytest.mark.parametrize("model", ["autoregressive", pytest.param("tvae", marks=pytest.mark.long)])
def test_networks_weigh_what_they_propose(model: str) -> None:
    """A condition on a late column moves the early ones as it does among kept rows."""
    run, text = fitted(model, max_rows=3), "event == true and treated == false"
    everything = pd.concat(Sampler.of(run, plain=True).frames(40_000, seed=1))
    kept = everything[Rule.parse(text).holds(everything, missing=False)]
    sampler = Sampler.of(run, where=text, plain=True)
    drawn = pd.concat(sampler.frames(4_000, seed=2))
    assert Rule.parse(text).holds(drawn, missing=False).all()
    assert abs(kept["age"].mean() - everything["age"].mean()) > 0.5, "the condition matters"
    assert drawn["age"].mean() == pytest.approx(kept["age"].mean(), abs=0.5)
    assert sampler.share() == pytest.approx(len(kept) / len(everything), rel=0.1)


def test_independent_columns_are_conditioned_in_closed_form(independent: Run) -> None:
    where = "age > 55 and treated == true"
    sampler = Sampler.of(independent, where=where, plain=True)
    assert sampler.conditioned is not None
    [frame] = sampler.frames(200, seed=1)
    assert (frame["age"] > 55).all() and frame["treated"].astype(bool).all()
    everything = pd.concat(Sampler.of(independent, plain=True).frames(40_000, seed=1))
    kept = Rule.parse(where).holds(everything, missing=False).mean()
    assert sampler.share() == pytest.approx(kept, abs=4 * (kept / 40_000) ** 0.5 + 1e-6)


def test_generators_without_conditions_leave_rows_out(opaque: Run) -> None:
    sampler = Sampler.of(opaque, where="age > 50")
    assert sampler.conditioned is None
    [frame] = sampler.frames(200, seed=1)
    assert (frame["age"] > 50).all()
    condition = Rule.parse("age > 50")
    assert Conditioned.of(sampler.generator, condition, sampler.codec) is None
