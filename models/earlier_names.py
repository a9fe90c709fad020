"""What generators were called before: documents keep the word that was charged and certified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EARLIER = {"autoregressive": "tvae"}
"""What documents call a generator that were written before it had its name; see `generator_of`."""


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
