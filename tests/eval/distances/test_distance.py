"""Distances of mixed rows, and nearest rows: against a double loop over the cells themselves."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.eval import distances as search
from dpsynth.eval.distances import Metric, Neighbours, Points, Product, nearest

from ...support.evaluation_tables import BASIS, number, tables, words
from ...support.schema_fields import schema_field

WIDE = [f"code{i}" for i in range(40)]
DAY = datetime.date(2020, 1, 1)
FIELDS: list[dict[str, Any]] = [
    number("age", 0, 120, required=True),
    number("pressure", 60, 240),
    schema_field("day", "date", BASIS, minimum="2020-01-01", maximum="2020-12-31"),
    number("fixed", 7, 7),
    words("sex", "F", "M", required=True),
    words("ward", "a", "b", "c"),
    words("code", *WIDE),
]
RANGES = {"age": 120.0, "pressure": 180.0, "day": 365.0}


@st.composite
def rows(draw: st.DrawFn, least: int = 1, most: int = 14) -> pd.DataFrame:
    """Rows with few distinct cells, so that equal rows, ties and missing cells are common."""
    count = draw(st.integers(least, most))

    def column(cells: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(cells, min_size=count, max_size=count))

    def maybe(*cells: Any) -> st.SearchStrategy[Any]:
        return st.sampled_from((None, *cells))

    day = st.integers(0, 365).map(lambda days: DAY + datetime.timedelta(days=days))
    return pd.DataFrame(
        {
            "age": column(st.sampled_from([0, 1, 60, 119, 120])),
            "pressure": pd.array(column(maybe(60, 61, 150, 240)), dtype="Int64"),
            "day": column(st.none() | day),
            "fixed": pd.array(column(maybe(7)), dtype="Int64"),
            "sex": column(st.sampled_from("FM")),
            "ward": column(maybe("a", "b", "c")),
            "code": column(maybe(*WIDE[:4], WIDE[39])),
        }
    )


def by_hand(a: dict[str, Any], b: dict[str, Any]) -> float:
    total = 0.0
    for name in a:
        x, y = a[name], b[name]
        if pd.isna(x) or pd.isna(y):
            total += bool(pd.isna(x)) != bool(pd.isna(y))
        elif name == "day":
            total += ((x - y).days / RANGES[name]) ** 2
        elif name in RANGES:
            total += ((x - y) / RANGES[name]) ** 2
        else:
            total += x != y
    return total


def matrix_by_hand(left: pd.DataFrame, right: pd.DataFrame) -> np.ndarray:
    ones, others = (frame.astype(object).to_dict("records") for frame in (left, right))
    return np.array([[by_hand(a, b) for b in others] for a in ones])


def read(
    left: pd.DataFrame, right: pd.DataFrame, fields: list[dict[str, Any]] = FIELDS
) -> tuple[Metric, Points, Points]:
    read_tables = tables(fields, right, left)
    metric = Metric.of(read_tables.codec)
    return metric, metric.points(read_tables.synthetic), metric.points(read_tables.source)


def agrees(found: Neighbours, truth: np.ndarray, owners: np.ndarray) -> None:
    """Distances are the k least, one of each owner; each row that is named has its distance."""
    k = found.rows.shape[1]
    for query, distances in enumerate(truth):
        of_owner = sorted(min(distances[owners == owner]) for owner in np.unique(owners))
        best = (of_owner + [math.inf] * k)[:k]
        assert found.squared[query] == pytest.approx(best, abs=1e-12)
        named = [int(row) for row in found.rows[query] if row >= 0]
        assert len(named) == min(k, len(of_owner)) == len({owners[row] for row in named})
        assert distances[named] == pytest.approx(best[: len(named)], abs=1e-12)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(rows(), rows(), st.sampled_from([0, 2, 64]))
def test_pairs_and_product_are_the_distance_of_the_cells(
    left: pd.DataFrame, right: pd.DataFrame, many: int
) -> None:
    metric, a, b = read(left, right)
    truth = matrix_by_hand(left, right)
    one, other = np.indices(truth.shape).reshape(2, -1)
    assert metric.squared(a, one, b, other) == pytest.approx(truth.ravel(), abs=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MANY", many)  # codes; of columns with more, cells are compared
        product = Product.of(metric, a, b)
    assert 0 < product.error < 1e-3
    for rows_, others, block in product.blocks():
        assert np.abs(block - truth[rows_, others]).max() <= product.error


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(rows(), rows(1, 30), st.integers(1, 4), st.data())
def test_neighbours_are_the_nearest_rows_however_the_tables_are_cut(
    left: pd.DataFrame, right: pd.DataFrame, k: int, data: st.DataObject
) -> None:
    metric, a, b = read(left, right)
    truth = matrix_by_hand(left, right)
    owners = np.array(data.draw(st.lists(st.integers(0, 6), min_size=b.rows, max_size=b.rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CHUNK", data.draw(st.integers(1, 5)))
        patch.setattr(search, "MANY", data.draw(st.sampled_from([0, 2, 64])))
        patch.setattr(search, "LEFT", data.draw(st.integers(1, 8)))
        patch.setattr(search, "RIGHT", data.draw(st.integers(1, 12)))
        agrees(nearest(metric, a, b, k), truth, np.arange(b.rows))
        agrees(nearest(metric, a, b, k, owners), truth, owners)


def test_a_missing_number_is_at_distance_one_from_every_number() -> None:
    values = pd.DataFrame({"x": pd.array([0, 3, 10], dtype="Int64")})
    gap = pd.DataFrame({"x": pd.array([None], dtype="Int64")})
    metric, a, b = read(gap, values, [number("x", 0, 10)])
    neighbours = nearest(metric, a, b, 3)
    assert neighbours.squared.tolist() == [[1.0, 1.0, 1.0]]
    assert sorted(neighbours.rows[0]) == [0, 1, 2]
    assert nearest(metric, a, a).squared.tolist() == [[0.0]]


def test_fewer_rows_than_neighbours() -> None:
    one = pd.DataFrame({"x": [4]})
    metric, a, b = read(one, one, [number("x", 0, 10)])
    neighbours = nearest(metric, a, b, 3)
    assert neighbours.squared.tolist() == [[0.0, math.inf, math.inf]]
    assert neighbours.rows.tolist() == [[0, -1, -1]]


def test_equal_rows_are_neighbours_each() -> None:
    many = pd.DataFrame({"x": [5] * 300 + [6]})
    metric, a, b = read(pd.DataFrame({"x": [5, 9]}), many, [number("x", 0, 10)])
    neighbours = nearest(metric, a, b, 2)
    assert neighbours.squared[0].tolist() == [0.0, 0.0] and len(set(neighbours.rows[0])) == 2
    assert neighbours.rows[1, 0] == 300
    mine = nearest(metric, a, b, 2, np.array([1] * 300 + [2]))
    assert mine.squared[0] == pytest.approx([0, 0.01]) and mine.rows[0, 1] == 300


def test_a_table_without_numbers_is_computed_without_error() -> None:
    rng = np.random.default_rng(1)
    fields = [words(name, *WIDE[:5]) for name in "abcdef"] + [words("sex", "F", "M")]

    def drawn(count: int) -> pd.DataFrame:
        cells = {name: rng.choice(WIDE[:5], count) for name in "abcdef"}
        return pd.DataFrame(cells | {"sex": rng.choice(["F", "M"], count)})

    left, right = drawn(60), drawn(700)
    metric, a, b = read(left, right, fields)
    product = Product.of(metric, a, b)
    truth = matrix_by_hand(left, right)
    assert product.error == 0.0
    [(_, _, block)] = product.blocks()
    assert (block == truth).all()
    agrees(nearest(metric, a, b, 2), truth, np.arange(700))


def test_rows_are_told_apart_that_float32_takes_for_the_same() -> None:
    """The certificate: the product alone names the wrong row, the search never does."""
    rng = np.random.default_rng(3)
    top, width = 2**40, 12
    fields = [number("x", 0, top)] + [words(f"c{i}", "a", "b", "c") for i in range(width)]
    categories = {f"c{i}": ["a", "b", "c"] for i in range(width)}

    def drawn(numbers: np.ndarray) -> pd.DataFrame:
        cells = {name: levels[:1] * len(numbers) for name, levels in categories.items()}
        frame = pd.DataFrame({"x": numbers} | cells)
        frame.loc[0, list(categories)] = "b"  # so that there are codes to match
        return frame

    left = drawn(np.concatenate([[0], rng.integers(top // 3, top // 3 + 1000, 40)]))
    right = drawn(np.concatenate([[0], top // 3 + 2000 + rng.permutation(3000)]))
    metric, a, b = read(left, right, fields)
    apart = (left["x"].to_numpy()[:, None] - right["x"].to_numpy()[None]) / top
    truth = apart**2 + (left["c0"].to_numpy()[:, None] != right["c0"].to_numpy()[None]) * width
    [(_, _, block)] = Product.of(metric, a, b).blocks()
    assert (block.argmin(axis=1) != truth.argmin(axis=1)).mean() > 0.5
    neighbours = nearest(metric, a, b)
    assert (neighbours.rows[:, 0] == truth.argmin(axis=1)).all()
    assert neighbours.squared[:, 0] == pytest.approx(truth.min(axis=1), rel=1e-9)


def test_the_scale_is_the_schemas_and_columns_can_be_left_out() -> None:
    pair = pd.DataFrame({"x": [2, 4], "y": ["a", "b"]})
    metric, a, _ = read(pair, pair, [number("x", 0, 10), words("y", "a", "b")])
    first, second = np.array([0]), np.array([1])
    assert metric.squared(a, first, a, second) == pytest.approx([0.04 + 1])
    codec = metric.codec
    view = tables([number("x", 0, 10), words("y", "a", "b")], pair, pair).source
    slim = Metric.of(codec, skip=["y"])
    points = slim.points(view)
    assert slim.squared(points, first, points, second) == pytest.approx([0.04])


def test_a_number_outside_its_bounds_is_a_fault_of_the_caller() -> None:
    pair = pd.DataFrame({"x": [2, 4]})
    metric, a, b = read(pair, pair, [number("x", 0, 10)])
    with pytest.raises(ValueError, match="outside the declared bounds"):
        Product.of(metric, Points(a.numbers + 10, a.codes), b)
    with pytest.raises(ValueError, match="at least one neighbour"):
        nearest(metric, a, b, 0)
