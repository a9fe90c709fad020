"""Rates seen in repeated trials, with bounds that hold however few the trials were."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """So many hits in so many independent trials.

    Attributes:
        hits: from 0 to ``runs``.
        runs: at least 1.
    """

    hits: int
    runs: int

    def __post_init__(self) -> None:
        """Refuse what is no count of trials."""
        if not 0 <= self.hits <= self.runs or self.runs < 1:
            raise ValueError(f"{self.hits} hits in {self.runs} runs are no rate")

    @property
    def value(self) -> float:
        """Share of hits."""
        return self.hits / self.runs

    def bounds(self, fails: float) -> tuple[float, float]:
        """Return bounds of the true rate from below and from above.

        Each of the two fails to hold with probability ``fails`` at most (Clopper and Pearson, The
        Use of Confidence or Fiducial Limits, Biometrika 26, 1934).
        """
        from scipy.special import betaincinv

        hits, misses = self.hits, self.runs - self.hits
        low = float(betaincinv(hits, misses + 1, fails)) if hits else 0.0
        high = 1 - float(betaincinv(misses, hits + 1, fails)) if misses else 1.0
        return low, high
