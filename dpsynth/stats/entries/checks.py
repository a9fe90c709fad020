"""What reads the parts of a request: its schema, the keys of its objects, pairs of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth._util.arguments import type_name
from dpsynth._util.messages import did_you_mean, listed
from dpsynth.errors import InputError
from dpsynth.schema import AnySchema, LinkedSchema, Schema, any_from_dict, as_declared, load_any


def read_any_schema(value: Any) -> AnySchema:
    """Read a schema of one table, or of linked ones, from its name, its path, or its document.

    Raises:
        InputError: it is none, or a draft.
    """
    if not isinstance(value, str | Mapping):
        raise InputError("schema must be the name of a schema, its path, or its document")
    schema = load_any(value) if isinstance(value, str) else any_from_dict(dict(value))
    schema.require_complete()
    return schema if isinstance(schema, LinkedSchema) else as_declared(schema)


def table_schema(value: Any) -> Schema:
    """Read the schema of one table, as `read_any_schema` does.

    Raises:
        InputError: it is none, or one of linked tables.
    """
    schema = read_any_schema(value)
    if isinstance(schema, LinkedSchema):
        raise InputError(
            "the schema is of linked tables; give the schema of one table, and a file of its rows"
        )
    return schema


def check_keys(
    document: Mapping[str, Any], place: str, known: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    """Require all keys that are needed, and none that is not known.

    Raises:
        InputError: with the key, and those that are known.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"{place} must be an object, not {type_name(document)}")
    for key in document:
        if key not in known:
            meant = did_you_mean(str(key), known)
            raise InputError(f"{place} has no key '{key}'{meant}; keys: {listed(list(known))}")
    for key in needed:
        if key not in document:
            raise InputError(f"{place} has no '{key}'")


def two_numbers(value: Any) -> bool:
    """Whether a value is a list of two numbers."""
    return isinstance(value, list) and [type(n) in (int, float) for n in value] == [True, True]
