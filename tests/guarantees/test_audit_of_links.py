"""Audit of linked pairs: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; one game.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.bench_programs import BENCH

FULL, MANY, FEW = 2500, 1000, 400


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_links_keep_their_claim_and_show_most_of_it() -> None:
    import audit_links as audit

    [game] = audit.sound(SeededEntropy(11))
    finding = game.play(FULL)
    assert not finding.broken and finding.share > 0.4


def test_every_broken_twin_is_caught() -> None:
    import audit_links as audit

    games = audit.mutants(SeededEntropy(21))
    assert len(games) == 4
    for game in games:
        assert game.play(MANY if "paid" in game.name else FEW).broken, game.name
