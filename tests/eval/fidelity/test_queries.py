"""Random counting queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables
from dpsynth.eval.fidelity.summary import Query, queries

from ...support.evaluation_tables import number, tables, words

FIELDS = [number("age", 0, 99), words("sex", "F", "M", required=True), words("ward", *"abcde")]
FIELDS[1]["dpsynth"]["on_unknown"] = "F"


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    ward = np.array(list("abcde"))[np.minimum(age // 20, 4)]
    return pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], rows), "ward": ward})


def test_a_query_counts_what_pandas_counts() -> None:
    compared = tables(FIELDS, people(500, 1), people(10, 2))
    allowed = {0: (np.arange(101) >= 20) & (np.arange(101) <= 60), 1: np.array([False, True])}
    rows = Query(allowed).rows(compared.source.codes)
    frame = compared.source.frame
    expected = frame.query("20 <= age <= 60 and sex == 'M'").index
    assert rows.tolist() == expected.tolist()


def test_drawn_queries_take_ranges_of_numbers_and_sets_of_categories() -> None:
    compared = tables(FIELDS, people(500, 1), people(10, 2))
    rng = np.random.default_rng(0)
    for _ in range(50):
        query = Query.draw(compared.codec, compared.source.codes, 2, rng)
        assert len(query.allowed) == 2
        for j, allowed in query.allowed.items():
            codes = np.flatnonzero(allowed)
            if j == 0:
                assert codes.tolist() == list(range(codes[0], codes[-1] + 1))
                assert not allowed[100]  # a range counts no missing value
            else:
                assert 1 <= len(codes) < len(allowed)


def test_errors_of_a_table_against_itself_and_of_a_shuffled_one() -> None:
    table = people(1000, 1)
    part = queries(
        PairedTables.of(tables(FIELDS, table, table), np.random.default_rng(0)), count=200
    )
    assert [m.estimate.value for m in part.measures] == [0, 0]
    assert set(part.details["queries"]["error_quantiles"]["synthetic"].values()) == {0}
    shuffled = table.assign(ward=table["ward"].sample(frac=1, random_state=1).to_numpy())
    compared = tables(FIELDS, table, shuffled, people(1000, 2))
    part = queries(PairedTables.of(compared, np.random.default_rng(0)), count=200)
    mean, worst = (m.estimate for m in part.measures)
    assert mean.reference is not None and mean.value > 2 * mean.reference
    assert worst.value > mean.value
    details = part.details["queries"]
    assert details["ways"] == [2, 3] and details["count"] == 200
    assert list(details["error_quantiles"]["holdout"]) == ["0.5", "0.9", "0.99", "1"]
    assert details["error_quantiles"]["synthetic"]["0.99"] == pytest.approx(worst.value, rel=1e-4)


def test_the_mean_error_by_hand() -> None:
    """Two columns of two values: every query is about half of each."""
    two = [words(name, "0", "1", required=True) for name in "xy"]
    for field in two:
        field["dpsynth"]["on_unknown"] = "0"
    same = pd.DataFrame({"x": ["0", "1"] * 50, "y": ["0", "1"] * 50})
    apart = pd.DataFrame({"x": ["0", "0", "1", "1"] * 25, "y": ["0", "1"] * 50})
    part = queries(PairedTables.of(tables(two, same, apart), np.random.default_rng(0)), count=50)
    assert part.measures[0].estimate.value == pytest.approx(0.25)  # 1/2 or 0 against 1/4
    assert part.details["queries"]["ways"] == [2]


def test_one_column_is_not_asked() -> None:
    frame = pd.DataFrame({"sex": ["F", "M"]})
    part = queries(PairedTables.of(tables(FIELDS[1:2], frame, frame), np.random.default_rng(0)))
    assert not part.measures and part.notes


def test_a_source_without_values_is_asked_too() -> None:
    empty = people(50, 1).assign(age=None)
    part = queries(
        PairedTables.of(tables(FIELDS, empty, people(50, 2)), np.random.default_rng(0)), count=40
    )
    assert 0 <= part.measures[0].estimate.value <= 1
