"""Grains of numbers: what noisy counts say of them, and that rows follow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding.grain import GrainedCoder
from dpsynth.models import Domain, Feature, shares_of
from dpsynth.models.grain_settings import GRAINS, SHARE, measured, with_grains
from dpsynth.models.marginals import GrainCounts, MergedBins, cell_of, followed, points_of
from dpsynth.models.registry import NAMES
from dpsynth.privacy import JointHistograms, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema
from dpsynth.synthesis import Sampler

from ..support.quick_fit import quick_fit

BUDGET = PrivacyBudget(3.0, 1e-6)
TENTHS = tuple((int(c % 10 == 0), int(c % 10 == 5), int(c % 5 > 0)) for c in range(1001))
WIDE = Feature("pulse", 1002, 1001, (1,) * 1001, grains=TENTHS)
DOMAIN = Domain((WIDE,), population=1000, max_rows=1)
NO_HEAPS = [np.zeros(1001)]  # counts of codes, none of which stands out


def counts(*numbers: float, sigma: float = 10.0) -> GrainCounts:
    return GrainCounts((np.array(numbers, dtype=float),), sigma, 1.0)


def test_all_whole_values_leave_no_others() -> None:
    weights = counts(1010, -12, 17).weights(DOMAIN)[0]
    assert weights[1:3].tolist() == [0.0, 0.0]
    assert weights[0] == pytest.approx(1001 / 101)


def test_values_without_a_habit_stay_as_they_are() -> None:
    assert counts(108, 90, 805).weights(DOMAIN)[0].tolist() == pytest.approx([1.0] * 8)
    assert counts(0, 0, 0).weights(DOMAIN)[0].tolist() == pytest.approx([1.0] * 8)
    assert points_of(DOMAIN, None) is None


def test_shares_are_those_that_were_counted() -> None:
    found = counts(500, 300, 200)
    [points] = points_of(DOMAIN, found) or [None]
    assert points is not None
    shares = np.bincount(cell_of(WIDE)[:1001], weights=points) / points.sum()
    assert shares.tolist() == pytest.approx([0.5, 0.3, 0.2])


def test_noise_does_not_make_a_grain() -> None:
    """A grain within the noise is empty if the others show a habit, and even if they show none."""
    weights = counts(900, 20, -10, sigma=10.0).weights(DOMAIN)[0]
    assert weights[1] == 0.0 and weights[2] == 0.0
    assert counts(40, 20, 30, sigma=30.0).weights(DOMAIN)[0].tolist() == pytest.approx([1.0] * 8)


def test_codes_without_a_grain_have_a_cell_of_their_own() -> None:
    wide = Feature("x", 6, 4, (1, 1, 3, 1), grains=((0, 0), (1, 0), (1, 2), (0, 1)))
    assert cell_of(wide).tolist() == [2, 0, 2, 1, 2, 2]  # a bound; whole; both; tenth; missing


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_bins_stay_and_grains_follow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(1002))
    bins = np.append(np.arange(1001) // 50, 21)
    column = MergedBins(bins.astype(np.uint16), shares)
    [found] = followed([column], DOMAIN, counts(6000, 1500, 2500), NO_HEAPS, 10.0)
    assert found.bin_shares == pytest.approx(column.bin_shares)
    assert found.shares[1001] == shares[1001]  # missing has a bin of its own
    cells = cell_of(WIDE)
    assert np.bincount(cells[:1001], found.shares[:1001])[:3] / found.shares[:1001].sum() == (
        pytest.approx([0.6, 0.15, 0.25], abs=0.01)
    )


@pytest.mark.parametrize("grain", [0, 2])
def test_a_value_that_stands_out_keeps_the_rows_that_were_counted(grain: int) -> None:
    """A value that was filled in for a third of the rows is no habit of writing."""
    filled = 700 + grain
    cells, shares = cell_of(WIDE), np.full(1002, 0.64 / 1001)
    shares[filled] = 0.36
    column = MergedBins(np.zeros(1002, np.uint16), shares)
    own = [10_000 * shares[:1001]]
    others = counts(*(10_000 * np.bincount(cells[:1001], shares[:1001])[:3] * [0.7, 1.3, 0.6]))
    [found] = followed([column], DOMAIN, others, own, 10.0)
    assert found.shares[filled] == pytest.approx(0.36)
    [moved] = followed([column], DOMAIN, others, NO_HEAPS, 10.0)
    assert abs(moved.shares[filled] - 0.36) > 0.005


def test_a_bin_without_an_allowed_code_keeps_its_own() -> None:
    column = MergedBins(np.array([0, 1] + [2] * 1000, np.uint16), np.full(1002, 1 / 1002))
    [found] = followed([column], DOMAIN, counts(9000, 0, 0), NO_HEAPS, 10.0)
    assert found.bin_shares == pytest.approx(column.bin_shares)
    assert found.shares[1] == pytest.approx(1 / 1002)  # 0.1 alone in its bin
    assert not found.shares[np.flatnonzero(cell_of(WIDE)[:1001] > 0)[1:]].any()


def test_nothing_moves_without_counts() -> None:
    column = MergedBins(np.zeros(1002, np.uint16), np.full(1002, 1 / 1002))
    assert followed([column], DOMAIN, None, NO_HEAPS, 10.0) == (column,)


def test_the_share_is_the_same_for_every_population() -> None:
    others = JointHistograms("others", 3, 1, UNDECIDED)
    plans = []
    for population in (200, 1_000_000):
        domain = Domain((WIDE,) * 9, population, max_rows=1)
        shares = with_grains((Share(others, 1.0),), domain, None)
        assert math.fsum(one.fraction for one in shares) == pytest.approx(1.0)
        assert shares[0].event.name == GRAINS and shares[0].fraction == SHARE
        plans.append(PrivacyPlan.calibrate(BUDGET, shares).events)
    assert plans[0] == plans[1]


@pytest.mark.parametrize("model", NAMES)
def test_tables_without_such_numbers_pay_nothing(model: str) -> None:
    bare = replace(
        DOMAIN, features=tuple(replace(one, grains=(), raised=None) for one in DOMAIN.features)
    )
    assert measured(bare) == []
    assert GRAINS not in {share.event.name for share in shares_of(model, bare, BUDGET)}
    first = shares_of(model, DOMAIN, BUDGET)[0]
    assert first.event.name == GRAINS and first.event.rows_per_unit == 1  # type: ignore[union-attr]


def table(rows: int) -> tuple[pd.DataFrame, Schema]:
    """Whole pulses, doses of one decimal on a lattice of thousandths, and heaped weights."""
    rng = np.random.default_rng(7)
    weight = rng.normal(75, 12, rows)
    weight = np.where(rng.random(rows) < 0.6, np.rint(weight / 5) * 5, np.round(weight, 1))
    frame = pd.DataFrame(
        {
            "pulse": np.rint(rng.normal(80, 12, rows)),
            "dose": np.round(rng.normal(4, 0.5, rows), 1),
            "weight": weight,
        }
    ).astype(str)
    bounds = {"pulse": (30, 250), "dose": (1, 10), "weight": (30, 250)}
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "number",
            "constraints": {"minimum": low, "maximum": high, "required": True},
            "dpsynth": {"bounds_basis": "form"},
        }
        for name, (low, high) in bounds.items()
    ]
    size = {"value": rows, "basis": "report"}
    facts = {"version": 1, "population": size, "rows": size}
    return frame, Schema.from_dict({"name": "ward", "fields": fields, "dpsynth": facts})


@pytest.mark.parametrize("model", ["independent", "mixture"])
def test_a_synthetic_table_is_written_as_its_source(model: str) -> None:
    frame, schema = table(3000)
    run = quick_fit(frame, schema, model=model, epsilon=8.0)  # grains of 4 % of the rows are seen
    assert GRAINS in {event["name"] for event in run.certificate["events"]}  # type: ignore[index]
    drawn = run.sample(4000, seed=1)
    assert (drawn["pulse"] % 1 == 0).all()
    assert np.allclose(drawn["dose"] * 10, np.rint(drawn["dose"] * 10))
    heaps = (drawn["weight"] % 5 == 0).mean(), (frame["weight"].astype(float) % 5 == 0).mean()
    assert heaps[0] == pytest.approx(heaps[1], abs=0.05)
    assert drawn["pulse"].mean() == pytest.approx(frame["pulse"].astype(float).mean(), abs=1.0)
    some = run.sample(300, seed=1, where="pulse >= 100 and weight < 80")
    assert (some["pulse"] % 1 == 0).all() and (some["pulse"] >= 100).all()


def test_a_run_of_before_draws_as_it_did() -> None:
    """Its arrays have no grains, so the points of a code are drawn evenly."""
    frame, schema = table(300)
    run = quick_fit(frame, schema, model="mixture")
    arrays = {name: array for name, array in run.arrays.items() if name != "grains"}
    for found, follows in ((run, True), (replace(run, arrays=arrays), False)):
        coder = Sampler.of(found).codec._coders[0]
        assert isinstance(coder, GrainedCoder) == follows
        assert len(found.sample(50, seed=1)) == 50


def test_a_coarse_grain_that_was_seen_moves_no_finer_ones() -> None:
    """Rows move between whole values and halves; those with tenths stay as they are."""
    column = MergedBins(np.zeros(1002, np.uint16), np.full(1002, 1 / 1002))
    [found] = followed([column], DOMAIN, counts(20, 180, 800), NO_HEAPS, 10.0)
    cells = cell_of(WIDE)
    before, after = (np.bincount(cells, one.shares) for one in (column, found))
    assert after[2] == pytest.approx(before[2])
    assert after[1] / after[:2].sum() == pytest.approx(0.9, abs=0.01)
