"""P16: a checkpoint holds the state of a random generator, so that noise to come is known.

The check: names of all that a checkpoint holds are those of what mechanisms released, and only its
owner can read it.
"""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from dpsynth.models import TrainingState
from dpsynth.synthesis import checkpoints
from dpsynth.synthesis.checkpoints import FitCheckpoints

from .stopped_fits import PLACES, Office

pytestmark = pytest.mark.usefixtures("few_steps", "quick_plans")


def parts(path: Path) -> tuple[set[str], set[str]]:
    """Names of arrays and of settings in a checkpoint."""
    with safe_open(path, "np") as file:
        arrays = set(file.keys())
    kept = FitCheckpoints.__new__(FitCheckpoints)
    kept.path, kept.facts = path, dict.fromkeys(checkpoints._WORDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "_WORDS", {})
        kept._read()
    assert kept.state is not None
    return arrays, set(kept.state.config)


RELEASED = {"weights", "tables", "bin_of", "shares", "grains"}
RELEASED |= {"target.one", "target.one_sd", "target.pairs", "target.pair_sd"}
RELEASED |= {"released.one", "released.places", "released.cells", "released.sigmas"}
RELEASED |= {"released.units", "released.one_sd"}
NETWORKS = (
    "trainer.",
    "within",
    "thresholds.",
    "generator.weights.",
    "generator.memory.",
    "generator.moment",
)


def holds_what_was_released(path: Path) -> bool:
    arrays, config = parts(path)
    own = {name for name in arrays if name.startswith(NETWORKS)}
    return arrays - own <= RELEASED and config <= {"clipping_norm"}


@pytest.mark.parametrize("model", ["autoregressive", "ctgan"])
def test_a_checkpoint_holds_what_was_released_and_is_private(
    model: str, stopping: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping.settings = {"model": model}
    stopping.stopped(*PLACES["training"])
    assert stat.S_IMODE(stopping.checkpoint.stat().st_mode) == 0o600
    assert stat.S_IMODE(stopping.checkpoint.parent.stat().st_mode) == 0o700
    assert holds_what_was_released(stopping.checkpoint)
    content = stopping.checkpoint.read_bytes()
    assert b"p0001" not in content and b"free text" not in content
    save = FitCheckpoints.save

    def with_a_generator(self: Any, state: TrainingState) -> None:  # the broken version
        words = {"generator": str(np.random.default_rng(1).bit_generator.state)}
        save(self, replace(state, config={**state.config, **words}))

    monkeypatch.setattr(FitCheckpoints, "save", with_a_generator)
    stopping.stopped("training", 1.0)
    assert not holds_what_was_released(stopping.checkpoint)
