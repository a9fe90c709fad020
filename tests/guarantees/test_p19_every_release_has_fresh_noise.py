"""P19: noise that is left out now and then, shared, or used twice, in any release of a whole fit.

A game of many runs measures the scale of the noise; it hardly sees noise that is missing once in
fifty releases, or that two tables share. So the noise of every table and of every step of a fit is
looked at itself: what was released, less what would have been released without noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.models import spec_of
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.generators import independent
from dpsynth.models.marginals import measurement
from dpsynth.models.registry import NAMES
from dpsynth.schema import Schema

from ..support.bare_counts import Silence

NEURAL = [name for name in NAMES if spec_of(name).neural]

Visits = Callable[[int], pd.DataFrame]
FIT: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dataset": "clinic", "without_ledger": True}


class Noises:
    """The noise of each release, in order; kind by kind."""

    def __init__(self) -> None:
        self.tables: list[np.ndarray] = []
        self.steps: list[np.ndarray] = []

    def listening_to(self, mechanism: Callable[..., Any]) -> Callable[..., Any]:
        def release(*given: Any) -> Any:
            tables = mechanism(*given)
            exact = mechanism(*given[:-1], Silence(0))
            self.tables += [(a - b).ravel() for a, b in zip(tables, exact, strict=True)]
            return tables

        return release

    def of_a_step(self, noise: Callable[[DpSgd], Any]) -> Callable[[DpSgd], Any]:
        def draw(trainer: DpSgd) -> Any:
            drawn = noise(trainer)
            self.steps.append(drawn.numpy().copy())
            return drawn

        return draw


def faults(noises: list[np.ndarray], what: str, *, fewest: int) -> list[str]:
    """Say where noise is missing, is the same for all cells, or is that of another release.

    Releases of fewer cells than ``fewest`` are left out: chance may make their noise equal.
    """
    found: list[str] = []
    places: dict[bytes, int] = {}
    for number, noise in enumerate(noises):
        first = noise[:fewest]
        if len(first) < fewest:
            continue
        if not first.any():
            found.append(f"{what} {number} has no noise")
        elif len(set(first.tolist())) == 1:
            found.append(f"{what} {number} has one noise for all cells")
        for key in (first.tobytes(), (-first).tobytes()):
            if key in places:
                found.append(f"{what} {number} has the noise of {what} {places[key]}")
        places[first.tobytes()] = number
    return found


def heard(model: str, clinic: Schema, visits: Visits, **broken: Any) -> Noises:
    noises = Noises()
    with (
        mock.patch.object(
            measurement, "joint_histograms", noises.listening_to(measurement.joint_histograms)
        ),
        mock.patch.object(
            measurement, "chosen_histograms", noises.listening_to(measurement.chosen_histograms)
        ),
        mock.patch.object(
            independent, "joint_histograms", noises.listening_to(independent.joint_histograms)
        ),
        mock.patch.object(DpSgd, "_noise", noises.of_a_step(broken.get("noise", DpSgd._noise))),
    ):
        dpsynth.fit(visits(200), clinic, model=model, **FIT)
    return noises


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", NAMES)
def test_every_table_and_every_step_has_noise_of_its_own(
    model: str, clinic: Schema, visits: Visits
) -> None:
    noises = heard(model, clinic, visits)
    assert len(noises.tables) >= 5
    assert (len(noises.steps) == 5) == (model in NEURAL)
    assert faults(noises.tables, "table", fewest=24) == []
    assert faults(noises.steps, "step", fewest=24) == []


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (lambda draw, n, kept: draw if n != 3 else draw * 0, "step 3 has no noise"),
        (lambda draw, n, kept: kept if n == 4 else draw, "step 4 has the noise of step 0"),
        (lambda draw, n, kept: -kept if n == 2 else draw, "step 2 has the noise of step 0"),
        (lambda draw, n, kept: draw * 0 + draw[0] if n == 1 else draw, "step 1 has one noise"),
    ],
)
def test_noise_that_is_missing_once_shared_or_used_again_is_found(
    broken: Callable[..., Any], fault: str, clinic: Schema, visits: Visits
) -> None:
    whole, kept = DpSgd._noise, []

    def noise(trainer: DpSgd) -> Any:
        drawn = whole(trainer)
        kept.append(drawn.clone())
        return broken(drawn, len(kept) - 1, kept[0].clone())

    noises = heard("tvae", clinic, visits, noise=noise)
    assert any(fault in each for each in faults(noises.steps, "step", fewest=24))


def test_tables_that_share_their_noise_are_found() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.integers(-9, 9, 40) for _ in range(6)]
    assert faults(tables, "table", fewest=24) == []
    assert faults([*tables, tables[2]], "table", fewest=24) == ["table 6 has the noise of table 2"]
    assert faults([*tables, 0 * tables[2]], "table", fewest=24)[0] == "table 6 has no noise"
