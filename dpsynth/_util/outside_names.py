"""The full name of a generator of another package: the package, its version, and its own name."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
_FULL = re.compile(rf"({_NAME})==([A-Za-z0-9.!+_-]{{1,64}}):({_NAME})")
_ALLOWED = re.compile(rf"({_NAME})(?:==([A-Za-z0-9.!+_-]{{1,64}}))?:({_NAME})")


@dataclass(frozen=True)
class OutsideName:
    """Package, version and name, such as ``dpsynth-toy==0.1:toy``."""

    package: str
    version: str
    name: str

    def __str__(self) -> str:
        """Give the full name."""
        return f"{self.package}=={self.version}:{self.name}"


def outside_name(model: str) -> OutsideName | None:
    """Read a full name; None for any other text, such as the name of a generator of dpsynth."""
    match = _FULL.fullmatch(model)
    return None if match is None else OutsideName(*match.groups())


def is_allowance(text: str) -> bool:
    """Whether a text can stand in a policy's list: a full name, or one without its version."""
    return _ALLOWED.fullmatch(text) is not None


def allowances(model: str) -> tuple[str, ...]:
    """Return the texts that allow a model in a policy's list: its name, and without the version."""
    outside = outside_name(model)
    return (model,) if outside is None else (model, f"{outside.package}:{outside.name}")
