"""The list of mutations: each can still be applied, and names tests that are there. None is run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PITFALLS = {*(f"P{number:02}" for number in range(1, 32)), "ledger", "accounting"}


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from mutant_trial import listed

    return listed()


def test_there_are_many_of_distinct_names_and_changes(mutants: tuple[Any, ...]) -> None:
    assert len(mutants) >= 50
    assert [name for name, times in Counter(m.name for m in mutants).items() if times > 1] == []
    changes = Counter((m.file, m.old, m.new) for m in mutants)
    assert [change for change, times in changes.items() if times > 1] == []


def test_each_changes_one_line_that_is_there_once(mutants: tuple[Any, ...]) -> None:
    for mutant in mutants:
        assert mutant.old != mutant.new, mutant.name
        assert "\n" not in mutant.old + mutant.new, mutant.name
        text = (ROOT / mutant.file).read_text()
        assert text.count(mutant.old) == 1, (mutant.name, mutant.file)
        ast.parse(mutant.applied(text), mutant.name)


def test_a_change_that_does_not_fit_is_refused(mutants: tuple[Any, ...]) -> None:
    for text in ("", 2 * mutants[0].old):
        with pytest.raises(ValueError, match="other than once"):
            mutants[0].applied(text)


def test_each_says_what_it_is_about_and_names_tests(mutants: tuple[Any, ...]) -> None:
    for mutant in mutants:
        assert mutant.pitfall in PITFALLS and mutant.why and mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("[")[0].partition("::")
            text = (ROOT / file).read_text()
            assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE), test


def test_they_are_spread_over_rooms_and_pitfalls(mutants: tuple[Any, ...]) -> None:
    """No room and no kind of pitfall is left out."""
    assert {mutant.file.partition("/")[0] for mutant in mutants} == {
        "dpsynth",
        "eval",
        "models",
    }
    assert len({mutant.file for mutant in mutants}) >= 30
    assert len({mutant.pitfall for mutant in mutants}) >= 20
