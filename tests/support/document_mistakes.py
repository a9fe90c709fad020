"""Schema documents with one thing wrong, and what is said of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpsynth.errors import SchemaError
from dpsynth.schema.schema import SchemaDocument

GONE = object()


def with_value(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The document with one value set or removed."""
    document = copy.deepcopy(base)
    part: Any = document
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in way:
        part = part.setdefault(key, {}) if isinstance(part, dict) else part[key]
    if value is GONE:
        del part[last]
    else:
        part[last] = value
    return document


def problems_of(kind: type[SchemaDocument], document: Any) -> list[tuple[str, str]]:
    """Place and message of each mistake."""
    with pytest.raises(SchemaError) as caught:
        kind.from_dict(document)
    return [(problem.place, problem.message) for problem in caught.value.problems]
