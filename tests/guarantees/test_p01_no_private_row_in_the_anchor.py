"""P01: the anchor of a private step is neither clipped nor noised, so no private row may be in it.

The check: two fits from one seed, with private steps that change nothing; in one of them all
private units are replaced by others when they are drawn. What is given as anchor is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from dpsynth.models import spec_of
from dpsynth.models.dpsgd import DpSgd, Units
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PaidEntropy, SeededEntropy
from dpsynth.schema import Schema

from ..support.quick_fit import quick_fit

NEURAL = [name for name in NAMES if spec_of(name).neural]

Visits = Callable[[int], pd.DataFrame]


def flat(anchor: Any) -> Tensor:
    parts = anchor if isinstance(anchor, tuple) else (anchor,)
    return torch.cat([part.flatten().double() for part in parts])


def anchors(
    model: str, schema: Schema, frame: pd.DataFrame, *, others: bool, patch: pytest.MonkeyPatch
) -> list[Tensor]:
    """The anchors of all steps of a fit; with ``others``, every unit that is drawn is another."""
    anchors_used: list[Tensor] = []
    draw = Units.batch

    def drawn(self: Units, chosen: Any) -> tuple[Tensor, Tensor]:
        rows, weights = draw(self, chosen)
        return (torch.zeros_like(rows), torch.ones_like(weights)) if others else (rows, weights)

    def still(self: DpSgd, loss: Any, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        self._drawn = None
        self.steps_taken += 1
        anchors_used.append(flat(anchor))

    with patch.context() as patched:
        patched.setattr(Units, "batch", drawn)
        patched.setattr(DpSgd, "step", still)
        patched.setattr(PaidEntropy, "unused", ())  # a fit that takes no step would not be kept
        quick_fit(frame, schema, epsilon=2.0, delta=1e-5, model=model, entropy=SeededEntropy(5))
    assert len(anchors_used) == 5
    return anchors_used


def sees_no_private_row(
    model: str, schema: Schema, frame: pd.DataFrame, patch: pytest.MonkeyPatch
) -> bool:
    ours, theirs = (
        anchors(model, schema, frame, others=others, patch=patch) for others in (False, True)
    )
    return all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", NEURAL)
def test_the_anchor_is_the_same_whoever_is_drawn(
    model: str, clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sees_no_private_row(model, clinic, visits(120), monkeypatch)


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_private_rows_as_an_anchor_are_caught(
    clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: the rows of the step itself hold it, as they would in a plain fit."""
    of = Units.of.__func__  # type: ignore[attr-defined]
    known: list[Units] = []

    def keeping(cls: type[Units], *arguments: Any) -> Units:
        known.append(of(cls, *arguments))
        return known[-1]

    def private(rows: Tensor, step: int, size: int) -> Tensor:
        if not known:
            return rows[:size, None]  # warming up, before any unit is known
        return known[-1].batch(np.arange(size) % len(known[-1]))[0][:, :1]

    monkeypatch.setattr(Units, "of", classmethod(keeping))
    monkeypatch.setattr("dpsynth.models.generators.training.in_turn", private)
    assert not sees_no_private_row("tvae", clinic, visits(120), monkeypatch)
