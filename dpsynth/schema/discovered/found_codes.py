"""A schema with the codes that a fit has found, and without them.

A fit's plan, its charge and the digest of its schema are about what was declared: they exist before
a code is found. The run and the bundle hold the list, because their tables are coded by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from dpsynth.schema.column import Column
from dpsynth.schema.facts import Facts

AnyFacts = TypeVar("AnyFacts", bound=Facts)


def with_found(schema: AnyFacts, found: Mapping[str, tuple[str, ...] | None]) -> AnyFacts:
    """Return the schema whose columns have these codes; None stands for not looked for yet."""
    columns = tuple(
        _with_codes(column, found[column.name]) if column.name in found else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def as_declared(schema: AnyFacts) -> AnyFacts:
    """Return the schema as it was before any fit found a code."""
    found = {column.name: None for column in schema.columns if column.discovers}
    return with_found(schema, found) if found else schema


def _with_codes(column: Column, found: tuple[str, ...] | None) -> Column:
    assert column.codes is not None and column.codes.discovery is not None
    before = column.codes
    codes = replace(before, discovery=replace(column.codes.discovery, found=found))
    others = {text: label for text, label in column.labels.items() if text not in before.labels}
    return replace(
        column,
        codes=codes,
        categories=codes.categories,
        labels={**codes.labels, **others},  # reasons have labels, too
    )
