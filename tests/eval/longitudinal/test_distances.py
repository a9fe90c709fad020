"""Each figure sees its own kind of error, beside references that are computed the same way."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.eval.core import Estimate
from dpsynth.eval.longitudinal.cohort import Compared
from dpsynth.eval.longitudinal.persons import group_means, persons
from dpsynth.eval.longitudinal.rows import broken, courses, row_values
from dpsynth.eval.longitudinal.survival import survival
from dpsynth.eval.longitudinal.timing import timing

from ...support.history_cohorts import codec, cohort, shuffled_between, shuffled_within, with_rows

CODEC = codec()
TRAIN, HOLDOUT = cohort(seed=1), cohort(seed=2)


def figures(synthetic: Histories, train: Histories = TRAIN, holdout: Any = HOLDOUT) -> Any:
    """All distances of a cohort."""
    compared = Compared.of(CODEC, synthetic, train, holdout, np.random.default_rng(0))
    parts = [
        timing(compared),
        row_values(compared, np.random.default_rng(1)),
        courses(compared),
        persons(compared, np.random.default_rng(2)),
        group_means(compared),
        survival(compared),
        broken(compared),
    ]
    return {one.key: one.estimate for part in parts for one in part.measures}


@cache
def fresh() -> dict[str, Estimate]:
    """The figures of a cohort of the same law."""
    return dict(figures(cohort(seed=3)))


def flagged(found: dict[str, Estimate]) -> set[str]:
    """The figures that are clearly farther than both references."""
    return {
        key
        for key, one in found.items()
        if one.reference is not None
        and one.chance is not None
        and one.value > 1.7 * max(one.reference, one.chance)
        and (one.low or 0.0) > max(one.reference, one.chance)
    }


def test_the_same_cohort_is_nowhere_apart() -> None:
    found = figures(TRAIN, TRAIN, None)
    assert set(found) >= {"rows_per_patient", "gaps", "transitions", "event_curves", "within_icc"}
    assert max(one.value for one in found.values()) < 1e-12


def test_a_cohort_of_the_same_law_is_as_near_as_other_patients() -> None:
    assert not [key for key in flagged(fresh()) if ":" not in key]


BROKEN_TWINS: dict[str, tuple[Any, set[str], set[str]]] = {
    "more rows": (
        lambda: cohort(seed=3, rows=8.0),
        {"rows_per_patient", "rows_per_patient:labs hdl"},
        {"row_values", "within_icc", "baseline1", "baseline2", "event_curves"},
    ),
    "shorter gaps": (
        lambda: cohort(seed=3, pace=60.0),
        {"gaps", "gaps:labs hdl"},
        {"rows_per_patient", "row_values", "within_icc", "event_curves", "baseline2"},
    ),
    "values of other patients": (
        lambda: shuffled_between(cohort(seed=3)),
        {"transitions", "within_lag", "within_icc", "row_means_by_group"},
        {"rows_per_patient", "gaps", "row_values", "baseline1", "baseline2", "event_curves"},
    ),
    "values that do not stay": (
        lambda: cohort(seed=3, steady=0.1, serial=0.0),
        {"within_icc", "within_lag", "transitions", "transitions:labs hdl"},
        {"rows_per_patient", "gaps", "baseline2", "event_curves"},
    ),
    "no difference of sexes": (
        lambda: cohort(seed=3, sex_effect=0.0),
        {"row_means_by_group:sex", "baseline_rows:sex"},
        {"rows_per_patient", "gaps", "baseline2", "event_curves"},
    ),
    "twice the hazard": (
        lambda: cohort(seed=3, hazard=2.0),
        {"event_curves", "event_rates", "event_curves:mi", "baseline1", "baseline2"},
        {"rows_per_patient", "row_values", "within_icc"},
    ),
}


@pytest.mark.parametrize("twin", BROKEN_TWINS)
def test_a_broken_twin_is_seen_where_it_is_broken(twin: str) -> None:
    draw, bad, good = BROKEN_TWINS[twin]
    found = flagged(figures(draw()))
    assert not bad - found
    assert not good & found


def test_the_order_of_visits_is_seen_in_what_follows_what_alone() -> None:
    train, holdout, drawn = (cohort(600, s, rows=15.0, steady=0.0, serial=0.9) for s in (1, 2, 3))
    found = flagged(figures(shuffled_within(drawn), train, holdout))
    assert not {"transitions:labs hdl", "within_lag:labs hdl"} - found
    others = {
        "rows_per_patient",
        "gaps",
        "row_values",
        "within_icc",
        "baseline_rows",
        "event_rates",
    }
    assert not (others | {"row_means_by_group"}) & found
    same = flagged(figures(drawn, train, holdout))
    assert not {"transitions:labs hdl", "within_lag:labs hdl"} & same


def test_values_of_days_are_seen_in_pairs() -> None:
    drawn = cohort(seed=3)
    rows = drawn.rows[0][0]
    later = np.where(rows.days > 0, np.minimum(rows.values[:, 0] + 15, 59), rows.values[:, 0])
    changed = with_rows(
        drawn, 0, 0, SeriesRows(rows.patients, rows.days, later[:, None].astype(np.uint16))
    )
    found = figures(changed)
    assert {"row_values", "row_pairs"} <= flagged(found)


def test_values_that_follow_an_event_are_seen() -> None:
    drawn = cohort(seed=3)
    rows = drawn.rows[0][0]
    onset = drawn.onsets[rows.patients, 0]
    had = (onset != np.iinfo(np.int64).min) & (onset <= rows.days)
    values = np.where(had, np.minimum(rows.values[:, 0] + 25, 59), rows.values[:, 0])
    series = SeriesRows(rows.patients, rows.days, values[:, None].astype(np.uint16))
    found = figures(with_rows(drawn, 0, 0, series))
    assert found["event_rows"].value > 1.8 * fresh()["event_rows"].value


def test_rows_that_cannot_be_are_counted_by_patient() -> None:
    drawn = cohort(seed=3)
    rows = drawn.rows[0][0]
    days = rows.days.copy()
    first = np.unique(rows.patients, return_index=True)[1]
    days[first[:30]] = drawn.ends[rows.patients[first[:30]]] + 1
    late = with_rows(drawn, 0, 0, SeriesRows(rows.patients, days, rows.values))
    share = figures(late)["broken_histories"]
    assert share.value == pytest.approx(30 / 1500) and share.low is not None and share.low > 0
    assert (share.reference, share.chance) == (0.0, 0.0)
    assert fresh()["broken_histories"].value == 0.0


def test_a_cohort_without_rows_is_as_far_as_can_be() -> None:
    drawn = cohort(seed=3)
    nothing = drawn
    for table, place in ((0, 0), (0, 1), (1, 0)):
        width = drawn.rows[table][place].values.shape[1]
        none = np.zeros(0, dtype=np.int64)
        empty = SeriesRows(none, none, np.zeros((0, width), dtype=np.uint16))
        nothing = with_rows(nothing, table, place, empty)
    found = figures(nothing)
    for key in ("gaps", "transitions", "row_values", "row_pairs", "baseline_rows", "event_rows"):
        assert found[key].value == pytest.approx(1.0), key
    assert found["within_icc"].value > 0.2
    assert found["baseline1"].value == fresh()["baseline1"].value


def test_a_table_without_rows_is_left_out_and_said() -> None:
    compared = Compared.of(CODEC, cohort(seed=3), TRAIN, None, np.random.default_rng(0))
    found = row_values(compared, np.random.default_rng(0))
    assert any("scans has no rows" in note for note in found.notes)
    assert not any("scans" in one.key for one in found.measures)


def test_all_are_compared_at_equal_sizes() -> None:
    small = cohort(200, seed=4)
    found = figures(cohort(seed=3), TRAIN, small)
    assert {one.n for one in found.values()} == {200}
    one = found["row_values"]  # so that a small holdout makes no cohort look worse than it
    assert one.reference is not None and one.value < 1.6 * one.reference
