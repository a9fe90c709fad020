"""Intervals of a synthetic table held against those of the source, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core.estimate import Z

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MIN_ROWS = 10  # with and without an indicator, with and without the outcome
FAR = 30.0  # log odds beyond this are shown as this


@dataclass(frozen=True, eq=False)
class Wald:
    """Coefficients of one table on a log scale, NaN where it has too few rows to tell.

    Attributes:
        values: one for each term.
        errors: their standard errors.
        shifts: what each coefficient would be without each group of units ``[groups, terms]``, to
            first order; for the interval of a mean overlap.
    """

    values: Floats
    errors: Floats
    shifts: Floats

    def interval(self, term: int) -> dict[str, float | None]:
        """Return the ratio, exp(coefficient), of a term, with its interval of 95 %."""
        if np.isnan(self.values[term]):
            return {"value": None, "low": None, "high": None}
        middle, half = self.values[term], Z * self.errors[term]
        ends = np.exp(np.clip([middle, middle - half, middle + half], -FAR, FAR))
        return dict(zip(("value", "low", "high"), map(_rounded, ends.tolist()), strict=True))


def overlap(a: Wald, b: Wald, without: int | None = None) -> Floats:
    """Return how much the intervals of each term overlap, between 0 (apart) and 1 (the same).

    The mean of two shares: of the common stretch in the one interval, and in the other (Karr et
    al., A Framework for Evaluating the Utility of Data Altered to Protect Confidentiality, American
    Statistician 60, 2006, section 3); intervals that are apart count 0, and so does a term that
    one table cannot tell.

    Args:
        a: of one table.
        b: of the other.
        without: the number of a group of units that is left out of both; None for none.
    """
    x, y = (w.values if without is None else w.shifts[without] for w in (a, b))
    common = np.minimum(x + Z * a.errors, y + Z * b.errors) - np.maximum(
        x - Z * a.errors, y - Z * b.errors
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = common * (1 / a.errors + 1 / b.errors) / (4 * Z)
    return np.asarray(np.where(np.isfinite(shares) & (common > 0), shares, 0.0))


def estimable(matrix: Floats, outcome: Floats) -> Flags:
    """Return which terms a table has rows enough for, and that no terms before them repeat.

    An indicator needs ten rows with and ten without it, of those with the outcome and of those
    without; a number needs to vary.
    """
    sums = np.stack([outcome, 1 - outcome]) @ matrix
    rows = np.array([[outcome.sum()], [len(outcome) - outcome.sum()]])
    enough = (np.minimum(sums, rows - sums) >= MIN_ROWS).all(axis=0)
    indicator = ((matrix == 0) | (matrix == 1)).all(axis=0)
    usable = enough | (~indicator & (matrix.std(axis=0) > 1e-9))
    places = np.flatnonzero(usable)
    usable[places] = _independent(np.cov(matrix[:, places], rowvar=False, ddof=0).reshape(
        len(places), len(places)
    ))  # fmt: skip
    return np.asarray(usable)


def _independent(covariance: Floats) -> Flags:
    """Return which columns are no combination of those before them: elimination, in order."""
    residual = covariance.copy()
    independent = np.zeros(len(residual), dtype=bool)
    for place in range(len(residual)):
        independent[place] = residual[place, place] > 1e-6 * covariance[place, place]
        if independent[place]:
            residual -= np.outer(residual[:, place], residual[place]) / residual[place, place]
    return independent


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def term_by_term(names: Sequence[str], source: Wald, synthetic: Wald) -> list[dict[str, Any]]:
    """List the intervals of each term by table, and how much they overlap."""
    shares = overlap(source, synthetic)
    return [
        {
            "term": name,
            "source": source.interval(k),
            "synthetic": synthetic.interval(k),
            "overlap": round(float(shares[k]), 6),
        }
        for k, name in enumerate(names)
    ]
