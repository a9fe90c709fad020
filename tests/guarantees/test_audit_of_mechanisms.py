"""Audit of the mechanisms: what `make audit` plays, with few runs and seeds that are fixed.

Each sound mechanism is played beside a broken twin of it, with as many runs and bounds that fail as
rarely: what the twin cannot hide, the mechanism could not have hidden either. False alarms: an
honest mechanism is accused with probability 1e-6 a game at most, 2e-4 where FAILS is named and 2e-3
where 1e-3 is; that is 12, 5 and 4 games, 9.1e-3 for all together. The seeds are fixed, so that what
passes once passes always.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from dpsynth.privacy import PrivacyBudget, SeededEntropy, gaussian_mu

from ..support.bench_programs import bench_module
from ..support.sharp_games import FEW, MANY, sharpen, sharpen_steps

CURVES, GAMES = bench_module("tradeoff_curves"), bench_module("distinguishing_game")
GaussianCurve, refuted = CURVES.GaussianCurve, CURVES.refuted
Game, GameFinding = GAMES.Game, GAMES.GameFinding
OF_AUDIT = PrivacyBudget(epsilon=3.0, delta=1e-5)  # the claim of `make audit`
STEP_RUNS = 200  # of a game on one step, which takes longest
TEN_RUNS = 350  # of ten steps, whose noise is that of `make audit`
FAILS = 1e-4  # of one bound


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    sharpen(monkeypatch, "counts")
    sharpen_steps(monkeypatch)


def one(games: Iterable[Game], name: str) -> Game:
    (found,) = [game for game in games if game.name == name]
    return found


def blocks(source: SeededEntropy, *, halved: bool) -> Any:
    from audit_counts import Blocks as Drawn

    return Drawn(source, halved=halved)


LONG = pytest.mark.long  # ten steps are one step played again; tvae has the steps of autoregressive


def names(*listed: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", listed)


COUNTS = (
    "noisy count",
    "histogram",
    "all columns",
    "all columns, five rows",
    "grains of numbers",
    "grains of numbers, five rows",
    "all pairs",
    "all pairs, five rows",
)


WHOLE = ("noisy count", "histogram", "all pairs")  # of whole units: much noise, or it is coarse


@pytest.fixture
def office(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The office of a test; of whole units, as `make audit` plays it."""
    import audit_counts

    if name in WHOLE:
        monkeypatch.setattr(audit_counts, "CLAIM", OF_AUDIT)
    return audit_counts.OFFICES[name]()


@names(*COUNTS)
def test_counts_keep_their_claim_and_show_most_of_it(name: str, office: Any) -> None:
    import audit_counts

    runs = 1500 if name in WHOLE else MANY
    finding = audit_counts.game(name, office, SeededEntropy(10)).play(runs)
    assert not finding.broken
    assert finding.share > 0.4


@names(*COUNTS)
def test_counts_with_half_the_noise_are_caught(name: str, office: Any) -> None:
    import audit_counts

    runs = 700 if name in WHOLE else FEW
    assert audit_counts.game(name, office, SeededEntropy(20), halved=True).play(runs).broken


@names(*(name for name in COUNTS if "five" in name))
def test_a_mass_off_by_the_row_cap_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import audit_counts

    monkeypatch.setattr(audit_counts, "CLAIM", OF_AUDIT)  # so that three times as much can show
    office = audit_counts.rows_as_units(audit_counts.OFFICES[name]())
    finding = audit_counts.game(name, office, SeededEntropy(30)).play(FEW)
    assert finding.share > 3


def test_every_office_is_named_here() -> None:
    import audit_counts

    assert tuple(audit_counts.OFFICES) == COUNTS


def test_no_number_of_runs_accuses_honest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact rates of the best attack, as endless runs would show them, stay below the claim.

    The broken ruler holds discrete noise against the Gaussian curve, and accuses it.
    """
    import audit_counts

    monkeypatch.setattr(audit_counts, "CLAIM", OF_AUDIT)
    for name in ("noisy count", "histogram", "all columns"):
        office = audit_counts.OFFICES[name]()
        sigma, tables = office.sigmas[0], len(office.sigmas)
        cells = np.arange(-200, 201)
        law = np.exp(-(cells**2) / (2 * sigma**2))
        noise = functools.reduce(np.convolve, [law / law.sum()] * tables)
        total = np.arange(len(noise)) - len(noise) // 2
        fpr, tpr = noise[total > tables / 2].sum(), noise[total > -tables / 2].sum()
        assert 2.98 < refuted(office.curve, tpr, fpr, 1e-5) <= audit_counts.CLAIM.epsilon
        if name == "noisy count":
            assert refuted(GaussianCurve(gaussian_mu(3.0, 1e-5)), tpr, fpr, 1e-5) > 3.1


def test_the_ruler_measures_no_more_than_the_accountant_claims() -> None:
    import audit_cohort_fit
    import audit_counts
    import audit_fit
    import audit_histories
    import audit_selection
    import audit_sgd

    counts = (audit_counts, audit_selection, audit_histories)
    for module in (*counts, audit_sgd, audit_fit, audit_cohort_fit):
        for game in module.sound(SeededEntropy(0)):
            assert game.curve.epsilon(1.0, game.delta) <= game.epsilon * (1 + 1e-6), game.name
            with pytest.raises(ValueError, match="could refute nothing"):
                game.play(5)


@names("one step", "one step, four rows")
def test_a_step_keeps_its_claim_and_shows_most_of_it(name: str) -> None:
    import audit_sgd

    finding = one(audit_sgd.sound(SeededEntropy(40)), name).play(MANY)
    assert not finding.broken
    assert finding.share > 0.4


STEPS = {
    "one step: half the noise": "one step",
    "one step: three times the clipping norm": "one step",
    "one step, four rows: clipped row by row": "one step, four rows",
    "one sampled step: the unit is always drawn": "one sampled step",
    "ten steps: half the noise": "ten steps",
    "ten steps: the unit is always drawn": "ten steps",
    "one step: divided by the real batch": "one step, by its spread",
    "one sampled step: no noise where the batch is empty": "one sampled step, nobody else",
}


@functools.cache
def sound_step(name: str, runs: int) -> GameFinding:
    import audit_sgd

    return one(audit_sgd.sound(SeededEntropy(50)), name).play(runs, FAILS)


@names(
    *(pytest.param(name, marks=LONG if "ten" in name or "always" in name else ()) for name in STEPS)
)
def test_a_broken_step_is_caught_where_a_sound_one_stands(name: str) -> None:
    import audit_sgd

    runs = TEN_RUNS if "ten" in name else STEP_RUNS
    assert one(audit_sgd.mutants(SeededEntropy(60)), name).play(runs, FAILS).broken
    assert not sound_step(STEPS[name], runs).broken


def test_no_broken_step_is_left_out() -> None:
    import audit_sgd

    assert {game.name for game in audit_sgd.mutants(SeededEntropy(0))} == set(STEPS)


CHOICES = {
    "exponential mechanism as if scores moved one way": "exponential mechanism, one choice",
    "60 choices as if scores moved one way": "exponential mechanism, 60 choices",
}


@names(*CHOICES)
def test_a_choice_paid_at_a_quarter_of_its_renyi_cost_is_caught(name: str) -> None:
    import audit_selection

    assert one(audit_selection.mutants(SeededEntropy(80)), name).play(20_000).broken
    finding = one(audit_selection.sound(SeededEntropy(70)), CHOICES[name]).play(20_000)
    assert not finding.broken
    assert finding.share > 0.4


def test_pairs_chosen_by_noisy_scores_keep_their_claim_and_with_half_the_noise_do_not() -> None:
    import audit_selection

    sound, halved = SeededEntropy(90), blocks(SeededEntropy(91), halved=True)
    assert audit_selection.again("pairs", halved).play(300, 1e-3).broken
    assert not audit_selection.again("pairs", sound).play(300, 1e-3).broken


@pytest.mark.parametrize("broken", [False, True])
def test_a_whole_fit_of_the_mixture(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import audit_fit

    sharpen(monkeypatch, "fit")
    source = blocks(SeededEntropy(100), halved=broken)
    assert audit_fit.game("mixture", "mixture", source).play(240, 1e-3).broken == broken


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("autoregressive", True),  # the games of a step show at once that sound ones keep theirs
        pytest.param("autoregressive", False, marks=LONG),
        pytest.param("tvae", True, marks=LONG),
        pytest.param("tvae", False, marks=LONG),
    ],
)
def test_a_whole_fit_of_a_network(name: str, broken: bool) -> None:
    import audit_fit

    game = audit_fit.game(name, name, SeededEntropy(110), unclipped=broken)
    assert game.play(70, 1e-3).broken == broken  # 45 miss one seed in three
