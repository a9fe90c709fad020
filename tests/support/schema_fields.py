"""Fields of a schema document, each in one line."""

from __future__ import annotations

from typing import Any


def schema_field(name: str, type_: str, own: str | Any = None, **constraints: Any) -> Any:
    """A field; ``own`` is its `dpsynth` object, or the basis of its bounds."""
    own = {"bounds_basis": own} if isinstance(own, str) else own or {}
    return {"name": name, "type": type_, "constraints": constraints, "dpsynth": own}
