"""Tables that agree: equal margins, least variance, and the variance that is stated."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.stats import agreed
from dpsynth.stats.counts import NoisyTable

SHAPES = {("a", "b"): (3, 4), ("a",): (3,), ("b", "c"): (4, 2), (): ()}
SIGMAS = {("a", "b"): 4.0, ("a",): 2.0, ("b", "c"): 3.0, (): 1.0}


def noisy(rng: np.random.Generator, truth: np.ndarray) -> list[NoisyTable]:
    """Tables of a joint over a, b and c, with noise."""
    tables = []
    for axes, sigma in SIGMAS.items():
        out = tuple(i for i, name in enumerate("abc") if name not in axes)
        counts = truth.sum(axis=out)
        tables.append(NoisyTable(axes, counts + rng.normal(0, sigma, SHAPES[axes]), sigma))
    return tables


TRUTH = np.random.default_rng(1).integers(0, 90, (3, 4, 2)).astype(float)


def test_margins_that_two_tables_share_are_equal() -> None:
    ab, a, bc, total = (table.counts for table in agreed(noisy(np.random.default_rng(2), TRUTH)))
    np.testing.assert_allclose(ab.sum(axis=1), a)
    np.testing.assert_allclose(ab.sum(axis=0), bc.sum(axis=1))
    assert a.sum() == pytest.approx(float(total)) and bc.sum() == pytest.approx(float(total))


def test_tables_without_noise_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    exact = [
        NoisyTable(table.axes, TRUTH.sum(axis=out), table.sigma)
        for table, out in zip(noisy(rng, TRUTH), ((2,), (1, 2), (0,), (0, 1, 2)), strict=True)
    ]
    for before, after in zip(exact, agreed(exact), strict=True):
        np.testing.assert_allclose(after.counts, before.counts)


def test_they_are_the_least_squares_of_all_cells() -> None:
    """Against generalised least squares over the joint, solved as one linear system."""
    tables = noisy(np.random.default_rng(3), TRUTH)
    rows, seen = [], []
    for table in tables:
        for place in np.ndindex(table.counts.shape):
            cells = np.zeros(TRUTH.shape)
            index = dict(zip(table.axes, place, strict=True))
            cells[tuple(index.get(name, slice(None)) for name in "abc")] = 1 / table.sigma
            rows.append(cells.ravel())
            seen.append(float(table.counts[place]) / table.sigma)
    joint = np.linalg.lstsq(np.array(rows), np.array(seen), rcond=None)[0].reshape(TRUTH.shape)
    for table, found in zip(tables, agreed(tables), strict=True):
        out = tuple(i for i, name in enumerate("abc") if name not in table.axes)
        np.testing.assert_allclose(found.counts, joint.sum(axis=out), atol=1e-8)


@pytest.mark.long
def test_the_stated_deviation_is_that_of_many_draws() -> None:
    rng, runs = np.random.default_rng(4), 3000
    errors: list[list[np.ndarray]] = [[] for _ in SIGMAS]
    for _ in range(runs):
        for place, (table, out) in enumerate(
            zip(agreed(noisy(rng, TRUTH)), ((2,), (1, 2), (0,), (0, 1, 2)), strict=True)
        ):
            errors[place].append(table.counts - TRUTH.sum(axis=out))
    stated = [table.sd for table in agreed(noisy(rng, TRUTH))]
    for found, sd, sigma in zip(errors, stated, SIGMAS.values(), strict=True):
        seen = np.sqrt(np.mean(np.square(found)))
        assert seen == pytest.approx(sd, rel=0.03)
        assert sd < sigma
        assert abs(np.mean(found)) < 5 * sd / runs**0.5


def test_a_table_alone_is_left_alone() -> None:
    [found] = agreed([NoisyTable(("a",), np.array([5.0, -2.0]), 3.0)])
    np.testing.assert_allclose(found.counts, [5, -2])
    assert found.sd == pytest.approx(3)


def test_axes_in_another_order_are_the_same_axes() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(10, 1, (3, 4))
    twice = agreed([NoisyTable(("a", "b"), table, 1.0), NoisyTable(("b", "a"), table.T, 1.0)])
    np.testing.assert_allclose(twice[0].counts, table)
    np.testing.assert_allclose(twice[1].counts, table.T)
    assert twice[0].sd == pytest.approx(0.5**0.5)
