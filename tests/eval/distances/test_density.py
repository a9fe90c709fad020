"""Kernel densities: against a double loop over the cells, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.eval.distances import (
    MIN_WIDTH,
    WIDTH,
    Metric,
    Points,
    Product,
    log_density,
    nearest,
    width_among,
    width_of,
)

from ...support.evaluation_tables import number, tables, words

FIELDS = [number("a", 0, 100), number("b", 50, 60), words("p", "x", "y", "z"), words("q", "u", "v")]


@st.composite
def rows(draw: st.DrawFn, least: int = 1, most: int = 12) -> pd.DataFrame:
    some = st.lists(
        st.tuples(
            st.none() | st.sampled_from([0, 1, 50, 99, 100]),
            st.none() | st.sampled_from([50, 51, 60]),
            st.sampled_from([None, "x", "y", "z"]),
            st.sampled_from("uv"),
        ),
        min_size=least,
        max_size=most,
    )
    return frame(draw(some))


def frame(cells: list[tuple[Any, ...]]) -> pd.DataFrame:
    table = pd.DataFrame(cells, columns=list("abpq"))
    return table.astype({"a": "Int64", "b": "Int64"})


def read(queries: pd.DataFrame, table: pd.DataFrame) -> tuple[Metric, Points, Points]:
    cohort = tables(FIELDS, queries, table)
    metric = Metric.of(cohort.codec)
    return metric, metric.points(cohort.source), metric.points(cohort.synthetic)


def squared(one: dict[str, Any], other: dict[str, Any]) -> float:
    total = 0.0
    for name, a in one.items():
        b = other[name]
        if a is None or b is None:
            total += (a is None) != (b is None)
        elif name in "ab":
            total += ((a - b) / {"a": 100, "b": 10}[name]) ** 2
        else:
            total += a != b
    return total


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, with None for what is missing."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def by_hand(queries: pd.DataFrame, table: pd.DataFrame, width: float) -> list[float]:
    found = []
    others = records(table)
    for one in records(queries):
        powers = [-squared(one, other) / (2 * width**2) for other in others]
        top = max(powers)
        found.append(
            top + math.log(math.fsum(math.exp(p - top) for p in powers)) - math.log(len(powers))
        )
    return found


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(rows(), rows(), st.sampled_from([0.05, 0.2, 0.7, 3.0, 1e3]))
def test_it_is_the_log_mean_of_kernels_of_all_rows(
    queries: pd.DataFrame, table: pd.DataFrame, width: float
) -> None:
    metric, points, others = read(queries, table)
    densities = log_density(metric, points, others, width)
    assert densities == pytest.approx(by_hand(queries, table, width), abs=1e-4, rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(rows(), rows(), st.sampled_from([MIN_WIDTH, 1e6, 1e12]))
def test_the_least_width_and_huge_ones_give_finite_numbers(
    queries: pd.DataFrame, table: pd.DataFrame, width: float
) -> None:
    metric, points, others = read(queries, table)
    densities = log_density(metric, points, others, width)
    slack = Product.of(metric, points, others).error / (2 * width**2) + 1e-6
    assert np.isfinite(densities).all()
    assert densities == pytest.approx(by_hand(queries, table, width), abs=slack, rel=1e-5)


def test_blocks_of_a_long_table_are_one_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several blocks on both sides, with the densest rows in the last one."""
    rng = np.random.default_rng(1)

    def drawn(count: int, most: int) -> pd.DataFrame:
        return frame(
            [
                (*map(int, cells), "x", "u")
                for cells in zip(
                    rng.integers(0, most, count), rng.integers(50, 61, count), strict=True
                )
            ]
        )

    table = pd.concat([drawn(40, 100), drawn(60, 5)], ignore_index=True)
    queries = drawn(30, 100)
    metric, points, others = read(queries, table)
    whole = log_density(metric, points, others, 0.05)
    monkeypatch.setattr("dpsynth.eval.distances.LEFT", 7)
    monkeypatch.setattr("dpsynth.eval.distances.RIGHT", 9)
    assert len(list(Product.of(metric, points, others).blocks())) == 5 * 12
    assert log_density(metric, points, others, 0.05) == pytest.approx(whole, abs=1e-5)
    assert whole == pytest.approx(by_hand(queries, table, 0.05), abs=1e-4)


def test_one_row_that_is_a_copy_has_density_one() -> None:
    one = frame([(10, 55, "x", "u")])
    metric, points, others = read(one, one)
    for width in (MIN_WIDTH, 0.5, 1e6):
        assert log_density(metric, points, others, width) == pytest.approx([0.0], abs=1e-6)


def test_copies_count_by_their_share() -> None:
    """Two of eight rows are the query's; the others lie far off, for this width."""
    query = frame([(10, 55, "x", "u")])
    table = pd.concat([query, query, *[frame([(90, 60, "y", "v")])] * 6])
    metric, points, others = read(query, table)
    assert log_density(metric, points, others, 0.02) == pytest.approx([math.log(1 / 4)], abs=1e-3)
    wide = log_density(metric, points, others, 1e6)
    assert wide == pytest.approx([0.0], abs=1e-6)


def test_the_width_is_half_the_median_distance_of_known_people() -> None:
    known = frame([(0, 55, "x", "u"), (10, 55, "x", "u"), (70, 55, "x", "u")])
    table = frame([(0, 55, "x", "u"), (100, 55, "x", "u")])
    metric, points, others = read(known, table)  # nearest: 0, 0.1, 0.3
    assert width_of(metric, points, others) == pytest.approx(WIDTH * 0.1)


def test_the_width_of_known_people_among_themselves_is_to_another_person() -> None:
    known = frame([(0, 55, "x", "u"), (2, 55, "x", "u"), (20, 55, "x", "u"), (50, 55, "x", "u")])
    metric, points, _ = read(known, known)
    units = np.array([7, 7, 8, 9])  # nearest of others: 0.2, 0.18, 0.18, 0.3
    assert width_among(metric, points, units) == pytest.approx(WIDTH * 0.19)
    twins = points.take(np.array([0, 0, 2, 2]))
    assert width_among(metric, twins, np.array([1, 2, 3, 4])) == MIN_WIDTH
    assert width_among(metric, twins, np.array([1, 1, 3, 3])) == pytest.approx(WIDTH * 0.2)


def test_a_table_of_copies_has_the_least_width() -> None:
    table = frame([(0, 55, "x", "u"), (100, 55, "x", "u")])
    metric, points, others = read(table, table)
    assert width_of(metric, points, others) == MIN_WIDTH


def test_noise_of_single_precision_does_not_drown_the_least_width() -> None:
    """Rows of many numbers: what a copy scores beside one a step away must be far apart."""
    names = [f"n{i}" for i in range(30)]
    fields = [number(name, 0, 1000) for name in names]
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.integers(0, 999, (300, 30)), columns=names)
    cohort = tables(fields, table, table)
    metric = Metric.of(cohort.codec)
    copied = metric.points(cohort.source)
    densities = log_density(metric, copied, metric.points(cohort.synthetic), MIN_WIDTH)
    assert densities == pytest.approx(np.full(300, -math.log(300)), abs=0.05)


def far_apart(rows: int, columns: int, seed: int) -> Points:
    """Rows of many columns of two codes each, none like another: all lie about equally far."""
    codes = np.random.default_rng(seed).integers(0, 2, (rows, columns))
    return Points(np.empty((rows, 0)), codes.astype(np.uint16))


def test_the_kernel_takes_in_few_rows_of_a_wide_table() -> None:
    metric = Metric(None, (), tuple(range(40)), np.empty(0), np.empty(0))  # type: ignore[arg-type]
    table, known = far_apart(3_000, 40, 0), far_apart(200, 40, 1)
    wide = WIDTH * float(np.median(np.sqrt(nearest(metric, known, table).squared[:, 0])))
    width = width_of(metric, known, table)
    assert MIN_WIDTH < width < wide / 2
    # of a person who is in the table but for four cells, the narrow kernel sees him, the wide not
    members = table.codes[:200].copy()
    members[:, :4] = 1 - members[:, :4]
    inside = Points(np.empty((200, 0)), members)
    narrow_gap, wide_gap = (
        float(np.mean(log_density(metric, inside, table, h)))
        - float(np.mean(log_density(metric, known, table, h)))
        for h in (width, wide)
    )
    assert narrow_gap > 1 > 3 * wide_gap


def test_many_equal_rows_leave_the_width() -> None:
    known = frame([(50, 55, "x", "u")] * 3)
    metric, points, others = read(known, frame([(10, 55, "x", "u")] * 50))
    assert width_of(metric, points, others) == pytest.approx(WIDTH * 0.4)
