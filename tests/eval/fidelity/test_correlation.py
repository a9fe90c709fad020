"""Rank correlations, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from dpsynth.eval.core import PairedTables, PartResult
from dpsynth.eval.core.scores import order_of, spearman
from dpsynth.eval.fidelity.relations import correlation

from ...support.evaluation_tables import number, tables

XY = [number("x", 0, 99), number("y", 0, 99)]


def compared(source: pd.DataFrame, synthetic: pd.DataFrame, *more: pd.DataFrame) -> PartResult:
    rng = np.random.default_rng(0)
    return correlation(PairedTables.of(tables(XY, source, synthetic, *more), rng))


def related(rows: int, seed: int, share: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100, rows)
    y = np.where(rng.random(rows) < share, x, rng.integers(0, 100, rows))
    return pd.DataFrame({"x": x, "y": y}).astype("Int64")


def test_spearman_is_that_of_scipy_with_ties_and_gaps() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 6, (3, 200)) + rng.integers(0, 3, 200) * 1.0
    values[0, :40] = np.nan
    values[2, 20:90] = np.nan
    correlations = spearman(np.stack([order_of(column) for column in values]))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = ~np.isnan(values[i]) & ~np.isnan(values[j])
        expected = spearmanr(values[i][both], values[j][both]).statistic
        assert correlations[i, j] == correlations[j, i] == pytest.approx(expected)
    assert np.isnan(np.diag(correlations)).all()


def test_a_reversed_column_is_two_away() -> None:
    up = pd.DataFrame({"x": range(50), "y": range(50)})
    part = compared(up, up.assign(y=99 - up["y"]))
    assert part.measures[0].estimate.value == pytest.approx(2)
    assert part.details["pairs"]["correlation"]["source"] == [[None, 1.0], [1.0, None]]
    assert part.details["pairs"]["correlation"]["synthetic"][0][1] == -1


def test_a_table_against_itself_is_0_and_a_shuffle_loses_the_correlation() -> None:
    table = related(600, 1, 0.7)
    assert compared(table, table).measures[0].estimate.value == 0
    shuffled = table.assign(y=table["y"].sample(frac=1, random_state=1).to_numpy())
    estimate = compared(table, shuffled, related(600, 2, 0.7)).measures[0].estimate
    assert estimate.value > 0.5
    assert estimate.reference is not None and estimate.reference < 0.1
    assert estimate.low is not None and estimate.low > 0.4


@pytest.mark.parametrize("rows", [400, 21_000])
def test_the_interval_has_the_width_that_simulation_gives(rows: int) -> None:
    """Also where it comes from a part of the rows, scaled."""
    values, widths = [], []
    for seed in range(8):
        part = compared(related(rows, 2 * seed, 0.7), related(rows, 2 * seed + 1, 0.2))
        estimate = part.measures[0].estimate
        assert estimate.low is not None and estimate.high is not None
        values.append(estimate.value)
        widths.append((estimate.high - estimate.low) / 2 / 1.96)
    assert np.std(values, ddof=1) == pytest.approx(np.mean(widths), rel=0.7)


def test_a_column_that_became_constant_counts_as_no_correlation() -> None:
    up = pd.DataFrame({"x": range(50), "y": range(50)})
    part = compared(up, up.assign(y=7))
    assert part.measures[0].estimate.value == pytest.approx(1)
    assert part.details["pairs"]["correlation"]["synthetic"][0][1] is None


def test_what_has_no_correlation_in_the_source_is_left_out() -> None:
    up = pd.DataFrame({"x": range(50), "y": [3] * 50})
    part = compared(up, pd.DataFrame({"x": range(50), "y": range(50)}))
    assert not part.measures and len(part.notes) == 1
    empty = up.assign(y=None)
    assert not compared(empty, up).measures
