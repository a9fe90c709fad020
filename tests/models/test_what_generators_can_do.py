"""What the registry says that generators can do is what their classes can do."""

from __future__ import annotations

import inspect

import pytest

from dpsynth.errors import InputError
from dpsynth.models import check_linked, check_single, generator_class, histories_class, spec_of
from dpsynth.models.registry import KNOWN, LINKED, NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_generator_of_one_table_can_do_what_it_says(name: str) -> None:
    spec, kind = spec_of(name), generator_class(name)
    assert kind.name == name
    assert spec.on_device == hasattr(kind, "train_on")
    assert spec.conditional == hasattr(kind, "given")
    assert not spec.on_ranks or hasattr(kind, "train_with")
    assert not spec.resumable or "checkpoints" in inspect.signature(kind.fit).parameters
    assert not spec.in_warehouse or (spec.in_shards and not spec.neural)
    assert spec.neural or not (spec.on_ranks or spec.resumable)


@pytest.mark.parametrize("name", LINKED)
def test_a_generator_of_linked_tables_can_do_what_it_says(name: str) -> None:
    spec, kind = spec_of(name), histories_class(name)
    assert not spec.resumable or "checkpoints" in inspect.signature(kind.fit).parameters


def test_each_generator_learns_one_table_or_linked_ones() -> None:
    assert set(KNOWN) == {*NAMES, *LINKED}
    for name in set(KNOWN) - set(LINKED):
        with pytest.raises(InputError, match="is for a single table; linked tables are learned by"):
            check_linked(name)
    for name in set(KNOWN) - set(NAMES):
        with pytest.raises(InputError, match="is for linked tables; a single table is learned by"):
            check_single(name)
