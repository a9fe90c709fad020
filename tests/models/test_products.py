"""A mixture of products: its laws by enumeration, its draws by chi-square.

All randomness is seeded: a test that passes once passes always. Where a p-value is held against a
bound, the bound is 1e-6: the chance of a false alarm had the seed been another.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsynth.models.marginals import Products, inverse

Floats = npt.NDArray[np.float64]
SIZES = (3, 2, 4)
RARE = 1e-6


def mixture(seed: int, components: int = 3, sizes: tuple[int, ...] = SIZES) -> Products:
    """Components that differ strongly, with unequal weights."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(size, 0.5), components) for size in sizes]
    weights = rng.dirichlet(np.full(components, 2.0))
    return Products(sizes, weights, np.concatenate(tables, axis=1).astype(np.float32))


def law(products: Products) -> Floats:
    """The probability of every row, by the definition: an array of shape ``sizes``."""
    joint = np.zeros(products.sizes)
    starts = np.concatenate([[0], np.cumsum(products.sizes)])
    for weight, table in zip(products.weights, products.tables.astype(float), strict=True):
        for row in product(*(range(size) for size in products.sizes)):
            cells = [table[start + code] for start, code in zip(starts[:-1], row, strict=True)]
            joint[row] += weight * np.prod(cells)
    return joint / joint.sum()


def counts(drawn: npt.NDArray[np.int64], sizes: tuple[int, ...] = SIZES) -> npt.NDArray[np.int64]:
    return np.bincount(
        np.ravel_multi_index(tuple(drawn.T), sizes), minlength=int(np.prod(sizes))
    ).reshape(sizes)


def two_way(joint: Floats, i: int, j: int) -> Floats:
    others = tuple(axis for axis in range(joint.ndim) if axis not in (i, j))
    return np.asarray(joint.sum(axis=others))


# Draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_plain_draws_are_independent_rows_of_the_mixture(seed: int) -> None:
    """All 24 rows at once: a chi-square of the whole joint law."""
    products, rows = mixture(seed), 50_000
    drawn = products.draw(rows, np.random.default_rng(seed), even=False)
    assert drawn.shape == (rows, 3)
    expected = rows * law(products).ravel()
    kept = expected > 5
    observed = counts(drawn).ravel()
    pooled = np.append(observed[kept], observed[~kept].sum())
    wanted = np.append(expected[kept], expected[~kept].sum())
    assert stats.chisquare(pooled[wanted > 0], wanted[wanted > 0]).pvalue > RARE


@pytest.mark.parametrize("seed", range(5))
def test_even_draws_have_the_marginals_of_the_mixture(seed: int) -> None:
    """Closer than chance: one row in a thousand off, where plain draws are seven off."""
    products, rows = mixture(seed), 20_000
    drawn = products.draw(rows, np.random.default_rng(seed))
    found, true = counts(drawn) / rows, law(products)
    for j in range(3):
        axes = tuple(axis for axis in range(3) if axis != j)
        assert np.abs(found.sum(axis=axes) - true.sum(axis=axes)).max() < 0.001
    for i, j in combinations(range(3), 2):
        assert np.abs(two_way(found, i, j) - two_way(true, i, j)).max() < 0.005
    assert np.abs(found - true).max() < 0.007


def test_even_draws_are_unbiased_and_spread_less() -> None:
    """400 samples of 300 rows: the mean of each cell is right, its variance below chance."""
    products, rows, repeats = mixture(1), 300, 400
    rng = np.random.default_rng(7)
    true = law(products)
    for even in (True, False):
        tables = np.array([counts(products.draw(rows, rng, even=even)) for _ in range(repeats)])
        mean, sd = tables.mean(axis=0) / rows, tables.std(axis=0) / rows
        assert (np.abs(mean - true) < 5 * sd / repeats**0.5 + 1e-4).all()
        ratios = []
        for j in range(3):
            axes = tuple(axis for axis in (1, 2, 3) if axis != j + 1)
            share = true.sum(axis=tuple(axis - 1 for axis in axes))
            chance = rows * share * (1 - share)
            ratios.append(tables.sum(axis=axes).var(axis=0)[share > 0.02] / chance[share > 0.02])
        if even:
            assert max(float(ratio.max()) for ratio in ratios) < 0.25
        else:  # the ruler: plain draws have the variance of chance, to 5 of its errors
            np.testing.assert_allclose(np.concatenate(ratios), 1, atol=5 * (2 / repeats) ** 0.5)


@pytest.mark.long
def test_each_even_row_has_the_law_of_the_mixture() -> None:
    """The first and the last of seven rows, over many samples."""
    products, repeats = mixture(2), 4000
    rng = np.random.default_rng(8)
    drawn = np.array([products.draw(7, rng)[[0, -1]] for _ in range(repeats)])
    for place in range(2):
        found, expected = counts(drawn[:, place]).ravel(), repeats * law(products).ravel()
        kept = expected > 5
        found = np.append(found[kept], found[~kept].sum())
        expected = np.append(expected[kept], expected[~kept].sum())
        assert stats.chisquare(found, expected).pvalue > RARE


def test_even_rows_come_in_no_order() -> None:
    drawn = mixture(3).draw(5001, np.random.default_rng(9)).astype(float)
    for j in range(3):
        assert abs(np.corrcoef(drawn[1:, j], drawn[:-1, j])[0, 1]) < 5 / 5000**0.5


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 2, 9])
def test_a_few_rows_can_be_drawn_from_more_components(rows: int, even: bool) -> None:
    drawn = mixture(4, components=40).draw(rows, np.random.default_rng(0), even=even)
    assert drawn.shape == (rows, 3)
    assert (drawn >= 0).all() and (drawn < np.array(SIZES)).all()


@pytest.mark.parametrize("even", [True, False])
def test_what_has_no_share_is_never_drawn(even: bool) -> None:
    tables = np.array([[0, 1, 0, 0.5, 0.5, 0, 0.3, 0, 0.7], [0, 0, 1, 1, 0, 0, 0, 1, 0]])
    products = Products(SIZES, np.array([0.5, 0.5]), tables.astype(np.float32))
    drawn = products.draw(20_000, np.random.default_rng(1), even=even)
    assert set(map(tuple, drawn.tolist())) == {
        *((1, j, k) for j in (0, 1) for k in (1, 3)),
        (2, 0, 2),
    }


@pytest.mark.parametrize("even", [True, False])
def test_the_same_stream_draws_the_same_rows(even: bool) -> None:
    products = mixture(5)
    first, second = (products.draw(500, np.random.default_rng(6), even=even) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != products.draw(500, np.random.default_rng(7), even=even)).any()


# Inversion ------------------------------------------------------------------------------------


def inverse_by_loop(ends: Floats, component: npt.NDArray[np.int64], points: Floats) -> list[int]:
    """The first bin whose cumulative share is above the point."""
    found = []
    for k, point in zip(component, points, strict=True):
        shares = ends[k] / ends[k, -1]
        found.append(next((b for b, end in enumerate(shares) if end > point), len(shares) - 1))
    return found


@given(
    st.integers(1, 30),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1 - 2**-30]) | st.floats(0, 0.999)),
)
def test_inversion_against_a_loop(
    components: int, bins: int, seed: int, points: list[float]
) -> None:
    """Shares are quarters, zeros among them, so that points fall on the edges of bins."""
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(4, np.full(bins, 1 / bins), components) / 4
    ends = np.cumsum(shares, axis=1)
    component = rng.integers(0, components, len(points))
    # close to an edge, sums with the component's number round: move points that are not on one
    at = np.array([point if point * 4 % 1 == 0 else round(point, 9) for point in points])
    found = inverse(ends, component, at)
    assert found.tolist() == inverse_by_loop(ends, component, at)
    assert (shares[component, found] > 0).all()


def test_inversion_does_not_need_normalised_tables() -> None:
    ends = np.cumsum([[1.0, 2.0, 1.0], [0.0, 10.0, 30.0]], axis=1)
    component = np.array([0, 0, 0, 0, 1, 1, 1])
    points = np.array([0.0, 0.24, 0.25, 0.8, 0.0, 0.24, 0.26])
    assert inverse(ends, component, points).tolist() == [0, 0, 1, 2, 1, 1, 2]


# Tilting --------------------------------------------------------------------------------------


@pytest.mark.long
@given(
    st.integers(0, 1000),
    st.integers(0, 2),
    st.lists(st.floats(0.0, 9.0), min_size=4, max_size=4).filter(lambda f: min(f[:2]) > 0.01),
)
def test_tilting_weighs_rows_by_a_column(seed: int, column: int, factors: list[float]) -> None:
    """The joint law times the factor of the column's bin, normalised; by enumeration."""
    products = mixture(seed)
    own = np.array(factors[: SIZES[column]])
    shape = [1, 1, 1]
    shape[column] = SIZES[column]
    weighed = law(products) * own.reshape(shape)
    tilted = products.tilted(column, own)
    np.testing.assert_allclose(law(tilted), weighed / weighed.sum(), atol=2e-6)
    assert tilted.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(tilted.column(column).sum(axis=1), 1, atol=1e-5)


def test_tilting_leaves_the_mixture_itself_alone() -> None:
    products = mixture(3)
    before = products.tables.copy(), products.weights.copy()
    products.tilted(0, [1, 2, 3])
    np.testing.assert_array_equal(products.tables, before[0])
    np.testing.assert_array_equal(products.weights, before[1])
    np.testing.assert_allclose(law(products.tilted(0, [2, 2, 2])), law(products), atol=1e-6)


# Leaders --------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 6), st.integers(0, 5))
def test_leaders_are_earlier_columns_and_no_more_than_asked(
    seed: int, columns: int, components: int, most: int
) -> None:
    sizes = tuple(np.random.default_rng(seed).integers(1, 5, columns).tolist())
    leaders = mixture(seed, components, sizes).leaders(most)
    assert len(leaders) == columns
    for j, own in enumerate(leaders):
        assert len(own) == min(j, most) == len(set(own))
        assert all(0 <= i < j for i in own)


def test_leaders_are_the_strongest_first() -> None:
    """The last column equals column 2, follows column 0 somewhat, and ignores columns 1 and 3."""
    weights = np.full(4, 0.25)
    same = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    some = np.array([[0.7, 0.3], [0.7, 0.3], [0.3, 0.7], [0.3, 0.7]])
    other = np.array([[1, 0], [0, 1], [1, 0], [0, 1.0]])
    tables = np.concatenate([some, other, same, np.full((4, 2), 0.5), same], axis=1)
    products = Products((2,) * 5, weights, tables.astype(np.float32))
    assert products.leaders(2)[4] == (2, 0)
    assert products.leaders(4)[4][:2] == (2, 0) and set(products.leaders(4)[4]) == {0, 1, 2, 3}
    assert products.leaders(2)[2][0] == 0
    assert products.leaders(2)[0] == ()


def test_columns_in_another_order_have_the_same_law() -> None:
    products = mixture(5, 4, (2, 3, 4))
    order = (2, 0, 1)
    moved = products.reordered(order)
    assert moved.sizes == (4, 2, 3)
    own, same = law(products), law(moved)
    assert own.shape == (2, 3, 4)
    np.testing.assert_allclose(same, own.transpose(order), atol=1e-7)
