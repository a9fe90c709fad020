"""Calibration: of the rows of which a model says 30 %, is it 30 %?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Measure, about
from dpsynth.eval.utility.scores import bootstrap, spread
from dpsynth.eval.utility.trial import Trial

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS = 10


def equal_bins(scores: Floats, count: int = BINS) -> Ints:
    """Return the bin of each row: ``count`` bins of equally many rows by score, ties together."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, count + 1)[1:-1]))
    return np.searchsorted(cuts, scores, side="right").astype(np.int64)


def calibration_error(
    scores: Floats, positive: Floats, bins: Ints, weights: Floats | None = None
) -> float:
    """Return the expected calibration error: |mean score - share of the class|, by bin, averaged.

    Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning,
    AAAI 2015, section 4; here with bins of equally many rows. 0 is best, 1 is worst.
    """
    weight = np.ones(len(scores)) if weights is None else weights
    off = np.bincount(bins, weights=weight * (scores - positive))
    total = weight.sum()
    return float(np.abs(off).sum() / total) if total else float("nan")


def reliability(scores: Floats, positive: Floats) -> list[dict[str, Any]]:
    """Return mean score, share of the class and rows of each bin, by rising score."""
    bins = equal_bins(scores)
    rows = np.bincount(bins)
    sums = np.bincount(bins, weights=scores)
    true = np.bincount(bins, weights=positive)
    return [
        {"predicted": float(sums[b] / rows[b]), "observed": float(true[b] / rows[b]), "n": int(n)}
        for b, n in enumerate(rows)
        if n
    ]


def calibration(trial: Trial, rng: np.random.Generator) -> Measure:
    """Measure the calibration error of a model that learned from synthetic rows.

    The interval is normal, by the standard error of a bootstrap of the test's units.
    """
    bins = {side: equal_bins(scores) for side, scores in trial.scores.items()}

    def errors(weights: Floats | None = None) -> list[float]:
        return [
            calibration_error(trial.scores[side], trial.truth, bins[side], weights) for side in bins
        ]

    values = dict(zip(bins, errors(), strict=True))
    error = spread(bootstrap(errors, trial.test.units, rng)[:, list(bins).index("synthetic")])
    estimate = about(
        values["synthetic"], error, len(trial.truth),
        reference=values["source"], chance=values["chance"], minimum=0.0, maximum=1.0,
    )  # fmt: skip
    return Measure(
        f"calibration:{trial.task.name}",
        f"Calibration error of boosting trained on synthetic rows, {trial.task.title}",
        estimate,
        0.0,
        "How far the risks that the model states are from the shares that real rows show, on "
        "average; a large value means risks that are too high or too low.",
    )
