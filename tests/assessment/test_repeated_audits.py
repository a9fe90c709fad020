"""A blind audit of the training is made again, by a rule that does not look at what it found."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dpsynth.assessment import Trained, repeated_audits
from dpsynth.assessment.repeated_audits import audited_run, canaries_needed, kept, repeated
from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack, Finding, Power
from dpsynth.eval.attack_stats.tradeoff import least_epsilon
from dpsynth.eval.attacks import canaries_would_see
from dpsynth.eval.core import PartResult

EPSILON, CANARIES, REPETITIONS = 1.0, 60, 300


def attack(
    canaries: int = 100,
    *,
    least: float | None = None,
    found: bool = False,
    area: float = 0.999,
    claim: float = 1.0,
    proved: float = 0.0,
) -> Attack:
    """An audit of the training, as far as the rule reads it."""
    view = {"view": "white", "twin": {"epsilon": 9.0, "auc": {"value": area}, "proved": 0.0}}
    details = {"claim": {"epsilon": claim, "delta": 1e-6}, "canaries": canaries, "views": [view]}
    details["proved"] = proved
    finding = Finding("training:white", "Canaries", found, f"with {canaries}")
    power = Power("training:white", least, "epsilon", "words")
    return Attack(PartResult((), details), (finding,), (power,))


def test_more_canaries_are_planted_where_they_help_and_only_there() -> None:
    assert not canaries_would_see(6.0, 1e-6, 0.9999999, 100)
    more = canaries_needed(attack(100, claim=6.0, area=0.9999999), 100, 10_000)
    assert more is not None and more > 100 and canaries_would_see(6.0, 1e-6, 0.9999999, more)
    assert canaries_needed(attack(100, claim=6.0, least=7.0), 100, 10_000) is None  # it sees
    assert canaries_needed(attack(100, claim=6.0, area=0.52), 100, 10_000) is None  # it never will
    assert canaries_needed(attack(10_000, claim=6.0), 10_000, 10_000) is None


def test_the_rule_does_not_look_at_the_guesses() -> None:
    guessed = attack(100, claim=6.0, found=True, proved=5.0)
    plain = canaries_needed(attack(100, claim=6.0), 100, 10_000)
    assert canaries_needed(guessed, 100, 10_000) == plain


def test_repeats_are_bounded_and_each_has_its_number() -> None:
    asked: list[tuple[int, int]] = []

    def play(count: int, place: int) -> Attack:
        asked.append((count, place))
        return attack(count)

    assert len(repeated(play, 100, 2, lambda one, count: 4 * count)) == 3
    assert asked == [(100, 0), (400, 1), (1600, 2)]
    assert len(repeated(play, 100, 0, lambda one, count: 4 * count)) == 1
    assert len(repeated(play, 100, 5, lambda one, count: None)) == 1


def test_the_last_audit_counts_and_a_leak_of_an_earlier_one_stays() -> None:
    last = kept([attack(100), attack(400, least=2.0)])
    assert last.part.details["canaries"] == 400 and last.powers[0].least == 2.0
    assert "2 times, with 100, then 400 planted patients" in last.part.notes[0]
    last = kept([attack(100, found=True), attack(400, least=2.0)])
    assert last.findings[0].found and last.findings[0].sentence == "with 100"
    assert kept([attack(100)]).part.notes == ()


@cache
def proved(correct: int) -> float:
    """What so many right guesses about all canaries prove, with 95 % confidence."""
    return least_epsilon(CANARIES, CANARIES, correct, 0.0, 0.05)


def tight(rng: np.random.Generator) -> Callable[[int, int], Attack]:
    """A mechanism that leaks all that epsilon allows: each guess is right as often as it may be."""

    def play(count: int, place: int) -> Attack:
        right = rng.random(CANARIES) < 1 / (1 + math.exp(-EPSILON))
        bound = proved(int(right.sum()))
        twin = 0.999 if rng.random() < 0.1 else 0.5  # most twins are blind, whatever was guessed
        return attack(count, proved=bound, area=twin, least=2.0 if twin > 0.9 else None)

    return play


def blind(one: Attack, count: int) -> int | None:
    """Go on as long as the twin is not seen: the rule, without a limit to canaries."""
    return count if one.powers[0].least is None else None


def best(tries: list[Attack]) -> Attack:
    """The broken version: of all audits, the one that proved most."""
    return max(tries, key=lambda one: float(one.part.details["proved"]))


def test_the_confidence_of_the_final_figure_is_kept_and_that_of_the_best_is_not() -> None:
    rng = np.random.default_rng(1)
    wrong = {"last": 0, "best": 0}
    for _ in range(REPETITIONS):
        tries = repeated(tight(rng), CANARIES, 20, blind)
        wrong["last"] += kept(tries).part.details["proved"] > EPSILON
        wrong["best"] += best(tries).part.details["proved"] > EPSILON
    assert wrong["last"] <= 0.05 * REPETITIONS + 3 * math.sqrt(0.05 * 0.95 * REPETITIONS)
    assert wrong["best"] > 0.05 * REPETITIONS + 3 * math.sqrt(0.05 * 0.95 * REPETITIONS)


def test_a_repeated_audit_is_told_on_the_progress_line_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines: list[str] = []
    seeds: list[int] = []

    def play(
        run: object, *, count: int, seed: int, progress: Callable[[str, float], None]
    ) -> object:
        progress("canaries: mixture", 0.5)
        seeds.append(seed)
        return attack(count, claim=6.0, area=0.9999999), 1_000

    saved: list[int] = []
    monkeypatch.setattr(repeated_audits, "audited_training", play)
    monkeypatch.setattr(repeated_audits.Run, "load", str)
    monkeypatch.setattr(
        repeated_audits, "_public", lambda one, fitted, units, seed: one.part.details["canaries"]
    )
    monkeypatch.setattr(
        repeated_audits, "append_audit", lambda folder, public: saved.append(public)
    )
    found = audited_run(Trained(tmp_path, 100, 1), (), 7, lambda stage, part: lines.append(stage))
    assert saved == [100, found.part.details["canaries"]] and saved[1] > 100
    assert seeds == [7, 8]
    assert lines == ["canaries: mixture", f"repeat with {saved[1]:,} canaries: mixture"]
    saved.clear()
    audited_run(Trained(tmp_path, 100, 0), (), 7, lambda stage, part: None)
    assert saved == [100]


def test_repeats_are_a_small_number(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="repeats must be 0 to 5, not 6"):
        Trained(tmp_path, 100, 6).check()
