"""Audit of numbers about all pairs: what `make audit` plays, with few runs and fixed seeds.

False alarms: an honest mechanism is accused with probability 1e-6 a game at most; four games.
"""

from __future__ import annotations

import pytest

from dpsynth.privacy import SeededEntropy

from ..support.sharp_games import FEW, MANY, sharpen

NAMES = (
    "products of contrasts",
    "products of contrasts, five rows",
    "departures of pairs",
    "departures of pairs, five rows",
)


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    sharpen(monkeypatch, "counts", "pair_statistics")


@pytest.mark.parametrize("name", NAMES)
def test_numbers_about_pairs_keep_their_claim_and_show_most_of_it(name: str) -> None:
    import audit_pair_statistics as audit
    from audit_counts import game

    finding = game(name, audit.OFFICES[name](), SeededEntropy(10)).play(MANY)
    assert not finding.broken
    assert finding.share > 0.4


def test_every_broken_twin_is_caught() -> None:
    import audit_pair_statistics as audit

    assert tuple(audit.OFFICES) == NAMES
    games = audit.mutants(SeededEntropy(20))
    assert len(games) == 2 * len(NAMES)
    for game in games:
        assert game.play(FEW).broken, game.name


def test_the_ruler_measures_no_more_than_the_accountant_claims() -> None:
    import audit_pair_statistics as audit

    for game in audit.sound(SeededEntropy(0)):
        assert game.curve.epsilon(1.0, game.delta) <= game.epsilon * (1 + 1e-6), game.name
