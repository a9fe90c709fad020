"""Audit of the networks of linked tables: what `make audit` plays, with few runs and fixed seeds.

As in `test_audit_of_histories`.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH, bench_module
from .test_audit_of_histories import one

FAILS = bench_module("distinguishing_game").FAILS
STEP = "a private step over whole histories"
FIT = "a whole fit of histories"
STEPS = (f"{STEP}: autoregressive",)
BROKEN = (
    f"{STEP}, autoregressive: half the noise",
    f"{STEP}, autoregressive: clipped step by step",
    f"{STEP}, autoregressive: clipped in each table",
)
WHOLE = (f"{FIT}: autoregressive",)
WHOLE_BROKEN = (f"{FIT}, autoregressive: five times the clipping norm",)


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.mark.parametrize(
    ("name", "runs", "fails", "share"),
    [
        *((name, 800, 1e-3, 0.3) for name in STEPS),
        *(pytest.param(name, 3000, FAILS, 0.4, marks=pytest.mark.long) for name in STEPS),
        *(pytest.param(name, 150, 1e-3, 0.0, marks=pytest.mark.long) for name in WHOLE),
    ],
)
def test_a_sound_game_keeps_its_claim(name: str, runs: int, fails: float, share: float) -> None:
    import audit_networks

    finding = one(audit_networks.sound(SeededEntropy(3)), name).play(runs, fails)
    assert not finding.broken
    assert finding.share >= share


@pytest.mark.parametrize(
    ("name", "runs", "fails"),
    [
        *((name, 600, FAILS) for name in BROKEN[1::2]),
        *(pytest.param(name, 1500, FAILS, marks=pytest.mark.long) for name in BROKEN[::2]),
        *(pytest.param(name, 150, 1e-3, marks=pytest.mark.long) for name in WHOLE_BROKEN),
    ],
)
def test_a_broken_twin_is_caught(name: str, runs: int, fails: float) -> None:
    import audit_networks

    assert one(audit_networks.mutants(SeededEntropy(3)), name).play(runs, fails).broken


def test_every_game_is_played_here() -> None:
    import audit_networks

    sound, broken = (
        tuple(game.name for game in games(SeededEntropy(0)))
        for games in (audit_networks.sound, audit_networks.mutants)
    )
    assert sound == (*STEPS, *WHOLE)
    assert broken == (*BROKEN, *WHOLE_BROKEN)
