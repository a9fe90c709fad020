"""Audit of the mechanisms of histories: what `make audit` plays, with few runs and fixed seeds.

As in `test_audit_of_mechanisms`: an honest mechanism is accused with probability 1e-6 a game at
most, 2e-3 where 1e-3 is named.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import bench_module
from ..support.sharp_games import FEW, MANY, sharpen
from ..support.some_cases import some_of

Game = bench_module("distinguishing_game").Game


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    sharpen(monkeypatch, "histories")


def one(games: Iterable[Game], name: str) -> Game:
    (found,) = [game for game in games if game.name == name]
    return found


SAMPLED = 700  # of a game of chance and noise together, whose claim is always the same

SOUND = {
    "steps of a history, one series": 0.4,  # the share of the claim that shows
    "steps of a history, four series": 0.0,
    "steps of a history, four tables": 0.4,
    "gaps of a history": 0.3,
    "rows of a history, one beyond the cap": 0.0,
}
BROKEN = (
    "steps of a history: half the noise",
    "steps of a history: weights by the root of k",
    "steps of a history: in full in each series",
    "steps of a history: each table paid alone",
    "gaps of a history: cut by the last follow-up of all",
    "gaps of a history: their total as it is",
    "rows of a history: the first kept, claimed random",
)
WHOLE = ("a whole fit of histories: cohort",)
WHOLE_BROKEN = (
    "a whole fit of histories, cohort: a quarter of the noise",
    "a whole fit of histories, cohort: each step in full",
)


@pytest.mark.parametrize("name", SOUND)
def test_histories_keep_their_claim(name: str) -> None:
    import audit_histories

    runs = SAMPLED if "cap" in name else MANY
    finding = one(audit_histories.sound(SeededEntropy(3)), name).play(runs)
    assert not finding.broken
    assert finding.share >= SOUND[name]


@pytest.mark.parametrize("name", some_of(BROKEN, every=2))
def test_a_broken_twin_is_caught(name: str) -> None:
    import audit_histories

    runs = SAMPLED if "random" in name else FEW
    assert one(audit_histories.mutants(SeededEntropy(3)), name).play(runs).broken


def test_every_game_is_played_here() -> None:
    import audit_cohort_fit
    import audit_histories

    sound, broken, whole, whole_broken = (
        tuple(game.name for game in games(SeededEntropy(0)))
        for module in (audit_histories, audit_cohort_fit)
        for games in (module.sound, module.mutants)
    )
    assert sound == tuple(SOUND) and broken == BROKEN
    assert whole == WHOLE and whole_broken == WHOLE_BROKEN


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        (WHOLE_BROKEN[1], 24),
        *(pytest.param(name, 300, marks=pytest.mark.long) for name in (*WHOLE, *WHOLE_BROKEN)),
    ],
)
def test_a_whole_fit(name: str, runs: int) -> None:
    import audit_cohort_fit

    source = SeededEntropy(5)
    games = [*audit_cohort_fit.sound(source), *audit_cohort_fit.mutants(source)]
    assert one(games, name).play(runs, 1e-3).broken == (name in WHOLE_BROKEN)
