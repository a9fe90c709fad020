"""Audit of votes of teachers: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; two games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH

MANY, FEW = 4000, 700


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_votes_keep_their_claim_and_show_most_of_it_where_they_can() -> None:
    import audit_votes as audit

    games = audit.sound(SeededEntropy(11))
    assert [game.tight for game in games] == [True, False]
    for game in games:
        finding = game.play(MANY)
        assert not finding.broken, game.name
        assert finding.share > 0.4 or not game.tight, game.name


def test_every_broken_twin_is_caught() -> None:
    import audit_votes as audit

    games = audit.mutants(SeededEntropy(21))
    assert len(games) == 3
    for game in games:
        assert game.play(MANY if "one count" in game.name else FEW).broken, game.name
