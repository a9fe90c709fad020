"""The list of mutations: each can still be applied, and names tests that are there. None is run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
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


@pytest.fixture(scope="module")
def places() -> Mapping[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        from mutant_places import definitions

        return definitions(ROOT)


def test_there_are_many_of_distinct_names_and_changes(mutants: tuple[Any, ...]) -> None:
    assert len(mutants) >= 50
    assert [name for name, times in Counter(m.name for m in mutants).items() if times > 1] == []
    changes = Counter((m.definition, m.old, m.new) for m in mutants)
    assert [change for change, times in changes.items() if times > 1] == []


def test_each_changes_one_line_of_one_definition(
    mutants: tuple[Any, ...], places: Mapping[str, Any]
) -> None:
    for mutant in mutants:
        assert mutant.old != mutant.new, mutant.name
        assert "\n" not in mutant.old + mutant.new, mutant.name
        place = mutant.place(places)  # fails unless there is one
        changed = place.own.replace(mutant.old, mutant.new)
        ast.parse(f"if True:\n{changed}" if changed[0].isspace() else changed, mutant.name)


def test_a_place_that_is_gone_or_there_twice_is_refused(
    mutants: tuple[Any, ...], places: Mapping[str, Any]
) -> None:
    one = mutants[0]
    place = one.place(places)
    moved = replace(place, file="dpsynth/elsewhere.py")
    assert one.place({one.definition: (moved,)}) is moved
    without = replace(place, text=place.text.replace(one.old, " " * len(one.old)))
    for found in ({}, {one.definition: (without,)}, {one.definition: (place, moved)}):
        with pytest.raises(ValueError, match="there has to be one"):
            one.place(found)


def test_each_says_what_it_is_about_and_names_tests(mutants: tuple[Any, ...]) -> None:
    for mutant in mutants:
        assert mutant.pitfall in PITFALLS and mutant.why and mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("[")[0].partition("::")
            text = (ROOT / file).read_text()
            assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE), test


def test_they_are_spread_over_rooms_and_pitfalls(
    mutants: tuple[Any, ...], places: Mapping[str, Any]
) -> None:
    """No room and no kind of pitfall is left out."""
    files = {mutant.place(places).file for mutant in mutants}
    assert {file.partition("/")[0] for file in files} == {"dpsynth", "eval", "models"}
    assert len(files) >= 30
    assert len({mutant.pitfall for mutant in mutants}) >= 20
