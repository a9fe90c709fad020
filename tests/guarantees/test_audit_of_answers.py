"""Audit of sums, stays and choices: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; nine games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH

MANY, FEW = 2000, 700


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_answers_keep_their_claim_and_show_most_of_it_where_they_can() -> None:
    import audit_answers as audit

    games = audit.sound(SeededEntropy(11))
    assert len(games) == 9 and sum(game.tight for game in games) == 8
    for game in games:
        finding = game.play(MANY)
        assert not finding.broken, game.name
        assert finding.share > 0.4 or not game.tight, game.name


def test_every_broken_twin_is_caught() -> None:
    import audit_answers as audit

    games = audit.mutants(SeededEntropy(21))
    assert len(games) == 14
    for game in games:
        assert game.play(FEW if game.cut != 0.5 else MANY).broken, game.name
