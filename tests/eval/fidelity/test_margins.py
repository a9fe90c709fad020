"""Columns one by one: bins, labels, shares and distances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.eval.core import PairedTables
from dpsynth.eval.fidelity.columns import MAX_BINS, OTHERS, distribution, margins, spans
from dpsynth.schema import Column, Lattice

from ...support.evaluation_tables import BASIS, number, tables, words


def test_short_numbers_keep_their_values() -> None:
    source = pd.DataFrame({"n": [1, 1, 2, 4, None]})
    shown = distribution(tables([number("n", 0, 9)], source, source.iloc[:2]), 0)
    assert shown["bins"] == ["1", "2", "3", "4"]
    assert shown["source"] == [0.5, 0.25, 0, 0.25] and shown["synthetic"] == [1, 0, 0, 0]
    assert shown["holdout"] is None
    assert shown["missing"] == {"source": 0.2, "synthetic": 0.0, "holdout": None}
    assert shown["kind"] == "numeric" and shown["type"] == "integer" and shown["unit"] is None


def test_wide_numbers_get_round_bins_and_name_no_extreme_value() -> None:
    """Values 0 to 99 twenty times: bins of five; two far ones share outer bins without bounds."""
    values = [*(list(range(100)) * 20), 873]
    source = pd.DataFrame({"n": values})
    shown = distribution(tables([number("n", 0, 1000)], source, source), 0)
    assert shown["bins"][:3] == ["0 to 4", "5 to 9", "10 to 14"]
    assert shown["bins"][-2:] == ["95 to 99", "from 100"]
    assert shown["source"][0] == pytest.approx(100 / 2001, rel=1e-5)
    low = pd.DataFrame({"n": [-873, *(list(range(100)) * 20)]})
    shown = distribution(tables([number("n", -1000, 1000)], low, low), 0)
    assert shown["bins"][:2] == ["up to -1", "0 to 4"]


def test_decimals_and_dates_are_labelled_as_they_are_declared() -> None:
    decimal = number("x", 4, 14) | {"type": "number"}
    decimal["dpsynth"] = {"bounds_basis": BASIS, "step": 0.1}
    day = number("d", 0, 0) | {"type": "date"}
    day["constraints"] = {"minimum": "2020-01-01", "maximum": "2020-12-31"}
    source = pd.DataFrame(
        {"x": np.linspace(4, 14, 101).round(1), "d": pd.date_range("2020-01-01", periods=101)}
    )
    compared = tables([decimal, day], source, source)
    assert distribution(compared, 0)["bins"][:2] == ["4.0 to 4.4", "4.5 to 4.9"]
    assert distribution(compared, 1)["bins"][1].startswith("2020-01-")


def test_the_29_commonest_of_many_categories_are_shown() -> None:
    levels = [f"c{i}" for i in range(40)]
    source = pd.DataFrame({"code": [name for i, name in enumerate(levels) for _ in range(i + 1)]})
    drawn = pd.DataFrame({"code": ["c0", "c39", "c39", "c0"]})
    shown = distribution(tables([words("code", *levels)], source, drawn), 0)
    assert shown["bins"] == [*(f"c{i}" for i in range(39, 10, -1)), OTHERS]
    assert shown["synthetic"] == [0.5, *([0] * 28), 0.5]
    assert shown["source"][-1] == pytest.approx(sum(range(1, 12)) / 820, rel=1e-5)
    assert shown["kind"] == "category"


def test_a_column_without_a_value_has_no_shares() -> None:
    empty = pd.DataFrame({"n": [None, None]})
    shown = distribution(tables([number("n", 0, 500)], empty, empty), 0)
    assert shown["source"] is None and shown["synthetic"] is None
    assert shown["missing"]["source"] == 1
    full = pd.DataFrame({"n": [3, 4]})
    shown = distribution(tables([number("n", 0, 500)], empty, full), 0)
    assert shown["source"] is None and shown["synthetic"] == [0.5, 0.5]


def test_distances_of_columns_and_their_mean() -> None:
    """Sex: 1/2 against 1/4 female; n: equal."""
    fields = [words("sex", "F", "M"), number("n", 0, 3)]
    source = pd.DataFrame({"sex": ["F", "F", "M", "M"] * 10, "n": [0, 1, 2, 3] * 10})
    drawn = pd.DataFrame({"sex": ["F", "M", "M", "M"] * 10, "n": [0, 1, 2, 3] * 10})
    compared = tables(fields, source, drawn)
    part = margins(PairedTables.of(compared, np.random.default_rng(0)))
    values = {m.key: m.estimate.value for m in part.measures}
    assert values == {"tvd1": pytest.approx(0.125), "tvd1:sex": pytest.approx(0.25), "tvd1:n": 0}
    assert part.details["columns"][0]["tvd"]["value"] == 0.25
    assert [c["name"] for c in part.details["columns"]] == ["sex", "n"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(-999, 999), st.integers(1, 5000))
def test_bins_cover_every_value_and_are_few(
    seed: int, stride: int, first: int, points: int
) -> None:
    lattice = Lattice(first, stride, points, 1)
    rng = np.random.default_rng(seed)
    tail = rng.pareto(1, 300) * points / 50
    positions = np.minimum(tail.astype(np.int64), points - 1)
    cuts, labels = spans(positions, lattice, Column("x", "number"))
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) + 1 == len(labels) <= MAX_BINS
    assert len(set(labels)) == len(labels)
    assert np.diff(cuts[:-1]).max(initial=0) == np.diff(cuts[:-1]).min(initial=10**9) or (
        len(cuts) < 3
    )
