"""Codes that a fit discovers: as columns declare them, and as a fit has found them.

A schema with the codes that a fit has found, and without them.

A fit's plan, its charge and the digest of its schema are about what was declared: they exist before
a code is found. The run and the bundle hold the list, because their tables are coded by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from dpsynth._util.field_reader import FieldReader
from dpsynth.errors import InputError
from dpsynth.schema.code_systems.codes import (
    EXPECTED,
    MAX_FOUND,
    MOST,
    PATTERNS,
    Codes,
    Discovery,
    check_pattern,
)
from dpsynth.schema.column import Column, Facts

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


KEYS = ("discover", "system", "rollup", "groups", "pattern", "most", "expected", "found")


def read_discovered(part: FieldReader, column: Column) -> Column:
    """Read ``codes`` with ``discover: true``, with a code system or with a pattern alone."""
    if any(key in part.values for key in ("list", "omop")):
        part.mistake("discover", "a list says which codes there are; remove discover, or the list")
        return column
    if "several" in part.values:
        part.mistake(
            "discover",
            "codes are discovered where a cell holds one code; for several, declare a list, or a "
            "rollup without discover",
        )
        return column
    part.refuse_unknown(KEYS)
    system, rollup = part.text("system") or "", part.text("rollup") or ""
    if bool(system) != bool(rollup):
        part.mistake(None, "name a system and a rollup, like {system: ICD-9-CM, rollup: chapter}")
        return column
    pattern = _read_pattern(part, system)
    if pattern is None:
        return column
    discovery = Discovery(
        pattern, _read_number(part, "most", MOST), _read_number(part, "expected", EXPECTED)
    )
    codes = Codes(system, rollup, part.texts("groups") or (), discovery=discovery)
    try:
        codes = _with_found(part, codes)
        categories, labels = codes.categories, dict(codes.labels)
    except InputError as error:
        part.mistake(None, str(error))
        return column
    return replace(column, codes=codes, categories=categories, labels=labels)


def _read_pattern(part: FieldReader, system: str) -> str | None:
    pattern = part.text("pattern") or PATTERNS.get(system)
    if pattern is None:
        part.mistake(
            "pattern",
            "is missing: a code that is found is published, so declare what a code looks like, "
            r"such as [A-Z][0-9]{2}(\.[0-9]{1,2})?. Free text is not discovered; give it role drop",
        )
        return None
    try:
        return check_pattern(pattern)
    except ValueError as error:
        part.mistake("pattern", str(error))
        return None


def _read_number(part: FieldReader, key: str, default: int) -> int:
    value = part.whole(key, minimum=1)
    if value is not None and value > MAX_FOUND:
        part.mistake(key, f"is {value}; at most {MAX_FOUND:,} codes of a column")
        return default
    return default if value is None else value


def _with_found(part: FieldReader, codes: Codes) -> Codes:
    """Read the codes that a fit found: in a run or a bundle, never in a schema of one's own."""
    found = part.texts("found")
    if found is None:
        return codes
    assert codes.discovery is not None
    sound = len(found) <= codes.discovery.most and list(found) == sorted(found)
    if not sound or any(codes.candidate(code) != code for code in found):
        part.mistake("found", "is written by a fit, and this is not as it writes it; remove it")
        return codes
    return replace(codes, discovery=replace(codes.discovery, found=found))
