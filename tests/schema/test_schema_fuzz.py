"""Fuzz: whatever stands anywhere in a document, the answer is a schema or a list of mistakes."""

from __future__ import annotations

import copy
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.schema import Schema
from dpsynth.schema.schema import SchemaDocument

BASE = Schema.load("demo").to_dict()


def keys_of(part: Any) -> Any:
    """The keys of a mapping or list; of anything else none."""
    return range(len(part)) if type(part) is list else part if type(part) is dict else ()


def paths(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    deeper = [path for key in keys_of(value) for path in paths(value[key], (*way, key))]
    return [way] * bool(way) + deeper


WORDS = ["TODO", "other", "missing", "unit", "drop", "date", "window", "", "x", "1", "2000-01-01"]
SCALARS = st.sampled_from([*WORDS, None, True, b"x", date(2000, 1, 1), datetime(2000, 1, 1, 3)])
SCALARS |= st.integers() | st.floats() | st.text() | st.just(10**400)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3),
    max_leaves=4,
)


Changes = list[tuple[tuple[Any, ...], Any]]


def changes_of(base: Any) -> st.SearchStrategy[Changes]:
    """Up to three values anywhere in a document."""
    return st.lists(st.tuples(st.sampled_from(paths(base)), VALUES), min_size=1, max_size=3)


def check_changed(kind: type[SchemaDocument], base: Any, changes: Changes) -> None:
    """A changed document gives a schema that round-trips, or an error in words."""
    document: Any = copy.deepcopy(base)
    for (*way, last), value in changes:
        part = document
        for key in way:
            part = part[key] if key in keys_of(part) else None
        if last in keys_of(part):
            part[last] = value
    try:
        schema = kind.from_dict(document)
    except SchemaError as error:
        assert str(error)
    else:
        assert kind.from_dict(schema.to_dict()) == schema


@settings(max_examples=150, deadline=None)
@given(changes_of(BASE))
def test_any_value_anywhere_gives_a_schema_or_a_schema_error(changes: Changes) -> None:
    check_changed(Schema, BASE, changes)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(changes_of(BASE))
def test_many_values_anywhere_give_a_schema_or_a_schema_error(changes: Changes) -> None:
    check_changed(Schema, BASE, changes)
