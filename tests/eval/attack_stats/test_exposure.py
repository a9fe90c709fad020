"""Exposed groups: by hand, and without a look at who is in the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import ExposureGroup, People, groups_of, together
from dpsynth.eval.attack_stats.people import EXPOSED_SHARE, MIN_GROUP
from dpsynth.eval.core import Tables
from dpsynth.eval.distances import Metric

from ...support.evaluation_tables import number, tables, words

UNIT = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
FIELDS = [UNIT, number("a", 0, 1000), words("p", "x", "y", "z")]
ROWS = {"max_rows": {"value": 50, "basis": "made for this test"}}


def people(cells: dict[str, Any], prefix: str = "u", rows: list[int] | None = None) -> pd.DataFrame:
    """One row each, or so many."""
    frame = pd.DataFrame(cells)
    frame["unit"] = [f"{prefix}{i}" for i in range(len(frame))]
    return frame if rows is None else frame.loc[np.repeat(np.arange(len(frame)), rows)]


def read(players: pd.DataFrame, reference: pd.DataFrame) -> Tables:
    return tables(FIELDS, players, players.drop(columns="unit").head(3), reference, **ROWS)


def grouped(players: pd.DataFrame, reference: pd.DataFrame) -> dict[str, ExposureGroup]:
    cohort = read(players, reference)
    assert cohort.holdout is not None
    metric = Metric.of(cohort.codec)
    groups = groups_of(cohort.source, cohort.holdout, cohort.codec, metric)
    assert groups[0].key == "everyone" and groups[0].belongs.all()
    assert all(group.belongs.dtype == bool and group.title for group in groups)
    return {group.key: group for group in groups}


COMMON = people({"a": [500] * 100, "p": ["x"] * 97 + ["y"] * 2 + ["z"]}, "r")


def test_people_far_from_the_reference_are_the_outliers() -> None:
    a = [500 + i for i in range(300)]
    groups = grouped(people({"a": a, "p": ["x"] * 300}), COMMON)
    assert np.flatnonzero(groups["outliers"].belongs).tolist() == list(range(270, 300))


def test_people_with_rare_values_are_found_by_the_rarest_of_them() -> None:
    """All values of a number are as common; what is rare is a category."""
    p = ["x"] * 250 + ["y"] * 28 + ["z"] * 22
    groups = grouped(people({"a": [500] * 300, "p": p}), COMMON)
    assert np.flatnonzero(groups["rare"].belongs).tolist() == list(range(278, 300))


def test_people_with_most_rows_are_those_with_most_visits() -> None:
    rows = [1 + i // 30 for i in range(300)]
    groups = grouped(people({"a": [500] * 300, "p": ["x"] * 300}, rows=rows), COMMON)
    assert np.flatnonzero(groups["visits"].belongs).tolist() == list(range(270, 300))


def test_ties_at_the_cut_belong_where_else_too_few_would() -> None:
    rows = [1] * 250 + [2] * 45 + [3] * 5
    groups = grouped(people({"a": [500] * 300, "p": ["x"] * 300}, rows=rows), COMMON)
    assert np.flatnonzero(groups["visits"].belongs).tolist() == list(range(250, 300))


def test_a_figure_is_the_mean_over_a_persons_rows() -> None:
    """One far row of two makes less of an outlier than two rows not quite so far."""
    a = [500] * 200 + [700, 700] * 25 + [500, 800] * 25
    frame = pd.DataFrame({"a": a, "p": "x"})
    frame["unit"] = [f"u{i}" for i in range(200)] + [f"w{i // 2}" for i in range(100)]
    groups = grouped(frame, COMMON)
    assert np.flatnonzero(groups["outliers"].belongs).tolist() == list(range(200, 225))


def test_groups_that_are_everybody_or_too_few_are_left_out() -> None:
    same = people({"a": [500] * 300, "p": ["x"] * 300})
    assert list(grouped(same, COMMON)) == ["everyone"]  # no rows, no distance, no value apart
    few = people({"a": range(400, 550), "p": ["x"] * 150}, rows=[1] * 145 + [2] * 5)
    assert EXPOSED_SHARE * 150 < MIN_GROUP
    assert "outliers" not in grouped(few, COMMON) and "visits" not in grouped(few, COMMON)
    alike = people({"a": [500] * 300, "p": ["x"] * 300}, rows=[2] * 300)
    assert "visits" not in grouped(alike, COMMON)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_is_in_the_data_plays_no_part(seed: int) -> None:
    """Members and non-members change places: everybody stays in the same groups."""
    rng = np.random.default_rng(seed)

    def drawn(prefix: str) -> pd.DataFrame:
        cells = {"a": rng.integers(0, 1001, 400), "p": rng.choice(list("xyz"), 400)}
        return people(cells, prefix, rng.integers(1, 4, 400).tolist())

    cohort = read(drawn("s"), drawn("h"))
    dealt = People.of(cohort, np.random.default_rng(seed))
    swapped = People(dealt.non_members, dealt.members, dealt.reference, dealt.fresh, dealt.others)
    metric = Metric.of(cohort.codec)
    groupings = []
    for one in (dealt, swapped):
        players = together(one.members, one.non_members)
        units = np.unique(players.units)
        groups = groups_of(players, one.reference, cohort.codec, metric)
        groupings.append({g.key: units[g.belongs].tolist() for g in groups})
    assert groupings[0] == groupings[1] and set(groupings[0]) == {
        "everyone",
        "outliers",
        "rare",
        "visits",
    }


def test_the_order_of_rows_plays_no_part() -> None:
    rng = np.random.default_rng(4)
    players = people({"a": rng.integers(0, 1001, 300), "p": rng.choice(list("xyz"), 300)})
    cohort = read(players, COMMON)
    assert cohort.holdout is not None
    metric = Metric.of(cohort.codec)
    shuffled = cohort.source.take(rng.permutation(cohort.source.rows))
    one, other = (
        groups_of(v, cohort.holdout, cohort.codec, metric) for v in (cohort.source, shuffled)
    )
    assert [g.belongs.tolist() for g in one] == [g.belongs.tolist() for g in other]
