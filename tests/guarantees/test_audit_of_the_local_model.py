"""Audit of perturbed answers: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest randomiser is accused with probability 1e-6 a game at most; three games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH

RUNS = 4000


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_reports_keep_their_claim_and_show_most_of_it() -> None:
    import audit_local as audit

    games = audit.sound(SeededEntropy(11))
    assert len(games) == 3
    for game in games:
        finding = game.play(RUNS)
        assert not finding.broken and finding.share > 0.6, game.name


def test_every_broken_twin_is_caught() -> None:
    import audit_local as audit

    games = audit.mutants(SeededEntropy(21))
    assert len(games) == 3
    for game in games:
        assert game.play(RUNS).broken, game.name
