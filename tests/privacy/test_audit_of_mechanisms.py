"""Audit of the mechanisms: what `make audit` plays, with few runs and seeds that are fixed.

False alarms: each of the two bounds of a game fails with probability 5e-7 at most, so a mechanism
that keeps its claim is accused with probability 1e-6 at most, and all games here together with
1.1e-5. The seeds are fixed, so that what passes once passes always. With this few runs a tight game
shows about 70 % of its claim; that less than 40 % shows would take five standard deviations.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.entropy import SeededEntropy

BENCH = Path(__file__).parents[2] / "bench"
MANY, FEW = 3000, 800


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def names(*listed: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", listed)


COUNTS = (
    "noisy count",
    "histogram",
    "all columns",
    "all columns, five rows",
    "all pairs",
    "all pairs, five rows",
)


@names(*COUNTS)
def test_counts_keep_their_claim_and_show_most_of_it(name: str) -> None:
    import audit_counts

    found = audit_counts.game(name, audit_counts.OFFICES[name](), SeededEntropy(10)).play(MANY)
    assert not found.broken
    assert found.share > 0.4


@names(*COUNTS)
def test_counts_with_half_the_noise_are_caught(name: str) -> None:
    import audit_counts

    office = audit_counts.OFFICES[name]()
    assert audit_counts.game(name, office, SeededEntropy(20), halved=True).play(FEW).broken


@names(*(name for name in COUNTS if "five" in name))
def test_a_mass_off_by_the_row_cap_is_caught(name: str) -> None:
    import audit_counts

    office = audit_counts.rows_as_units(audit_counts.OFFICES[name]())
    found = audit_counts.game(name, office, SeededEntropy(30)).play(FEW)
    assert found.share > 3


def test_every_office_is_named_here() -> None:
    import audit_counts

    assert tuple(audit_counts.OFFICES) == COUNTS


@names("one step", "one step, four rows")
def test_a_step_keeps_its_claim_and_shows_most_of_it(name: str) -> None:
    import audit_sgd

    (game,) = [game for game in audit_sgd.sound(SeededEntropy(40)) if game.name == name]
    found = game.play(MANY)
    assert not found.broken
    assert found.share > 0.4


@names("one step, by its spread", "one sampled step, nobody else", "ten steps")
def test_sampled_steps_and_their_spread_keep_their_claim(name: str) -> None:
    import audit_sgd

    (game,) = [game for game in audit_sgd.sound(SeededEntropy(50)) if game.name == name]
    assert not game.play(FEW // 4).broken


@pytest.mark.parametrize("number", range(8))
def test_a_broken_step_is_caught(number: int) -> None:
    import audit_sgd

    game = audit_sgd.mutants(SeededEntropy(60))[number]
    assert game.play(FEW // 2 if "ten" in game.name else FEW).broken, game.name


def test_no_broken_step_is_left_out() -> None:
    import audit_sgd

    assert len(audit_sgd.mutants(SeededEntropy(0))) == 8


@names("one choice", "60 choices")
def test_a_choice_paid_in_full_keeps_its_claim(name: str) -> None:
    import audit_selection

    games = audit_selection.sound(SeededEntropy(70))
    (game,) = [game for game in games if name in game.name]
    found = game.play(20_000)
    assert not found.broken
    assert found.share > 0.4


@names("mechanism as if", "60 choices as if")
def test_a_choice_paid_at_a_quarter_of_its_renyi_cost_is_caught(name: str) -> None:
    import audit_selection

    games = audit_selection.mutants(SeededEntropy(80))
    (game,) = [game for game in games if name in game.name]
    assert game.play(20_000).broken


def test_pairs_chosen_by_noisy_scores_keep_their_claim() -> None:
    import audit_selection

    assert not audit_selection.again("pairs", SeededEntropy(90)).play(FEW // 4).broken


@pytest.mark.parametrize("model", ["mixture", "tvae"])
def test_a_whole_fit_keeps_its_claim(model: str) -> None:
    import audit_fit

    assert not audit_fit.game(model, model, SeededEntropy(100)).play(30).broken


def test_a_whole_fit_with_units_too_long_is_caught() -> None:
    import audit_fit

    assert audit_fit.game("tvae", "tvae", SeededEntropy(110), unclipped=True).play(60, 1e-3).broken
