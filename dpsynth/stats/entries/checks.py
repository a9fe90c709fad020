"""What reads the parts of a request: its schema, the keys of its objects, pairs of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth._util.messages import did_you_mean, listed
from dpsynth.errors import InputError
from dpsynth.schema import Schema, as_declared
from dpsynth.schema.files import TABLE, read_document

_LINKED = ".package.yaml"


def table_schema(value: Any) -> Schema:
    """Read the schema of one table from its name, its path, or its document.

    Raises:
        InputError: it is none, or one of linked tables.
    """
    if not isinstance(value, str | Mapping):
        raise InputError("schema must be the name of a schema, its path, or its document")
    document = read_document(value, (TABLE, _LINKED))[0] if isinstance(value, str) else value
    if isinstance(document, Mapping) and "resources" in document:
        raise InputError(
            "the schema is of linked tables, and statistics are of one table; give the schema of "
            "one table, and a file of its rows"
        )
    schema = Schema.load(value) if isinstance(value, str) else Schema.from_dict(dict(value))
    schema.require_complete()
    return as_declared(schema)


def check_keys(
    document: Mapping[str, Any], place: str, known: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    """Require all keys that are needed, and none that is not known.

    Raises:
        InputError: with the key, and those that are known.
    """
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
