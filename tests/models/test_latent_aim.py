"""Aimed latent vectors: weighed, they have the law of the prior under a condition, however rare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from dpsynth.models.generators.latent_aim import PRIOR, Aim, drawn, effective

Floats = npt.NDArray[np.float64]


def above(edge: float) -> object:
    """The condition that the first dimension is above an edge, softly."""
    return lambda vectors: np.asarray(norm.logcdf((vectors[:, 0] - edge) / 0.3))


def estimate(aim: Aim | None, edge: float, n: int = 60_000) -> tuple[float, float, float]:
    """Share that meets the condition, mean of the first dimension under it, effective number."""
    vectors, logs = drawn(aim, n, 3, np.random.default_rng(4))
    logs = logs + norm.logcdf((vectors[:, 0] - edge) / 0.3)
    weights = np.exp(logs)
    return float(weights.mean()), float(weights @ vectors[:, 0] / weights.sum()), effective(logs)


def truth(edge: float) -> tuple[float, float]:
    grid = np.linspace(-8, 9, 20_001)
    mass = norm.pdf(grid) * norm.cdf((grid - edge) / 0.3)
    return float(mass.sum() * (grid[1] - grid[0])), float(mass @ grid / mass.sum())


@pytest.mark.parametrize("edge", [0.0, 2.5, 4.3])
def test_weighed_vectors_have_the_law_of_the_condition(edge: float) -> None:
    aim = Aim.at(3, above(edge), np.random.default_rng(1))  # type: ignore[arg-type]
    share, mean, count = estimate(aim, edge)
    expected = truth(edge)
    assert share == pytest.approx(expected[0], rel=0.05)
    assert mean == pytest.approx(expected[1], abs=0.03)
    assert count > 0.3 * 60_000
    if edge > 4:
        assert estimate(None, edge)[2] < 0.001 * 60_000, "the prior hardly finds any"


def test_without_an_aim_vectors_are_of_the_prior() -> None:
    vectors, logs = drawn(None, 20_000, 2, np.random.default_rng(1))
    assert not logs.any() and abs(vectors.std() - 1) < 0.02


def test_the_prior_bounds_every_weight() -> None:
    aim = Aim(np.array([6.0, 0.0]), 0.1 * np.eye(2))
    assert drawn(aim, 20_000, 2, np.random.default_rng(1))[1].max() <= -np.log(PRIOR) + 1e-9


def test_a_condition_that_no_vector_meets_has_no_aim() -> None:
    def none(vectors: Floats) -> Floats:
        return np.full(len(vectors), -np.inf)

    assert Aim.at(2, none, np.random.default_rng(1)) is None


def test_effective_numbers() -> None:
    assert effective(np.zeros(70)) == pytest.approx(70)
    assert effective(np.array([800.0, 0.0, -900.0])) == pytest.approx(1)
