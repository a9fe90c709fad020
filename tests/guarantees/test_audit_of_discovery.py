"""Audit of the discovery of codes: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; ten games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH

MANY, FEW = 1500, 600


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_discovery_keeps_its_claim_and_shows_most_of_it_where_it_can() -> None:
    import audit_discovery as audit

    games = audit.sound(SeededEntropy(11))
    assert len(games) == 10 and sum(game.tight for game in games) == 5
    for game in games:
        linked = audit.LINKED in game.name
        finding = game.play(MANY if game.tight and not linked else FEW)
        assert not finding.broken, game.name
        assert finding.share > (0.15 if linked else 0.4) or not game.tight, game.name


def test_every_broken_twin_is_caught() -> None:
    import audit_discovery as audit

    games = audit.mutants(SeededEntropy(21))
    assert len(games) == 13
    for game in games:
        assert game.play(FEW).broken, game.name


def test_the_ruler_measures_no_more_than_the_accountant_claims() -> None:
    import audit_discovery as audit

    for game in audit.sound(SeededEntropy(0)):
        assert game.curve.epsilon(1.0, game.delta) <= game.epsilon * (1 + 1e-6), game.name
