"""Distances between tables, each against a number worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.fidelity import coarse, decile_edges, mean_tvd, tvd
from dpsynth.eval.overview import overview
from dpsynth.schema import Schema


def table(*columns: list[int]) -> np.ndarray:
    return np.column_stack(columns).astype(np.uint16)


def test_tvd_of_one_column_by_hand() -> None:
    a = table([0, 0, 1, 2])  # 1/2, 1/4, 1/4, 0
    b = table([0, 1, 1, 3])  # 1/4, 1/2, 0, 1/4
    assert tvd(a, b, [0]) == pytest.approx((1 / 4 + 1 / 4 + 1 / 4 + 1 / 4) / 2)


def test_tvd_of_tables_of_different_length() -> None:
    a = table([0, 1])  # 1/2, 1/2
    b = table([0, 0, 0, 1, 1])  # 3/5, 2/5
    assert tvd(a, b, [0]) == pytest.approx(0.1)


def test_tvd_sees_a_relation_that_no_column_shows() -> None:
    a = table([0, 0, 1, 1], [0, 0, 1, 1])
    b = table([0, 0, 1, 1], [0, 1, 0, 1])
    assert tvd(a, b, [0]) == tvd(a, b, [1]) == 0
    assert tvd(a, b, [0, 1]) == pytest.approx((1 / 4 + 1 / 4 + 1 / 4 + 1 / 4) / 2)


def test_tvd_takes_pairs_apart_whatever_their_codes() -> None:
    """(0, 12) and (1, 2) must not fall together."""
    assert tvd(table([0], [12]), table([1], [2]), [0, 1]) == 1
    assert tvd(table([0], [300]), table([300], [0]), [0, 1]) == 1


def test_tvd_is_symmetric_and_between_0_and_1() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 5, (50, 3)), rng.integers(0, 6, (70, 3))
    assert tvd(a, a, [0, 1, 2]) == 0
    assert tvd(a, b, [0, 1]) == pytest.approx(tvd(b, a, [0, 1]))
    assert 0 < tvd(a, b, [0]) <= tvd(a, b, [0, 1]) <= tvd(a, b, [0, 1, 2]) <= 1
    assert tvd(table([1, 1]), table([2]), [0]) == 1


def test_mean_tvd_takes_every_set_of_columns_once() -> None:
    a = table([0, 0, 1, 1], [0, 0, 1, 1], [7, 7, 7, 7])
    b = table([0, 0, 1, 1], [0, 1, 0, 1], [8, 8, 8, 8])
    assert mean_tvd(a, b, 1) == pytest.approx((0 + 0 + 1) / 3)
    assert mean_tvd(a, b, 2) == pytest.approx((0.5 + 1 + 1) / 3)
    assert mean_tvd(a, b, 3) == 1


def test_deciles_by_hand() -> None:
    """Cells 0 to 99, each once: the k-th decile lies at 9.9 k; 100 is the code of missing."""
    codes = table([*range(100), 100])
    (edges,) = decile_edges(codes, [100])
    assert edges is not None
    assert edges.tolist() == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]
    bins = coarse(codes, [edges])[:, 0]
    assert np.bincount(bins).tolist() == [10] * 10 + [1]
    assert bins[-1] == 10  # missing stands alone


def test_heaped_values_give_fewer_bins() -> None:
    codes = table([5] * 90 + [11] * 10)
    (edges,) = decile_edges(codes, [12])
    assert edges is not None
    assert coarse(codes, [edges])[:, 0].tolist() == [0] * 90 + [1] * 10


def test_missing_stands_alone_even_beside_the_last_cell() -> None:
    codes = table([19] * 50 + [20] * 50)  # 20 cells; 20 is missing
    edges = decile_edges(codes, [20])
    bins = coarse(codes, edges)[:, 0]
    assert len(set(bins[:50])) == 1 and len(set(bins[50:])) == 1 and bins[0] != bins[-1]


def test_columns_that_are_short_or_have_no_order_are_left_alone() -> None:
    codes = table([0, 3, 9], [40, 2, 7])
    assert decile_edges(codes, [10, 0]) == [None, None]
    np.testing.assert_array_equal(coarse(codes, [None, None]), codes)


def test_a_column_without_a_value_is_left_alone() -> None:
    assert decile_edges(table([30, 30]), [30]) == [None]


def test_the_cuts_are_those_of_the_reference() -> None:
    """A table is cut where the reference is, so that both use one set of bins."""
    (edges,) = decile_edges(table([*range(100)]), [100])
    assert edges is not None
    assert coarse(table([0, 50, 99]), [edges])[:, 0].tolist() == [0, 5, 9]


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    """Two columns that always agree, 1000 rows."""
    rng = np.random.default_rng(2)
    sex = rng.choice(["F", "M"], 1000)
    return pd.DataFrame({"sex": sex, "title": np.where(sex == "F", "Mrs", "Mr")})


@pytest.fixture(scope="module")
def schema() -> Schema:
    number = {"value": 1000, "basis": "made for this test"}
    words = {"sex": ["F", "M"], "title": ["Mrs", "Mr"]}
    return Schema.from_dict(
        {
            "fields": [
                {
                    "name": name,
                    "type": "string",
                    "constraints": {"enum": words[name], "required": True},
                    "dpsynth": {"bounds_basis": "made for this test"},
                }
                for name in words
            ],
            "dpsynth": {"version": 1, "population": number, "rows": number},
        }
    )


def test_overview_of_the_table_itself(pairs: pd.DataFrame, schema: Schema) -> None:
    """Half of each pair is broken up by the shuffle; a bootstrap of 1000 moves a share by .016."""
    one_way, two_way = overview(schema, pairs, pairs).values()
    assert one_way.value == two_way.value == 0
    assert one_way.ceiling == 0  # shuffling keeps each column
    assert two_way.ceiling == pytest.approx(0.5, abs=0.05)
    assert 0 < one_way.floor < 0.05 and 0 < two_way.floor < 0.05


def test_overview_sees_what_a_shuffle_breaks(pairs: pd.DataFrame, schema: Schema) -> None:
    shuffled = pairs.assign(title=pairs["title"].sample(frac=1, random_state=3).to_numpy())
    one_way, two_way = overview(schema, pairs, shuffled).values()
    assert one_way.value == 0
    assert two_way.value == pytest.approx(two_way.ceiling, abs=0.05)
    assert two_way.value > 0.4


def test_overview_of_tables_of_different_length(pairs: pd.DataFrame, schema: Schema) -> None:
    """All the women: the column is off by the share of men, counted by hand."""
    women = pairs[pairs["sex"] == "F"]
    one_way, two_way = overview(schema, pairs, women).values()
    assert one_way.value == pytest.approx((pairs["sex"] == "M").mean())
    assert two_way.value == pytest.approx((pairs["sex"] == "M").mean())
