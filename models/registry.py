"""The generators by name. Looking one up imports its libraries, and only its own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from dpsynth.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpsynth.models.base import Generator

_HOMES = {
    "independent": ("dpsynth.models.generators.independent", "Independent"),
    "mixture": ("dpsynth.models.generators.mixture", "Mixture"),
    "autoregressive": ("dpsynth.models.generators.autoregressive", "Autoregressive"),
    "tvae": ("dpsynth.models.generators.tvae", "Tvae"),
    "ctgan": ("dpsynth.models.generators.ctgan", "Ctgan"),
}

NAMES = tuple(_HOMES)
DEFAULT = "autoregressive"
EARLIER = {"autoregressive": "tvae"}
"""What documents call a generator that were written before it had its name; see `generator_of`."""

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


def generator_of(model: str, config: Mapping[str, Any]) -> str:
    """Name the generator that a fitted run is of.

    That is the run's ``model``, except for runs that were written when the autoregressive network
    was still called `tvae`: their ``config`` gives the latent vector width 0. Their documents keep
    the word that was charged and certified; code that rebuilds or names the generator asks here.

    Args:
        model: the word in the run's document.
        config: the generator's own description in it.

    Example:
        >>> generator_of("tvae", {"preset": {"latent": 0}})
        'autoregressive'
    """
    preset = config.get("preset")
    earlier = model == EARLIER["autoregressive"]
    if earlier and isinstance(preset, dict) and preset.get("latent") == 0:
        return "autoregressive"
    return model
