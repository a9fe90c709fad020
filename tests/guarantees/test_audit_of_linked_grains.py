"""Audit of the grains of linked tables: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; two games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.sharp_games import sharpen

RUNS, FEW = 400, 200
BROKEN = {  # and how many runs show it
    "half the noise": FEW,
    "each row a patient": FEW,
    "in full in each test": RUNS,
    "each table paid alone": RUNS,
}


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    sharpen(monkeypatch, "histories", "history_grains")


def test_the_grains_of_all_tables_keep_their_claim_and_show_most_of_it() -> None:
    import audit_history_grains as audit

    one, several = audit.sound(SeededEntropy(11))
    finding = one.play(RUNS)
    assert not finding.broken and finding.share > 0.15
    assert not several.play(100).broken


@pytest.mark.parametrize(
    "twin",
    [
        pytest.param(twin, marks=pytest.mark.long if runs > FEW else ())
        for twin, runs in BROKEN.items()
    ],
)
def test_a_broken_twin_is_caught(twin: str) -> None:
    import audit_history_grains as audit

    games = {game.name.partition(": ")[2]: game for game in audit.mutants(SeededEntropy(21))}
    assert set(games) == set(BROKEN)
    assert games[twin].play(BROKEN[twin]).broken
