"""Mass: each of a unit's r rows counts floor(M / r), so that every unit weighs about the same."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.models import Domain, Feature
from dpsynth.models.presets import MAX_MASS, mass_of, one_way_event
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    chosen_histograms,
    event_from_dict,
    joint_histograms,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema.reader import MAX_UNIT_ROWS

from ..support.bare_counts import Rows, Silence

SIZES = (4, 3, 2)
PAIRS = [(0, 1), (0, 2), (1, 2)]
CAPS = [2, 3, 4, 5, 7, 10, 11, 13, 40]


def bare(rows: Rows, cap: int, mass: int) -> list[np.ndarray]:
    """All histograms of columns, then of pairs, without noise."""
    counts = JointHistograms("counts", len(SIZES), cap, 10.0 * mass, unit_mass=mass)
    pairs = ChosenHistograms("pairs", len(PAIRS), cap, 10.0, unit_mass=mass)
    sigmas = [pairs.sigma_for(3**-0.5)] * 3
    return [
        *joint_histograms(rows, SIZES, counts, Silence(0)),
        *chosen_histograms(rows, SIZES, PAIRS, sigmas, pairs, Silence(0)),
    ]


def cohort(seed: int, units: int, cap: int) -> Rows:
    """Units of 0 to ``cap`` rows, at any places; the codes of padding are out of range."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, (units, cap)) for size in SIZES], axis=-1)
    mask = rng.random((units, cap)) < rng.random((units, 1))
    codes[~mask] = 999
    return Rows(codes.astype(np.uint16), mask)


# The number -----------------------------------------------------------------------------------


def test_the_mass_is_the_least_common_multiple_up_to_a_limit() -> None:
    assert MAX_MASS == 5040
    by_hand = {1: None, 2: 2, 3: 6, 4: 12, 5: 60, 6: 60, 7: 420, 8: 840, 9: 2520, 10: 2520}
    assert {rows: mass_of(rows) for rows in by_hand} == by_hand
    # the multiple of 1 .. 11 is 27 720: from here on, shares are rounded down
    assert [mass_of(rows) for rows in (11, 12, 70, 500, 5040)] == [5040] * 5


def least_weight(cap: int) -> tuple[float, float]:
    """Return the least and the mean weight of a unit of 1 .. cap rows; 1 is a whole unit."""
    mass = mass_of(cap) or 1
    rows = np.arange(1, cap + 1)
    weights = mass // rows * rows / mass
    return float(weights.min()), float(weights.mean())


def test_what_a_large_cap_costs_is_what_the_docs_say() -> None:
    """The table of docs/schema.md: max_rows, least weight, mean weight."""
    text = (Path(__file__).parents[2] / "docs" / "schema.md").read_text()
    for cap in (10, 20, 100, 1000, MAX_UNIT_ROWS):
        least, mean = least_weight(cap)
        assert f"| {cap} | {least:.3f} | {mean:.3f} |" in text


@pytest.mark.parametrize("cap", [2, 11, 97, 1000, MAX_UNIT_ROWS])
def test_no_unit_weighs_more_than_one(cap: int) -> None:
    mass = mass_of(cap)
    assert mass is not None
    assert all(0 < mass // rows * rows <= mass for rows in range(1, cap + 1))


def test_up_to_ten_rows_every_share_is_whole() -> None:
    for cap in range(2, 11):
        mass = mass_of(cap)
        assert mass is not None
        assert all(mass % rows == 0 for rows in range(1, cap + 1))
        assert not all((mass // 2) % rows == 0 for rows in range(1, cap + 1))


def test_any_number_of_rows_has_a_mass_that_its_event_takes() -> None:
    for cap in (5041, 65_535):
        event = one_way_event(Domain((Feature("a", 2, 0),), 1000, cap), weighted=True)
        assert event.mass >= cap


def test_the_mass_bounds_the_event_and_not_the_rows() -> None:
    for cap in (2, 5, 60):
        event = JointHistograms("counts", 9, cap, 500.0, unit_mass=60)
        assert (event.mass, event.sensitivity) == (60, 180.0)
    assert JointHistograms("counts", 9, 5, 500.0).mass == 5
    assert JointHistograms("counts", 9, 1, 500.0).mass == 1


def test_one_mass_costs_the_same_whatever_the_rows() -> None:
    """Counting k rows of 1 and sharing a mass of k are one bound."""
    rows = JointHistograms("counts", 4, 6, 40.0)
    shares = JointHistograms("counts", 4, 3, 40.0, unit_mass=6)
    for eps in (0.1, 1.0):
        assert delta([shares], eps) == pytest.approx(delta([rows], eps), rel=1e-9)
        # and a mass of 6 at six times the noise costs what a mass of 1 does, but for the smoothing
        alone = JointHistograms("counts", 4, 1, 40.0 / 6)
        assert delta([shares], eps) == pytest.approx(delta([alone], eps), rel=0.02)


@pytest.mark.parametrize("bad", [0, -60, 1, 4, 60.0, True, "60", 10**7])
def test_a_mass_that_is_none_is_refused(bad: Any) -> None:
    """Below the number of rows, a row would count nothing."""
    with pytest.raises(InputError, match="unit_mass"):
        JointHistograms("counts", 3, 5, 500.0, unit_mass=bad)
    with pytest.raises(InputError, match="unit_mass"):
        ChosenHistograms("pairs", 3, 5, 5.0, unit_mass=bad)


def test_a_mass_above_one_needs_noise_for_its_bound() -> None:
    with pytest.raises(InputError, match="at least 3"):
        JointHistograms("counts", 3, 1, 2.9, unit_mass=2)
    assert JointHistograms("counts", 3, 1, 2.9, unit_mass=1).mu() == pytest.approx(3**0.5 / 2.9)
    assert JointHistograms("counts", 3, 5, UNDECIDED, 60).with_mu(1e6).sigma == 3.0


def test_the_mass_is_part_of_the_document() -> None:
    event = JointHistograms("counts", 3, 5, 500.0, unit_mass=60)
    assert event.to_dict()["unit_mass"] == 60
    assert event_from_dict(event.to_dict()) == event
    without = {key: value for key, value in event.to_dict().items() if key != "unit_mass"}
    with pytest.raises(InputError, match="exactly"):
        event_from_dict(without)


# The weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", CAPS)
def test_a_unit_adds_at_most_its_mass_to_each_histogram_whatever_its_rows(cap: int) -> None:
    mass = mass_of(cap)
    assert mass is not None
    rng = np.random.default_rng(cap)
    for rows in range(1, cap + 1):
        for identical in (True, False):
            codes = np.stack([rng.integers(0, size, (1, cap)) for size in SIZES], axis=-1)
            if identical:
                codes[:] = 1
            unit = Rows(codes.astype(np.uint16), (np.arange(cap) < rows)[None])
            for table in bare(unit, cap, mass):
                assert table.min() >= 0
                assert table.sum() == rows * (mass // rows)
                assert mass - rows < table.sum() <= mass  # little is lost to rounding
                assert math.sqrt(int((table.astype(object) ** 2).sum())) <= mass
                if identical:
                    assert table.max() == table.sum()  # the bound is reached


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(CAPS))
def test_weighted_counts_against_a_loop(seed: int, units: int, cap: int) -> None:
    rows, mass = cohort(seed, units, cap), mass_of(cap)
    assert mass is not None
    expected: list[Counter[Any]] = [Counter() for _ in range(len(SIZES) + len(PAIRS))]
    for codes, mask in zip(rows.codes.tolist(), rows.mask.tolist(), strict=True):
        own = [row for row, real in zip(codes, mask, strict=True) if real]
        for row in own:
            for j, code in enumerate(row):
                expected[j][(code,)] += mass // len(own)
            for place, (i, j) in enumerate(PAIRS, start=len(SIZES)):
                expected[place][row[i], row[j]] += mass // len(own)
    for table, cells in zip(bare(rows, cap, mass), expected, strict=True):
        assert table.sum() == cells.total()
        for cell, count in cells.items():
            assert table[cell] == count


def test_the_shares_of_a_random_row_of_a_random_unit() -> None:
    """With a whole share for every number of rows, in exact fractions."""
    rows = cohort(4, 200, 5)
    units_with_rows = int(rows.mask.any(axis=1).sum())
    expected = [Fraction(0)] * SIZES[0]
    for codes, mask in zip(rows.codes[..., 0].tolist(), rows.mask.tolist(), strict=True):
        own = [code for code, real in zip(codes, mask, strict=True) if real]
        for code in own:
            expected[code] += Fraction(1, len(own) * units_with_rows)
    table = bare(rows, 5, 60)[0]
    assert [Fraction(int(count), 60 * units_with_rows) for count in table] == expected


def test_a_unit_without_rows_adds_nothing() -> None:
    some = cohort(5, 20, 3)
    more = Rows(
        np.concatenate([some.codes, np.full((7, 3, 3), 999, np.uint16)]),
        np.concatenate([some.mask, np.zeros((7, 3), bool)]),
    )
    for one, two in zip(bare(some, 3, 6), bare(more, 3, 6), strict=True):
        np.testing.assert_array_equal(one, two)
    nobody = Rows(some.codes[:0], some.mask[:0])
    assert not any(table.any() for table in bare(nobody, 3, 6))


def test_fewer_rows_than_the_cap_in_the_whole_cohort() -> None:
    """A cohort may be narrower than the event; the mass stays the event's."""
    rows = cohort(6, 20, 3)
    for one, two in zip(bare(rows, 3, 60), bare(rows, 5, 60), strict=True):
        np.testing.assert_array_equal(one, two)


def test_large_sums_are_exact() -> None:
    """The largest mass times many units, above what 32 bits hold."""
    units, mass = 5000, 1_000_000
    rows = Rows(np.ones((units, 1, 3), np.uint16), np.ones((units, 1), bool))
    for table in bare(rows, 1, mass):
        assert table.max() == table.sum() == units * mass
