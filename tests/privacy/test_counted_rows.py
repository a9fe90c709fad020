"""Counts of rows that are counted where they lie: checked before any noise is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import JointHistograms, chosen_histograms, joint_histograms
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Silence

EVENT = JointHistograms("rows", 2, 3, 50.0)


@dataclass
class Elsewhere:
    """Two columns of two codes: four rows, unless ``answer`` says otherwise."""

    answer: Any = ((1, 3), (2, 2))
    columns: int = 2
    rows_per_unit: int = 3

    def counts(self, histograms: Any, sizes: Any, event: Any) -> Any:
        return [np.array(self.answer[place]) for (place,) in histograms]


def test_counts_get_noise_and_nothing_else() -> None:
    first, second = joint_histograms(Elsewhere(), (2, 2), EVENT, Silence(0))
    assert (first.tolist(), second.tolist()) == ([1, 3], [2, 2])


@pytest.mark.parametrize(
    ("rows", "sizes", "event", "problem"),
    [
        (Elsewhere(rows_per_unit=4), (2, 2), EVENT, "accounts for 3 rows per unit"),
        (Elsewhere(), (2, 2), replace(EVENT, sigma=UNDECIDED), "not decided"),
        (Elsewhere(columns=3), (2, 2), EVENT, "needs a size"),
        (Elsewhere(), (2, 0), EVENT, "needs a size"),
        (Elsewhere(((1, 3), (1, 2))), (2, 2), EVENT, "lack rows"),
        (Elsewhere(((1, 3, 0), (2, 2, 0))), (2, 2), EVENT, "another shape"),
        (Elsewhere(((5, -1), (2, 2))), (2, 2), EVENT, "another shape"),
        (Elsewhere(((1.0, 3.0), (2, 2))), (2, 2), EVENT, "another shape"),
        (Elsewhere(), (2, 2), replace(EVENT, histograms=3), "accounts for 3 histograms"),
    ],
)
def test_what_is_not_paid_for_is_refused(
    rows: Elsewhere, sizes: Any, event: JointHistograms, problem: str
) -> None:
    class Mute(Silence):
        def discrete_gaussian(self, sigma: float, size: int) -> Any:
            raise AssertionError("noise was drawn")

    with pytest.raises(InputError, match=problem):
        joint_histograms(rows, sizes, event, Mute(0))


def test_no_pair_asks_for_no_count() -> None:
    from dpsynth.privacy import ChosenHistograms

    event = ChosenHistograms("pairs", 1, 3, 50.0)
    assert chosen_histograms(Elsewhere(None), (2, 2), [], [], event, Silence(0)) == []
