"""A mixture of products fitted to counts: on known tables, and within their noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.models.marginals import Pairs, Released, Target, fit_products

from .test_products import Floats, law, mixture, two_way


def exact_target(joint: Floats, pairs: list[tuple[int, int]], sd: float = 1e-3) -> Target:
    """What a noiseless measurement of all columns and some pairs would give."""
    sizes = joint.shape
    starts = np.concatenate([[0], np.cumsum(sizes)])
    one = np.concatenate(
        [joint.sum(axis=tuple(a for a in range(joint.ndim) if a != j)) for j in range(joint.ndim)]
    )
    values = np.zeros((starts[-1], starts[-1]))
    spread = np.full_like(values, np.inf)
    for i, j in pairs:
        block = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        values[block], spread[block] = two_way(joint, i, j), sd
    return Target(sizes, one, np.full(starts[-1], sd), values, spread)


def total_variation(p: Floats, q: Floats) -> float:
    return float(np.abs(p - q).sum() / 2)


ALL = [(0, 1), (0, 2), (1, 2)]


def test_a_known_joint_is_recovered_from_exact_counts() -> None:
    """Two hidden kinds of row. Pairs are met; what they leave open beyond comes near the truth."""
    kinds = mixture(11, components=2)
    true = law(kinds)
    product_law = law(
        fit_products(
            exact_target(true, ALL), components=60, steps=800, rng=np.random.default_rng(1)
        )
    )
    for i, j in ALL:
        assert total_variation(two_way(product_law, i, j), two_way(true, i, j)) < 0.004
    assert total_variation(product_law, true) < 0.04
    alone = np.einsum("i,j,k->ijk", true.sum((1, 2)), true.sum((0, 2)), true.sum((0, 1)))
    assert total_variation(alone, true) > 0.2  # what no relation at all would give


def test_a_column_that_equals_another_is_fitted_too() -> None:
    true = np.zeros((3, 3))
    true[np.arange(3), np.arange(3)] = [0.6, 0.3, 0.1]
    fitted = fit_products(
        exact_target(true, [(0, 1)]), components=40, steps=500, rng=np.random.default_rng(2)
    )
    assert total_variation(law(fitted), true) < 0.02


def test_a_pair_that_was_not_measured_is_left_to_itself() -> None:
    """Its cells may hold anything; the columns stay as they were, and unrelated."""
    true = law(mixture(12))
    target = exact_target(true, [(0, 1)])
    spoiled = target.pairs.copy()
    spoiled[0:3, 5:9] = 77.0
    other = Target(target.sizes, target.one, target.one_sd, spoiled, target.pair_sd)
    fits = [
        fit_products(each, components=30, steps=200, rng=np.random.default_rng(3))
        for each in (target, other)
    ]
    np.testing.assert_array_equal(fits[0].tables, fits[1].tables)
    product_law = law(fits[0])
    assert total_variation(two_way(product_law, 0, 1), two_way(true, 0, 1)) < 0.01
    assert total_variation(product_law.sum((0, 1)), true.sum((0, 1))) < 0.01


@pytest.mark.long
def test_what_is_known_better_is_fitted_better() -> None:
    """Two measurements that contradict each other: the precise one wins."""
    true = np.array([[0.4, 0.1], [0.1, 0.4]])
    target = exact_target(true, [(0, 1)])
    lie = np.array([0.8, 0.2, 0.5, 0.5])
    for one_sd, pair_sd, share in [(1e-1, 1e-4, 0.5), (1e-4, 1e-1, 0.8)]:
        spread = np.where(np.isfinite(target.pair_sd), pair_sd, np.inf)
        measured = Target(target.sizes, lie, np.full(4, one_sd), target.pairs, spread)
        fitted = fit_products(measured, components=30, steps=400, rng=np.random.default_rng(4))
        assert law(fitted).sum(axis=1)[0] == pytest.approx(share, abs=0.02)


def test_without_pairs_the_columns_are_fitted_alone() -> None:
    true = law(mixture(13))
    fitted = fit_products(
        exact_target(true, []), components=20, steps=200, rng=np.random.default_rng(5)
    )
    for j in range(3):
        axes = tuple(axis for axis in range(3) if axis != j)
        np.testing.assert_allclose(law(fitted).sum(axes), true.sum(axes), atol=0.01)


def test_a_fit_is_a_function_of_its_target_and_stream() -> None:
    target = exact_target(law(mixture(14)), ALL)
    steps: list[tuple[str, float]] = []
    fits = [
        fit_products(
            target,
            components=7,
            steps=4,
            rng=np.random.default_rng(seed),
            progress=lambda *pair: steps.append(pair),
        )
        for seed in (6, 6, 7)
    ]
    np.testing.assert_array_equal(fits[0].tables, fits[1].tables)
    assert (fits[0].tables != fits[2].tables).any()
    assert steps[:4] == [("mixture", part / 16) for part in (1, 2, 3, 4)]
    assert fits[0].tables.dtype == np.float32 and fits[0].tables.shape == (7, 9)
    np.testing.assert_allclose(fits[0].weights, 1 / 7)


@pytest.mark.parametrize(("sd", "rounds"), [(0.5, 1), (1e-3, 4)])
def test_rounds_end_when_the_fit_is_within_the_noise(sd: float, rounds: int) -> None:
    """Loose counts are met at once; precise ones, with so few steps, never."""
    target = exact_target(law(mixture(14)), ALL)
    loose = replace(
        target,
        one_sd=np.full_like(target.one_sd, sd),
        pair_sd=np.where(np.isfinite(target.pair_sd), sd, np.inf),
    )
    parts: list[float] = []
    fit_products(
        loose,
        components=7,
        steps=4,
        rng=np.random.default_rng(6),
        progress=lambda _, part: parts.append(part),
    )
    assert len(parts) == 4 * rounds + 1 and parts == sorted(parts) and parts[-1] == 1.0


def test_a_cell_without_rows_does_not_break_the_fit() -> None:
    """Shares of exactly zero, and a column of one code."""
    true = np.zeros((2, 1, 3))
    true[:, 0] = [[0.5, 0, 0], [0, 0, 0.5]]
    fitted = fit_products(
        exact_target(true, ALL), components=20, steps=300, rng=np.random.default_rng(8)
    )
    assert np.isfinite(fitted.tables).all()
    assert total_variation(law(fitted), true) < 0.02


def test_a_tie_keeps_apart_what_the_counts_leave_open() -> None:
    """Of three columns only the first pair is known: a tie leaves the third alone.

    Without it, columns that share components come out a little related, whatever the truth.
    """
    true = np.einsum("ab,c->abc", np.array([[0.4, 0.1], [0.1, 0.4]]), [0.5, 0.5])
    target = exact_target(true, [(0, 1)], sd=0.01)
    apart = []
    for tie in (0.0, 2.0, (2.0, 2.0, 2.0)):
        fitted = fit_products(
            target, components=30, steps=1500, rng=np.random.default_rng(3), spread=1.0, tie=tie
        )
        joint = law(fitted).sum(axis=0)
        apart.append(np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum())
        np.testing.assert_allclose(law(fitted).sum(axis=2), true.sum(axis=2), atol=0.03)
    assert apart[1] < 0.5 * apart[0]
    assert apart[2] == apart[1], "a tie of each column"


def test_a_tie_of_one_column_leaves_the_others_as_they_are() -> None:
    """Both pairs are known alike; the tied column is less related to the first than the other."""
    true = np.einsum("ab,ac->abc", np.array([[0.4, 0.1], [0.1, 0.4]]), [[0.8, 0.2], [0.2, 0.8]])
    target = exact_target(true, [(0, 1), (0, 2)], sd=0.2)
    fitted = fit_products(
        target, components=30, steps=1000, rng=np.random.default_rng(3), tie=(0.0, 0.0, 20.0)
    )
    found = law(fitted)
    of_pairs = [found.sum(axis=2), found.sum(axis=1)]
    apart = [np.abs(pair - np.outer(pair.sum(1), pair.sum(0))).sum() for pair in of_pairs]
    assert apart[1] < 0.7 * apart[0]


def test_cells_are_held_to_what_was_counted_of_them() -> None:
    """A target says of a pair what was expected of it; what was counted is known far better."""
    true, sd = law(mixture(12, components=3)), 2e-3
    counted = two_way(true, 0, 1)
    expected = np.outer(counted.sum(axis=1), counted.sum(axis=0))
    target = exact_target(true, ALL, sd)
    rows, columns = np.s_[: true.shape[0]], np.s_[true.shape[0] : sum(true.shape[:2])]
    pairs, errors = target.pairs.copy(), target.pair_sd.copy()
    pairs[rows, columns], errors[rows, columns] = expected, sd
    blended = replace(target, pairs=pairs, pair_sd=errors)
    released = Released(true.shape, target.one, Pairs(((0, 1),), (counted,), (sd,)))
    found = [
        fit_products(
            blended, components=40, steps=200, rng=np.random.default_rng(5), released=known
        )
        for known in (None, released)
    ]
    apart, held = (released.fitness(one.pair) for one in found)
    assert apart.off > 2 and apart.furthest > 6
    assert held.off == 0
