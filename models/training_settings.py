"""Settings of the networks and their training, by level of epsilon and public number of units."""

from __future__ import annotations

from typing import Any

from dpsynth.models.presets import EXPECTED_UNITS, MIN_UNITS
from dpsynth.privacy import round_up

WARM_STEPS = 500  # of a network with a hidden layer


def autoregressive_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of the network and its training, by level of epsilon."""
    return {
        "training": (0.25, 0.25, 0.4)[level],
        "masked": (0, 64, 128)[level],
        "warm_steps": WARM_STEPS,
        "sampling_rate": min(0.1, max(0.01, round_up(EXPECTED_UNITS / units))),
        "steps": (200, 300, 400)[level],
        "learning_rate": (0.01, 0.005, 0.003)[level],
        "anchor": 2.0,
    }


def distilled_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of a network that learns from rows of the mixture alone.

    Where units are many, it adds up what each column says of the next: a hidden layer would also
    learn what single components say of rare rows, which is mostly noise. Where they are few, a
    hidden layer is as good, and sooner done.
    """
    if units >= MIN_UNITS:
        return {"masked": 0, "warm_steps": 3 * WARM_STEPS}
    return {"masked": 64, "warm_steps": WARM_STEPS}


def variational_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of encoder, decoder and their training, by level of epsilon.

    The private steps are those of `autoregressive`.
    """
    return autoregressive_training(level, units) | {
        "masked": 0,
        "hidden": 128,
        "latent": 16,
        "warm_steps": 2 * WARM_STEPS,
        "settling_steps": 4 * WARM_STEPS,
    }


def adversarial_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of a critic and its generator, by level of epsilon.

    The private steps are as many, and at the same rate, as those of `autoregressive`.
    """
    return autoregressive_training(level, units) | {
        "training": (0.1, 0.15, 0.4)[level],
        "masked": 0,
        "hidden": 64,
        "latent": 8,
        "learning_rate": 0.02,
        "anchor": 1.0,
        "rounds": 4,
    }
