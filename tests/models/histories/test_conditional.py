"""Draws of columns of a mixture, given others: their law, and how evenly they are spread."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.conditional import draw_given
from dpsynth.models.marginals import Products

SIZES = (3, 2, 4)
GIVEN = np.repeat(np.arange(3), 2_000)[:, None]
LIKELIER = np.array([[1.0, 0.0], [0.5, 1.0], [1.0, 1.0]])  # by the bin that is given


def made() -> Products:
    rng = np.random.default_rng(3)
    columns = [rng.dirichlet(np.ones(size), 5) for size in SIZES]
    return Products(SIZES, rng.dirichlet(np.ones(5)), np.hstack(columns).astype(np.float32))


def law(products: Products, likelier: np.ndarray) -> np.ndarray:
    """Shares of the last two columns given the first, ``[3, 2, 4]``, in closed form."""
    first, second, third = (products.column(place) for place in range(3))
    joint = np.einsum("k,ka,kb,kc->abc", products.weights, first, second, third)
    joint *= likelier[:, :, None]
    return joint / joint.sum(axis=(1, 2), keepdims=True)


def shares(drawn: np.ndarray) -> np.ndarray:
    found = np.zeros((3, 2, 4))
    np.add.at(found, (GIVEN[:, 0], *drawn.T), 1 / 2_000)
    return found


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("weighed", [True, False])
def test_columns_have_the_law_of_the_mixture_given_the_others(even: bool, weighed: bool) -> None:
    products, likelier = made(), LIKELIER if weighed else np.ones((3, 2))
    factors = likelier[GIVEN[:, 0]] if weighed else None
    found = np.mean(
        [
            shares(
                draw_given(products, GIVEN, [1, 2], np.random.default_rng(seed), factors, even=even)
            )
            for seed in range(20)
        ],
        axis=0,
    )
    wanted = law(products, likelier)
    assert np.abs(found - wanted).max() < 4 * (0.25 / 40_000) ** 0.5
    assert not found[wanted == 0].any()


def test_even_draws_are_nearer_to_the_law_than_independent_ones() -> None:
    products, wanted = made(), law(made(), np.ones((3, 2)))
    apart = {
        even: [
            np.abs(
                shares(draw_given(products, GIVEN, [1, 2], np.random.default_rng(s), even=even))
                - wanted
            ).sum()
            for s in range(5)
        ]
        for even in (True, False)
    }
    assert np.mean(apart[True]) < 0.4 * np.mean(apart[False])
