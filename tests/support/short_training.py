"""Short training of generators, with every other setting as it is shipped."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Any

import pytest

from dpsynth.models import Domain, Preset, presets, spec_of
from dpsynth.models.generators import pair_settling
from dpsynth.models.histories import domain, generator
from dpsynth.models.histories.networks import autoregressive, choice, scoring
from dpsynth.models.histories.persons import network
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import StepSettings, distilled, log_linear
from dpsynth.models.presets import STEPS
from dpsynth.privacy import PoissonSgd, PrivacyBudget, Share
from dpsynth.privacy.events import UNDECIDED

FEW = {"mixture_steps": 60, "components": 40, "warm_steps": 20, "steps": 15, "settling_steps": 5}


def shorten_training(patch: pytest.MonkeyPatch) -> None:
    """Let neural generators train for few steps, until the patch is undone."""
    shipped = Preset.of

    def of(model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
        chosen = shipped(model, domain, budget)
        return replace(chosen, **FEW) if spec_of(model).preset else chosen

    patch.setattr(Preset, "of", of)
    patch.setattr(pair_settling, "ROWS", 2_000)


def shorten_distilling(patch: pytest.MonkeyPatch) -> None:
    """Let a network learn little from its mixture, until the patch is undone."""
    few = {"masked": 8, "warm_steps": 15}

    @wraps(presets.distilled_training)
    def short(level: int, units: int) -> dict[str, Any]:
        return few

    patch.setattr(presets, "distilled_training", short)
    patch.setattr(pair_settling, "ROWS", 5_000)


def shorten_mixture(patch: pytest.MonkeyPatch) -> None:
    """Fit a mixture of few products in few steps, until the patch is undone."""
    shipped = Preset.of

    def of(model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
        return replace(shipped(model, domain, budget), components=100, mixture_steps=60)

    patch.setattr(Preset, "of", of)


def shorten_histories(patch: pytest.MonkeyPatch) -> None:
    """Fit histories with few bins, components and steps, until the patch is undone."""
    steps = StepSettings(16, 10, 10, 1.0)
    patch.setattr(HistorySettings, "of", lambda *_: HistorySettings(10, 20, 10, 1.0, 1.0, steps))
    for module, name, value in (
        (distilled, "ROWS", 2_000),
        (distilled, "SETTLING", 4_000),
        (network, "STEPS", 20),
    ):
        patch.setattr(module, name, value)
    shorten_gaps(patch)


def shorten_gaps(patch: pytest.MonkeyPatch) -> None:
    """Calibrate gaps between rows on few patients, in few rounds."""
    patch.setattr("dpsynth.models.histories.generator.CHAINS", 200)
    patch.setattr("dpsynth.models.histories.steps.gap_factors.ROUNDS", 2)


def shorten_networks(patch: pytest.MonkeyPatch) -> None:
    """Let networks of histories learn from few drawn rows before their private steps."""
    for module, name, value in (
        (distilled, "ROWS", 2_000),
        (distilled, "STEPS", 20),
        (distilled, "SETTLING", 4_000),
        (network, "STEPS", 20),
        (log_linear, "ROWS", 2_000),
        (log_linear, "STEPS", 20),
        (scoring, "STEPS", 20),
        (generator, "PATIENTS", 500),
        (autoregressive, "PATIENTS", 500),
        (autoregressive, "REHEARSAL", 500),
    ):
        patch.setattr(module, name, value)


def take_steps_of_histories(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Let networks of histories take so many private steps, each with a tenth of the patients."""
    few = Share(PoissonSgd(STEPS, 0.1, steps, UNDECIDED), 0.3)
    patch.setattr(choice, "scoring", lambda _: few)


def shorten_histories_most(patch: pytest.MonkeyPatch, *, wide: int = 3) -> None:
    """Let fits of histories run every part of them and learn next to nothing.

    Rows of so many columns as ``wide`` have networks; by default, three are enough.
    """
    shorten_histories(patch)
    shorten_networks(patch)
    shorten_gaps(patch)
    patch.setattr(domain, "WIDE", wide)
    for module, name in (
        (distilled, "ROWS"),
        (distilled, "SETTLING"),
        (log_linear, "ROWS"),
        (generator, "PATIENTS"),
        (autoregressive, "PATIENTS"),
        (autoregressive, "REHEARSAL"),
    ):
        patch.setattr(module, name, 200)
    patch.setattr("dpsynth.models.marginals.product_fit.MAX_ROUNDS", 1)
    for module in (distilled, log_linear, network, scoring):
        patch.setattr(module, "STEPS", 4)
    patch.setattr(generator, "CHAINS", 60)
    patch.setattr("dpsynth.models.histories.networks.training.AT_ONCE", 600)
