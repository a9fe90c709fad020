"""A package with more tests than a fit can count is refused by name, before any charge."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import ChosenHistograms
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import prepare
from dpsynth.synthesis.preparation import MAX_COLUMNS

from ..support.linked_tables import package


def with_tests(number: int) -> LinkedSchema:
    document: dict[str, Any] = copy.deepcopy(package())
    document["resources"][1]["dpsynth"]["series"]["tests"] |= {
        f"t{test}": {"minimum": 0, "maximum": 9, "step": 1, "bounds_basis": "x"}
        for test in range(number)
    }
    return LinkedSchema.from_dict(document)


def test_too_many_tests_are_refused_with_their_table() -> None:
    with pytest.raises(InputError, match="table labs has 402 tests: declare those that you need"):
        prepare(with_tests(400), epsilon=3, delta=1e-6)


def test_hundreds_of_tests_are_planned() -> None:
    prepared = prepare(with_tests(250), epsilon=3, delta=1e-6, model="cohort")
    pairs = [one.most for one in prepared.plan.events if isinstance(one, ChosenHistograms)]
    assert max(pairs) > 500_000


def test_the_limit_is_that_of_an_event_that_counts_pairs() -> None:
    def event(columns: int) -> ChosenHistograms:
        return ChosenHistograms("pairs", columns * (columns - 1) // 2, 1, 2.0)

    event(MAX_COLUMNS)
    with pytest.raises(InputError, match="most must be a whole number"):
        event(MAX_COLUMNS + 1)


def test_many_wide_columns_are_refused_too() -> None:
    document: dict[str, Any] = copy.deepcopy(package())
    document["resources"][3]["schema"]["fields"] += [
        {"name": f"c{n}", "type": "string", "constraints": {"enum": ["a", "b"]}}
        | {"dpsynth": {"bounds_basis": "x"}}
        for n in range(MAX_COLUMNS)
    ]
    document["resources"] = [one for one in document["resources"] if one["name"] != "labs"]
    with pytest.raises(InputError, match="give columns that you do not need role drop"):
        prepare(LinkedSchema.from_dict(document), epsilon=3, delta=1e-6)
