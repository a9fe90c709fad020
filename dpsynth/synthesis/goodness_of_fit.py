"""Goodness of fit of a run: the measured cells that it misses by more than their noise.

The counts were released, and the scale of their noise is public, so the figure costs nothing and
may be shown to anybody. If noise alone parted model and counts, 0.27 % of the cells would be missed
by more than 3 standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth.synthesis.run import Run

ERRORS = 3  # standard errors
BY_CHANCE = 0.0027  # share of cells beyond them, of a normal distribution


@dataclass(frozen=True)
class GoodnessOfFit:
    """Measured cells that a run misses.

    Attributes:
        cells: that were measured.
        off: how many of them are missed by more than 3 standard errors.
        furthest: standard errors by which the worst of them is missed.

    Example:
        >>> print(GoodnessOfFit(2000, 12, 4.51))
        0.60 % of 2,000 measured cells are missed by more than 3 errors (0.27 % by chance)
    """

    cells: int
    off: int
    furthest: float

    @property
    def share(self) -> float:
        """Share of the measured cells that are missed."""
        return self.off / self.cells if self.cells else 0.0

    def __str__(self) -> str:
        """Say it in one line."""
        if not self.cells:
            return "no pair of columns was measured"
        cells = counted(self.cells, "measured cell")
        chance = f"{BY_CHANCE:.2%} by chance"
        text = f"{self.share:.2%} of {cells} are missed by more than {ERRORS} errors ({chance})"
        return text.replace("%", " %")

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        share = float(f"{self.share:.4g}")
        return {"cells": self.cells, "off": self.off, "share": share, "furthest": self.furthest}


def goodness_of_fit(run: Run) -> GoodnessOfFit | None:
    """Read the goodness of fit that a run keeps; None if its generator keeps none.

    Args:
        run: of one table or of linked ones.
    """
    from dpsynth.models.marginals import Fitness
    from dpsynth.models.marginals.released import FITNESS

    if FITNESS not in run.arrays:
        return None
    fitness = Fitness.restore(run.arrays)
    return GoodnessOfFit(fitness.cells, fitness.off, fitness.furthest)
