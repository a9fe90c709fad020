"""Declarations of histories are for the generator that keeps them; no other one fits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import prepare

from ..support.declared_tables import vitals
from ..support.linked_tables import number, package


def inside(document: dict[str, Any]) -> None:
    document["resources"][3]["schema"]["fields"].append(number("los", 0, 60))
    document["resources"][1]["dpsynth"]["inside"] = {"table": "visits", "length": "los"}


def schedule(document: dict[str, Any]) -> None:
    document["resources"][3]["dpsynth"]["schedule"] = [0, 100]


def rows(document: dict[str, Any]) -> None:
    document["resources"][4]["dpsynth"]["rows"] = {"exactly": 3}


def implies(document: dict[str, Any]) -> None:
    one = {"table": "events", "event": "mi", "implies": "stroke"}
    document["dpsynth"]["implies"] = [one]


def last_day(document: dict[str, Any]) -> None:
    document["dpsynth"]["last_day"] = True


def cumulative(document: dict[str, Any]) -> None:
    document["resources"][3]["schema"]["fields"][3]["dpsynth"]["cumulative"] = True


@pytest.mark.parametrize("declare", [inside, schedule, rows, implies, last_day, cumulative])
def test_each_is_for_one_generator(declare: Callable[[dict[str, Any]], None]) -> None:
    document = package()
    declare(document)
    schema = LinkedSchema.from_dict(document)
    with pytest.raises(InputError, match="model cohort does not; use --model latent, or remove"):
        prepare(schema, epsilon=3, delta=1e-6, model="cohort")
    assert prepare(schema, epsilon=3, delta=1e-6).model == "latent"


def test_so_is_a_package_of_a_grid() -> None:
    schema = LinkedSchema.from_dict(vitals())
    with pytest.raises(InputError, match="schema icu declares what histories keep"):
        prepare(schema, epsilon=3, delta=1e-6, model="cohort")
    assert prepare(schema, epsilon=3, delta=1e-6).model == "latent"
