"""Counting queries: against counts of cells in DataFrames."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.eval.attacks import membership
from dpsynth.eval.attacks.membership import QUERIES, WAYS, column_sets, log_ratios
from dpsynth.eval.core import Tables

from ...support.evaluation_tables import number, tables, words

FIELDS = [number("a", 0, 5), words("p", "x", "y", "z"), words("q", "u", "v"), number("b", 0, 3)]
NAMES = ["a", "p", "q", "b"]


@st.composite
def rows(draw: st.DrawFn) -> pd.DataFrame:
    cells = draw(
        st.lists(
            st.tuples(
                st.sampled_from([None, 0, 1, 5]),
                st.sampled_from([None, "x", "y", "z"]),
                st.sampled_from("uv"),
                st.integers(0, 3),
            ),
            min_size=1,
            max_size=15,
        )
    )
    return pd.DataFrame(cells, columns=NAMES).astype({"a": "Int64", "b": "Int64"})


def ratios(cohort: Tables, seed: int) -> np.ndarray:
    assert cohort.holdout is not None
    rng = np.random.default_rng(seed)
    return log_ratios(cohort.source, cohort.synthetic, cohort.holdout, cohort.codec, rng)


def shares(queries: pd.DataFrame, table: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Smoothed shares of a table's rows that have the same cells, counted in plain Python."""

    def keys(frame: pd.DataFrame) -> list[tuple[str, ...]]:
        return [tuple(map(str, row)) for row in frame[names].astype(object).itertuples(index=False)]

    counts = Counter(keys(table))
    return np.array([(counts[key] + 0.5) / (len(table) + 1) for key in keys(queries)])


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(rows(), rows(), rows(), st.integers(0, 2**32 - 1))
def test_ratios_are_of_counts_of_equal_cells(
    queries: pd.DataFrame, table: pd.DataFrame, known: pd.DataFrame, seed: int
) -> None:
    """Columns of ten codes or fewer are compared as they are; missing cells equal missing ones."""
    found = ratios(tables(FIELDS, queries, table, known), seed)
    sets = column_sets(4, np.random.default_rng(seed))
    assert found.shape == (len(queries), QUERIES)
    for place, columns in enumerate(sets[:40]):
        names = [NAMES[column] for column in columns]
        expected = np.log(shares(queries, table, names) / shares(queries, known, names))
        assert found[:, place] == pytest.approx(expected, abs=1e-12)


def test_wide_numbers_match_within_the_deciles_of_known_people() -> None:
    known = pd.DataFrame({"a": np.arange(1000)})
    table = pd.DataFrame({"a": np.full(99, 950)})
    queries = pd.DataFrame({"a": [950, 905, 995, 850, 0]})
    found = ratios(tables([number("a", 0, 999)], queries, table, known), 1)
    near, far = np.log(99.5 / 100) - np.log(100.5 / 1001), np.log(0.5 / 100) - np.log(100.5 / 1001)
    assert found[:, 0] == pytest.approx([near, near, near, far, far], abs=0.02)


def test_bins_come_from_known_people_and_not_from_those_attacked() -> None:
    rng = np.random.default_rng(1)
    known, table = (pd.DataFrame({"a": rng.integers(0, 1000, 300)}) for _ in range(2))
    queries = pd.DataFrame({"a": rng.integers(0, 1000, 40)})
    odd = pd.concat([queries, pd.DataFrame({"a": np.full(500, 3)})])
    plain = ratios(tables([number("a", 0, 999)], queries, table, known), 1)
    beside = ratios(tables([number("a", 0, 999)], odd, table, known), 1)
    assert np.array_equal(beside[:40], plain)


def test_the_same_sets_are_asked_of_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal tables, every ratio is that of equal shares: another set would give another."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "a": rng.integers(0, 6, 80),
            "p": rng.choice(list("xyz"), 80, p=[0.7, 0.2, 0.1]),
            "q": rng.choice(list("uv"), 80, p=[0.9, 0.1]),
            "b": rng.integers(0, 4, 80),
        }
    )
    asked = []
    drawn = membership.column_sets
    monkeypatch.setattr(membership, "column_sets", lambda *a: asked.append(drawn(*a)) or asked[-1])
    cohort = tables(FIELDS, table, table, table)
    assert np.array_equal(ratios(cohort, 1), np.zeros((80, QUERIES)))
    assert len(asked) == 1
    again = ratios(cohort, 1)
    assert np.array_equal(again, ratios(cohort, 1))
    assert all(np.array_equal(a, b) for a, b in zip(asked[0], asked[1], strict=True))


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_sets_have_one_to_four_different_columns(columns: int, seed: int) -> None:
    sets = column_sets(columns, np.random.default_rng(seed))
    assert len(sets) == QUERIES
    for subset in sets:
        assert 1 <= len(subset) <= min(WAYS, columns)
        assert len(set(subset.tolist())) == len(subset) and subset.tolist() == sorted(
            subset.tolist()
        )
        assert 0 <= subset.min() and subset.max() < columns
    if columns > 1:
        assert {len(subset) for subset in sets} == set(range(1, min(WAYS, columns) + 1))
        assert {int(column) for subset in sets for column in subset} == set(range(columns))


def test_a_table_of_one_column_has_one_query_again_and_again() -> None:
    known = pd.DataFrame({"q": ["u"] * 6 + ["v"] * 3})
    table = pd.DataFrame({"q": ["u"] * 3 + ["v"] * 4})
    found = ratios(tables([words("q", "u", "v")], known.head(1), table, known), 1)
    assert found == pytest.approx(np.full((1, QUERIES), np.log((3.5 / 8) / (6.5 / 10))))


def test_many_bins_in_four_columns_do_not_run_together() -> None:
    """Keys of four columns of a hundred categories: every row matches itself alone."""
    many = [f"c{i}" for i in range(99)]
    fields = [words(name, *many) for name in "abcd"]
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.permutation(many) for name in "abcd"})
    found = ratios(tables(fields, frame, frame, frame.head(50)), 4)
    expected = np.log(1.5 / 100) - np.log(np.where(np.arange(99) < 50, 1.5, 0.5) / 51)
    assert found == pytest.approx(np.repeat(expected[:, None], QUERIES, axis=1))
