"""Bins, groups and figures of a comparison, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import (
    Bins,
    JackknifeEstimate,
    PairedTables,
    Variants,
    absolute,
    jackknife_error,
    plain,
)
from dpsynth.eval.core.paired import GROUPS
from dpsynth.eval.fidelity.relations import half_l1, tvd

from ...support.evaluation_tables import BASIS, number, tables, words


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    group = np.where(rng.random(rows) < age / 100, "a", "b")
    return pd.DataFrame({"age": age, "group": group})


FIELDS = [number("age", 0, 99), words("group", "a", "b", "c")]


@pytest.fixture(scope="module")
def sides() -> PairedTables:
    compared = tables(FIELDS, people(500, 1), people(300, 2), people(200, 3))
    return PairedTables.of(compared, np.random.default_rng(0))


def test_compared_tables_have_equal_sizes(sides: PairedTables) -> None:
    assert sides.holdout is not None
    sizes = [side.view.rows for side in (sides.synthetic, sides.holdout, sides.chance)]
    assert sizes == [200, 200, 200] == [sides.n] * 3
    assert sides.source.view.rows == 500


def test_counts_without_a_group_are_those_of_the_other_rows(sides: PairedTables) -> None:
    side = sides.source
    keys = side.bins[1].astype(np.int64)
    counts = side.counts(keys, 4)
    assert counts.shape == (1 + GROUPS, 4)
    assert counts[0].tolist() == np.bincount(keys, minlength=4).tolist()
    for g in (0, 7, GROUPS - 1):
        rest = keys[side.seats != g]
        assert counts[1 + g].tolist() == np.bincount(rest, minlength=4).tolist()


def test_shares_are_among_the_rows_asked_for(sides: PairedTables) -> None:
    side = sides.source
    age = side.view.frame["age"].to_numpy(dtype=float)
    young, adult = age < 30, age >= 18
    shares = side.shares(young, adult)
    assert shares[0] == pytest.approx((young & adult).sum() / adult.sum())
    kept = side.seats != 3
    assert shares[4] == pytest.approx((young & adult & kept).sum() / (adult & kept).sum())
    assert np.isnan(side.shares(young, np.zeros(500, dtype=bool))).all()


def test_a_joint_distribution_gives_the_distance_of_its_tables(sides: PairedTables) -> None:
    figure = JackknifeEstimate.of(half_l1, sides.joint([0, 1]))
    assert figure is not None and sides.holdout is not None
    a, b, c = (side.bins.T for side in (sides.source, sides.synthetic, sides.holdout))
    assert figure.value == pytest.approx(tvd(a, b, [0, 1]))
    assert figure.reference == pytest.approx(tvd(a, c, [0, 1]))
    without = [tvd(a[sides.source.seats != g], b, [0, 1]) for g in range(GROUPS)]
    np.testing.assert_allclose(figure.without[0], without)
    other = [tvd(a, b[sides.synthetic.seats != g], [0, 1]) for g in range(GROUPS)]
    np.testing.assert_allclose(figure.without[1], other)
    error = np.hypot(jackknife_error(without), jackknife_error(other))
    estimate = figure.estimate(200)
    assert estimate.high is not None
    assert estimate.high == pytest.approx(figure.value + 1.96 * error, rel=1e-3)


def test_cells_that_never_occur_change_nothing(sides: PairedTables) -> None:
    """More cells than are counted one by one: only those that occur are kept."""
    keys = [side.bins[0].astype(np.int64) for side in sides.every]
    few = JackknifeEstimate.of(half_l1, sides.histograms(keys, 11))
    many = JackknifeEstimate.of(half_l1, sides.histograms([key * 1_000_003 for key in keys], 2**40))
    assert few is not None and many is not None
    assert few.value == pytest.approx(many.value)
    np.testing.assert_allclose(few.without[0], many.without[0])


def test_groups_are_whole_units() -> None:
    unit = {"name": "who", "type": "string", "dpsynth": {"role": "unit"}}
    rows = pd.DataFrame({"who": [str(i // 5) for i in range(200)], "age": range(200)})
    bound = {"max_rows": {"value": 5, "basis": BASIS}}
    compared = tables([unit, number("age", 0, 300)], rows, rows, **bound)
    side = PairedTables.of(compared, np.random.default_rng(0)).source
    assert side.groups == GROUPS
    for unit_rows in np.split(side.seats, 40):
        assert len(set(unit_rows)) == 1


def test_one_row_has_no_groups_and_no_interval() -> None:
    pairs = PairedTables.of(tables(FIELDS, people(50, 1), people(1, 2)), np.random.default_rng(0))
    assert pairs.synthetic.groups == 0
    figure = JackknifeEstimate.of(half_l1, pairs.joint([0]))
    assert figure is not None
    estimate = figure.estimate(1)
    assert estimate.low is None and estimate.n == 1 and estimate.reference is None


def test_a_figure_by_hand() -> None:
    source = np.array([0.5, 0.4, 0.6])
    synthetic = np.array([0.2, 0.1, 0.3])
    figure = JackknifeEstimate.of(
        absolute, Variants(source, synthetic, np.array([0.6]), np.array([0.45]))
    )
    assert figure is not None
    assert figure.value == pytest.approx(0.3)
    assert figure.reference == pytest.approx(0.1) and figure.chance == pytest.approx(0.05)
    np.testing.assert_allclose(figure.without[0], [0.2, 0.4])
    np.testing.assert_allclose(figure.without[1], [0.4, 0.2])
    other = JackknifeEstimate(0.1, None, 0.15, (np.array([0.0, 0.2]), np.array([0.1, 0.1])))
    mean = JackknifeEstimate.mean([figure, other])
    assert mean.value == pytest.approx(0.2) and mean.chance == pytest.approx(0.1)
    assert mean.reference == pytest.approx(0.1)
    np.testing.assert_allclose(mean.without[0], [0.1, 0.3])


def test_a_figure_that_cannot_be_computed_is_none() -> None:
    gap = np.array([np.nan, np.nan])
    assert JackknifeEstimate.of(absolute, Variants(np.ones(2), gap, None, np.ones(1))) is None
    assert JackknifeEstimate.of(absolute, Variants(gap, np.ones(2), None, np.ones(1))) is None


def test_the_interval_holds_the_value_in_nineteen_of_twenty() -> None:
    """A share of 0.3 against one of 0.5: the distance is 0.2, and 400 rows tell it to 0.03."""
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, b = (
            pd.DataFrame({"group": np.where(rng.random(400) < share, "a", "b")})
            for share in (0.3, 0.5)
        )
        pairs = PairedTables.of(tables([words("group", "a", "b")], a, b), rng)
        figure = JackknifeEstimate.of(half_l1, pairs.joint([0]))
        assert figure is not None
        estimate = figure.estimate(400)
        assert estimate.low is not None and estimate.high is not None
        hits += estimate.low <= 0.2 <= estimate.high
    assert 51 <= hits  # binomial with share 0.95: below with probability 0.003


def test_bins_of_a_column_without_a_value_tell_present_from_missing() -> None:
    empty = pd.DataFrame({"age": [None] * 5, "group": ["a"] * 5})
    compared = tables(FIELDS, empty, people(20, 1))
    bins = Bins.of(compared.source.codes, compared.codec)
    assert set(bins.cut(compared.source.codes)[0]) == {1}
    assert set(bins.cut(compared.synthetic.codes)[0]) == {0}


def test_rare_categories_share_a_bin_and_missing_never_does() -> None:
    levels = [f"c{i}" for i in range(150)]
    column = [name for i, name in enumerate(levels) for _ in range(150 - i)]
    source = pd.DataFrame({"code": [*column, None]})
    compared = tables([words("code", *levels)], source, source)
    bins = Bins.of(compared.source.codes, compared.codec)
    cut = bins.cut(np.arange(151)[:, None])[0]
    assert bins.sizes == (100,)
    assert len(set(cut[:98])) == 98  # the commonest
    assert set(cut[98:150]) == {99}
    assert cut[150] not in cut[:150]


def test_plain_numbers_are_json() -> None:
    assert plain([1 / 3, np.nan, [np.inf, np.float64(2)]]) == [0.333333, None, [None, 2.0]]
    assert plain(np.array([[1.0]])) == [[1.0]] and plain(None) is None
    assert type(plain(np.float64(2))) is float
