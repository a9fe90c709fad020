"""The codes of a lattice: by hand on small ones, by properties on all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding.grid import SINGLE_POINTS, SPANS, Grid
from dpsynth.schema import Lattice
from dpsynth.schema.lattice import lattice_of_bounds


@st.composite
def grids(draw: st.DrawFn) -> tuple[Lattice, Grid]:
    lattice = Lattice(
        first=draw(st.integers(-(10**9), 10**9)),
        stride=draw(st.integers(1, 1000)),
        points=draw(st.one_of(st.integers(1, 600), st.integers(4000, 10**7))),
        decimals=draw(st.integers(0, 6)),
    )
    return lattice, Grid.of(lattice, number=draw(st.booleans()))


def grid(low: float, high: float, step: float = 1.0, *, number: bool = True) -> Grid:
    return Grid.of(lattice_of_bounds(low, high, step=step), number=number)


def test_up_to_4096_points_each_has_a_code() -> None:
    assert grid(1, 4096).codes == SINGLE_POINTS == 4096
    assert grid(1, 4096).code_of(np.array([0, 17, 4095])).tolist() == [0, 17, 4095]
    assert (grid(1, 4096).points == 1).all()
    assert 1000 < grid(1, 4097).codes <= 4096


def test_times_are_cut_evenly_and_have_no_round_points() -> None:
    cut = grid(0, 40_959, number=False)
    assert cut.codes == SPANS == 2048
    assert (cut.points == 20).all()
    assert (cut.round == -1).all()


def test_spans_are_narrow_near_zero_and_wide_far_from_it() -> None:
    """asinh: below the largest value over 1000 spans have one width, above they grow by ratio."""
    cut = grid(0, 1_000_000)
    widths = np.diff(cut.edges)
    assert widths[0] in (3, 4, 5)  # bend * asinh(1000) / 2048 = 3.7 points
    assert widths[-1] == pytest.approx(1e6 * np.arcsinh(1000) / 2048, rel=0.01)
    assert (widths[1:] + 1 >= widths[:-1]).all()


def test_spans_follow_the_sign() -> None:
    cut = grid(-1_000_000, 1_000_000)
    widths = np.diff(cut.edges)
    assert (
        widths[0] > 100 * widths[len(widths) // 2] and widths[-1] > 100 * widths[len(widths) // 2]
    )


@pytest.mark.parametrize("value", [0, 50_000, 1_000_000, 300_000, 1500])
def test_round_values_have_codes_of_their_own(value: int) -> None:
    cut = grid(0, 1_000_000)
    code = cut.code_of(np.array([value]))[0]
    assert cut.points[code] == 1
    assert cut.draw(np.full(50, code), np.random.default_rng(0)).tolist() == [value] * 50


def test_the_roundest_value_by_hand() -> None:
    """In tenths: a span of 19.3 to 20.6 has 20.0, one of 3.1 to 3.3 has 3.2."""
    lattice = Lattice(first=0, stride=1, points=5000, decimals=1)
    cut = Grid.of(lattice, number=True)
    for span, (low, high) in enumerate(zip(cut.edges[:-1], cut.edges[1:] - 1, strict=True)):
        inside = np.arange(low, high + 1)
        if len(inside) == 1:
            assert cut.round[span] == -1
            continue
        units = [10**k * m for k in range(5) for m in (1, 2, 5)]
        best = max(unit for unit in units if (inside % unit == 0).any())
        assert cut.round[span] == inside[inside % best == 0][0]


@settings(deadline=None, max_examples=60)
@given(grids(), st.integers(0, 2**32))
def test_codes_partition_the_lattice(made: tuple[Lattice, Grid], seed: int) -> None:
    lattice, cut = made
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, lattice.points, 2000)
    codes = cut.code_of(positions)
    assert codes.min() >= 0 and codes.max() < cut.codes <= 4096
    assert cut.points.sum() == lattice.points and cut.points.min() >= 1
    spans = np.searchsorted(cut.edges, positions, side="right") - 1
    np.testing.assert_array_equal(cut.span[codes], spans)
    every = np.arange(cut.codes)
    np.testing.assert_array_equal(cut.code_of(cut.draw(every, rng)), every)


@settings(deadline=None, max_examples=60)
@given(grids())
def test_codes_ascend_with_their_values(made: tuple[Lattice, Grid]) -> None:
    """Spans ascend; within one, the round value comes first."""
    cut = made[1]
    assert (np.diff(cut.span) >= 0).all() and cut.span[0] == 0
    assert (np.diff(cut.edges) >= 1).all()
    assert (cut.edges[0], cut.edges[-1]) == (0, made[0].points)


def test_draws_are_even_among_the_points_of_a_code() -> None:
    cut = grid(0, 1_000_000)
    code = int(cut.code_of(np.array([20]))[0])
    others = code + 1 if cut.points[code] == 1 else code
    span = cut.span[others]
    inside = set(range(cut.edges[span], cut.edges[span + 1])) - {int(cut.round[span])}
    drawn = cut.draw(np.full(60_000, others), np.random.default_rng(3))
    points, counts = np.unique(drawn, return_counts=True)
    assert set(points.tolist()) == inside
    # 60 000 draws over 2 to 4 points: standard deviation at most 123; seeded.
    assert np.abs(counts - 60_000 / len(inside)).max() < 600
