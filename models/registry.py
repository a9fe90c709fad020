"""The generators by name. Looking one up imports its libraries, and only its own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.models.base import Generator

_HOMES = {
    "independent": ("dpsynth.models.generators.independent", "Independent"),
    "mixture": ("dpsynth.models.generators.mixture", "Mixture"),
    "tvae": ("dpsynth.models.generators.tvae", "Tvae"),
    "ctgan": ("dpsynth.models.generators.ctgan", "Ctgan"),
}

NAMES = tuple(_HOMES)
DEFAULT = "tvae"
AUTO = "auto"
"""Stands for the generator that `presets.choose` picks from public facts."""


def check_model(name: str) -> None:
    """Refuse the name of a generator that there is not.

    Raises:
        InputError: the message lists those there are.
    """
    if name not in _HOMES:
        raise InputError(f"model '{name}' does not exist; choose one of {', '.join(NAMES)}")


def generator_class(name: str) -> type[Generator]:
    """Return the generator of that name.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    check_model(name)
    module, attribute = _HOMES[name]
    return cast("type[Generator]", getattr(import_module(module), attribute))
