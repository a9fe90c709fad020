"""Audit of the networks of linked tables: what `make audit` plays, with few runs and fixed seeds.

As in `test_audit_of_histories`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.privacy.entropy import SeededEntropy

from .test_audit_of_histories import one

BENCH = Path(__file__).parents[2] / "bench"
STEP = "a private step over whole histories"
FIT = "a whole fit of histories"
SOUND = {STEP: 0.4}
BROKEN = (
    f"{STEP}: half the noise",
    f"{STEP}: clipped step by step",
    f"{STEP}: clipped in each table",
)
MODELS = ("autoregressive",)
WHOLE = tuple(f"{FIT}: {model}" for model in MODELS)
WHOLE_BROKEN = tuple(f"{FIT}, {model}: five times the clipping norm" for model in MODELS)


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.mark.parametrize("name", SOUND)
def test_a_step_keeps_its_claim(name: str) -> None:
    import audit_networks

    finding = one(audit_networks.sound(SeededEntropy(3)), name).play(1500)
    assert not finding.broken
    assert finding.share >= SOUND[name]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_caught(name: str) -> None:
    import audit_networks

    assert one(audit_networks.mutants(SeededEntropy(3)), name).play(1500).broken


def test_every_game_is_played_here() -> None:
    import audit_networks

    sound, broken = (
        tuple(game.name for game in games(SeededEntropy(0)))
        for games in (audit_networks.sound, audit_networks.mutants)
    )
    assert sound == (*SOUND, *WHOLE)
    assert broken == (*BROKEN, *WHOLE_BROKEN)


@pytest.mark.long
@pytest.mark.parametrize("name", [*WHOLE, *WHOLE_BROKEN])
def test_a_whole_fit(name: str) -> None:
    import audit_networks

    games = [*audit_networks.sound(SeededEntropy(5)), *audit_networks.mutants(SeededEntropy(5))]
    assert one(games, name).play(150, 1e-3).broken == (name in WHOLE_BROKEN)
