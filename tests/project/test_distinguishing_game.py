"""The distinguishing game: an honest mechanism is hardly ever accused, a broken one always is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ..support.bench_programs import bench_module

CURVES = bench_module("tradeoff_curves")
Game = bench_module("distinguishing_game").Game
MU = 0.72
CURVE = CURVES.GaussianCurve(MU)
CLAIM = CURVE.epsilon(1.0, 1e-5)


def shifted(by: float, rng: np.random.Generator) -> Callable[[bool, int], np.ndarray]:
    return lambda member, runs: rng.normal(by * member, 1.0, runs)


def gaussian(by: float, seed: int, cut: float | None) -> Game:
    scores = shifted(by, np.random.default_rng(seed))
    return Game("a shift", scores, CURVE, CLAIM, 1e-5, cut)


@pytest.mark.parametrize("cut", [None, MU / 2])
def test_most_of_a_claim_shows_and_no_more_than_it(cut: float | None) -> None:
    finding = gaussian(MU, 1, cut).play(10_000)
    assert 0.6 < finding.share < 1 and not finding.broken


@pytest.mark.parametrize("cut", [None, MU])
def test_twice_the_shift_is_caught(cut: float | None) -> None:
    assert gaussian(2 * MU, 2, cut).play(3000).broken


@pytest.mark.parametrize("cut", [None, MU / 2])
def test_an_honest_mechanism_is_accused_as_rarely_as_the_bounds_say(cut: float | None) -> None:
    """At a bound that fails one time in ten, 150 games accuse at most two times in ten."""
    accused = [gaussian(MU, 100 + seed, cut).play(400, fails=0.1).broken for seed in range(150)]
    assert np.mean(accused) < 0.2


def test_an_attack_chosen_on_the_runs_that_are_counted_would_accuse_the_honest() -> None:
    """Broken twin: of many attacks, each as good as the other, the one that these runs favour."""
    games = [gaussian(MU, 1000 + seed, MU / 2) for seed in range(150)]
    assert any(game.play(400, fails=0.1).broken for game in games)
    chosen = max(games, key=lambda game: game.play(400, fails=0.1).refuted)
    assert not chosen.play(400, fails=1e-3).broken  # on runs of its own it shows nothing


def test_scores_that_say_nothing_refute_nothing() -> None:
    assert gaussian(0.0, 3, None).play(2000).refuted == 0.0
    game = Game("a constant", lambda _, runs: np.zeros(runs), CURVE, CLAIM, 1e-5)
    assert game.play(500).refuted == 0.0


def test_a_rare_sure_sign_is_found_where_delta_is_none() -> None:
    def scores(member: bool, runs: int) -> np.ndarray:
        return (np.random.default_rng(member).random(runs) < (0.3 if member else 0.02)).astype(
            float
        )

    finding = Game("a sign", scores, CURVES.PureCurve(1.0), 1.0, 0.0).play(4000)
    assert finding.broken and finding.refuted > 1.8
