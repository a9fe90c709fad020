"""Controls that need a fit: they do what they must, and are kept for the code they are about."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpsynth.models
from dpsynth.assessment import fitted_controls as module
from dpsynth.eval.attacks import Control
from dpsynth.eval.core import RealTables


def silent(stage: str, part: float) -> None:
    """Show nothing."""


GOOD = [Control(key, "A title", kind, attack, True, "seen") for key, kind, attack in module.EVERY]


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[Control]]:
    """Put results in the place of playing; what is left to play is what was not asked for."""
    results = [GOOD, GOOD]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "play", lambda *_: results.pop(0))
    return results


def asked() -> list[Control]:
    return module.fitted_controls(np.random.default_rng(1), silent)


def test_what_did_what_it_must_is_kept_and_marked(plays: list[list[Control]]) -> None:
    assert asked() == GOOD
    assert asked() == [replace(one, cached=True) for one in GOOD]
    assert len(plays) == 1


def test_a_control_that_failed_is_played_again(plays: list[list[Control]]) -> None:
    plays.insert(0, [replace(GOOD[0], passed=False), *GOOD[1:]])
    assert not asked()[0].passed
    assert asked() == GOOD


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: {"controls": []},
        lambda told: {"controls": told["controls"][1:]},
        lambda told: {"controls": [control | {"passed": False} for control in told["controls"]]},
        lambda told: {"controls": [control | {"passed": "yes"} for control in told["controls"]]},
        lambda told: {"controls": [control | {"sentence": 3} for control in told["controls"]]},
        lambda told: {"controls": [control | {"more": 1} for control in told["controls"]]},
        lambda _: ["nothing"],
    ],
    ids=["none", "one-less", "failed", "no-truth", "no-text", "more", "a-list"],
)
def test_an_entry_without_every_control_counts_as_none(plays: list[list[Control]], damage) -> None:  # type: ignore[no-untyped-def]
    asked()
    place = module._place()
    place.write_text(json.dumps(damage(json.loads(place.read_text()))))
    assert asked() == GOOD and not plays


def test_other_code_plays_its_controls_anew(
    plays: list[list[Control]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The digest reads the rooms of the generators and of the attacks too."""
    asked()
    before = module._place()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "dpsgd.py").write_text("# no clipping any more\n")
    module._digest.cache_clear()
    monkeypatch.setattr(dpsynth.models, "__path__", [str(tmp_path / "models")])
    try:
        assert module._place() != before
    finally:
        module._digest.cache_clear()


def test_without_a_place_to_keep_them_they_are_played(
    plays: list[list[Control]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert asked() == GOOD and asked() == GOOD


def outcomes(*plays: tuple[bool, bool]) -> list[bool]:
    """Say what a leak and a table without one come to, from what they did in each play."""
    left = [
        [replace(GOOD[3], passed=leak), replace(GOOD[4], passed=silent)] for leak, silent in plays
    ]
    controls = module.tried(lambda: left.pop(0))
    assert not left
    return [one.passed for one in controls]


def test_a_leak_that_was_missed_by_chance_is_played_once_more() -> None:
    assert (GOOD[3].kind, GOOD[4].kind) == ("positive", "negative")
    assert outcomes((True, True)) == [True, True]
    assert outcomes((False, True), (True, True)) == [True, True]
    assert outcomes((False, True), (False, True)) == [False, True]  # it cannot see the leak


def test_no_other_play_takes_back_an_accusation() -> None:
    assert outcomes((True, False)) == [True, False]
    assert outcomes((False, False), (True, True)) == [True, False]
    assert outcomes((False, True), (True, False)) == [True, False]


def test_the_real_tables_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    real = RealTables.read

    def counted(*given: Any) -> RealTables:
        read.append(given)
        return real(*given)

    monkeypatch.setattr(RealTables, "read", counted)
    board = module._Board(np.random.default_rng(1))
    generator = SimpleNamespace(sample=lambda rows, rng: board.cohort(board.source).codes[:, 0])
    first, second = board.tables(generator), board.tables(generator)
    assert len(read) == 1 and first.source is second.source


@pytest.mark.long
def test_every_control_does_what_it_must() -> None:
    controls = module.play(np.random.default_rng(11), silent)
    assert (
        tuple((control.key, control.kind, control.attack) for control in controls) == module.EVERY
    )
    assert [control.sentence for control in controls if not control.passed] == []
