"""The record of an attack: its keys cannot be mixed up with others, and its examples hold."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from dpsynth.eval.attack_stats import Attack, PositiveControl, TableAttack, table_attack
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core import PartResult


def test_the_examples_of_the_docstrings_hold() -> None:
    tried = doctest.testmod(table_attack)
    assert tried.failed == 0 and tried.attempted > 0


@pytest.mark.parametrize(
    "settings",
    [
        {"key": "Echo"},
        {"key": "echo:loud"},
        {"key": "training"},
        {"key": "auc"},
        {"controls": ()},
        {"controls": (PositiveControl("fresh"),)},
        {"controls": (PositiveControl("copied", "other"),)},
        {"section": "within"},
    ],
)
def test_a_record_that_would_mix_results_up_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an attack's key|the controls of|the section of"):
        TableAttack(**{"key": "echo", "title": "t", "omitted_as": "o", "run": print} | settings)


def test_the_claim_goes_to_attacks_that_use_it() -> None:
    calls: list[Any] = []

    def run(*arguments: Any, **named: Any) -> Attack:
        calls.append(named)
        return Attack(PartResult())

    anything: Any = None
    for uses in (False, True):
        attack = TableAttack("echo", "t", "o", run, uses_claim=uses)
        attack.play(anything, anything, anything, (1.0, 1e-6))
    assert calls == [{}, {"claim": (1.0, 1e-6)}]


def test_progress_goes_to_attacks_that_report_it() -> None:
    calls: list[Any] = []

    def run(*arguments: Any, **named: Any) -> Attack:
        calls.append(sorted(named))
        return Attack(PartResult())

    anything: Any = None
    for reports in (False, True):
        attack = TableAttack("echo", "t", "o", run, reports_progress=reports)
        attack.play(anything, anything, anything, progress=anything or print)
        attack.play(anything, anything, anything)
    assert calls == [[], [], ["progress"], []]


def test_every_attack_of_dpsynth_has_a_key_of_its_own_and_a_positive_control() -> None:
    assert len({attack.key for attack in ATTACKS}) == len(ATTACKS)
    assert all(attack.controls for attack in ATTACKS)
