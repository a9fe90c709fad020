from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.schema import Column, Lattice, lattice_of
from dpsynth.schema.lattice import lattice_of_bounds


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    decimals = draw(st.integers(0, 12))
    return Lattice(
        first=draw(st.integers(-(10**12), 10**12)),
        stride=draw(st.integers(1, 10**6)),
        points=draw(st.one_of(st.integers(1, 600), st.integers(1, 10**6))),
        decimals=decimals,
    )


@pytest.mark.parametrize(
    ("minimum", "maximum", "step", "points", "decimals", "last"),
    [
        (30.0, 45.0, 0.1, 151, 1, 45.0),
        (1, 14, 1, 14, 0, 14.0),
        (0, 10, 3, 4, 0, 9.0),  # the maximum is no point: 0, 3, 6, 9
        (0.5, 2.0, 0.5, 4, 1, 2.0),
        (-2.5, 2.5, 0.25, 21, 2, 2.5),
        (7, 7, 1, 1, 0, 7.0),
        (0, 0.3, 0.1, 4, 1, 0.3),  # (0.3 - 0) / 0.1 is 2.9999999999999996 in float64
        (0.1, 0.7, 0.2, 4, 1, 0.7),
    ],
)
def test_declared_step(
    minimum: float, maximum: float, step: float, points: int, decimals: int, last: float
) -> None:
    lattice = lattice_of_bounds(minimum, maximum, step=step)
    assert (lattice.points, lattice.decimals) == (points, decimals)
    assert lattice.values(np.array([0, points - 1])).tolist() == [minimum, last]


@pytest.mark.parametrize(
    ("minimum", "maximum", "points", "decimals"),
    [
        (30.0, 45.0, 1501, 2),  # tenths would be 151 points
        (0.0, 1.0, 1001, 3),
        (0.0, 999.0, 1000, 0),
        (0.0, 998.0, 9981, 1),  # 999 whole numbers are one too few
        (0.0, 1_000_000.0, 1_000_001, 0),  # never coarser than 1
        (0.25, 5000.0, 499_976, 2),  # thousands of points at once, but the bound has quarters
        (37.5, 37.5, 1, 1),
        (0.0, 1e-9, 1001, 12),
    ],
)
def test_number_without_step(minimum: float, maximum: float, points: int, decimals: int) -> None:
    lattice = lattice_of_bounds(minimum, maximum)
    assert (lattice.points, lattice.decimals, lattice.stride) == (points, decimals, 1)


def test_values_are_the_floats_nearest_to_their_decimal_text() -> None:
    lattice = lattice_of_bounds(-1.7, 30.3, step=0.1)
    values = lattice.values(np.arange(lattice.points))
    expected = [Decimal("-1.7") + Decimal("0.1") * i for i in range(321)]
    assert [Decimal(repr(value)) for value in values.tolist()] == expected
    assert 0.1 * 3 != 0.3, "what a product of floats would give"
    assert 0.3 in values


def test_positions_are_nearest_and_clipped() -> None:
    lattice = lattice_of_bounds(30.0, 45.0, step=0.1)
    values = np.array([30.04, 30.06, 45.0, 1e308, -1e308, np.inf, -np.inf, 29.0])
    assert lattice.positions(values).tolist() == [0, 1, 150, 150, 0, 150, 0, 0]


def test_a_middle_is_one_whatever_its_last_bits() -> None:
    """A fast reader of text is a unit in the last place off; both must give the same position."""
    lattice = lattice_of_bounds(0.0, 50.0, step=0.1)
    middles = np.array([0.15, 0.25, 7.05, 33.35, 36.65, 49.95])
    exact = lattice.positions(middles)
    assert exact.tolist() == [2, 2, 70, 334, 366, 500], "middles go to the even position"
    for direction in (-np.inf, np.inf):
        values = middles
        for _ in range(3):
            values = np.nextafter(values, direction)
            assert lattice.positions(values).tolist() == exact.tolist()
    steps = np.array([0.1499999, 0.1500001, 33.3499999, 33.3500001])
    assert lattice.positions(steps).tolist() == [1, 2, 333, 334]


@settings(deadline=None)
@given(lattices(), st.integers(0, 2**32))
def test_round_trip_of_positions(lattice: Lattice, seed: int) -> None:
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, lattice.points, 50)
    values = lattice.values(positions)
    assert (lattice.positions(values) == positions).all()
    assert lattice.on_lattice(values).all()


def test_on_lattice() -> None:
    lattice = lattice_of_bounds(0.0, 3.0, step=0.1)
    values = np.array([0.0, 0.1 + 0.2, 0.35, 3.0, 3.1, 1e-9])
    assert lattice.on_lattice(values).tolist() == [True, True, False, True, False, False]


def test_times() -> None:
    born = lattice_of(
        Column("born", "date", minimum=date(1969, 12, 31), maximum=date(1970, 1, 30), step=7)
    )
    assert (born.first, born.stride, born.points) == (-1, 7, 5)
    column = Column(
        "seen",
        "datetime",
        minimum=datetime(1970, 1, 2, 0, 1),
        maximum=datetime(1970, 1, 2, 1),
    )
    assert (lattice_of(column).first, lattice_of(column).stride) == (86_460, 60)
    assert lattice_of(column).points == 60
    year = lattice_of(Column("year", "year", minimum=1999, maximum=2008))
    assert (year.first, year.points) == (1999, 10)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Column("x", "integer", minimum=0, maximum=9, step=0.5), "whole number"),
        (Column("x", "number", minimum=0.0, maximum=9.0, step=-1.0), "positive"),
        (Column("x", "number", minimum=9.0, maximum=0.0), "above maximum"),
        (Column("x", "number", minimum=0.0, maximum=1e300), "coarser `step`"),
        (Column("x", "number", minimum=1e-30, maximum=1.0), "coarser `step`"),
        (Column("x", "number", minimum=0.0), "maximum is missing"),
        (Column("x", "number", minimum=0.0, maximum=float("nan")), "column 'x'"),
    ],
)
def test_bounds_that_make_no_lattice(column: Column, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        lattice_of(column)
    assert "column 'x'" in str(caught.value)


def test_a_lattice_keeps_its_invariants() -> None:
    for wrong in [(0, 0, 5, 0), (0, 1, 0, 0), (0, 1, 5, -1), (2**53, 1, 2, 0), (2**50, 1, 2, 1)]:
        with pytest.raises(ValueError, match="lattice"):
            Lattice(*wrong)
