"""Goodness of fit of a run: the figures that its generator keeps, and none if it keeps none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.schema import Schema
from dpsynth.synthesis import GoodnessOfFit, Run, goodness_of_fit


def run(**arrays: npt.NDArray[np.float64]) -> Run:
    return Run(Schema.load("demo"), "mixture", {}, arrays, None, ("not-private",))


def test_the_share_of_missed_cells_is_that_of_the_run() -> None:
    found = goodness_of_fit(run(fitness=np.array([400.0, 3.0, 5.25])))
    assert found == GoodnessOfFit(400, 3, 5.25)
    assert found.to_dict() == {"cells": 400, "off": 3, "share": 0.0075, "furthest": 5.25}
    assert str(found).startswith("0.75 % of 400 measured cells are missed")


def test_a_run_that_keeps_none_says_none() -> None:
    assert goodness_of_fit(run(shares=np.ones(3))) is None


def test_without_measured_pairs_no_share_is_told() -> None:
    found = goodness_of_fit(run(fitness=np.array([0.0, 0.0, 0.0])))
    assert found is not None and found.share == 0
    assert str(found) == "no pair of columns was measured"
