"""Error against epsilon, or against the population: a few simulated fits, and lines between them.

Between two fits the logarithm of the error is taken to be linear in the logarithm of epsilon or of
the population: noise alone gives a slope of -1, chance of the draw -1/2, and a floor 0. Errors that
rise by chance are levelled first, since more of either does not make a table worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

CLOSE = 0.12  # relative distance below the wanted error at which a search ends
AIM = 0.96  # of the wanted error: a fit's error moves by a few per cent by chance
TINY = 1e-9  # stands for no error
MAX_FITS = 4  # of a search
ROUNDING = 2  # significant digits of an epsilon or a population


@dataclass
class Curve:
    """Errors by epsilon or by population.

    Attributes:
        points: places and errors, in the order in which they were found.
        low: least place of a search.
        high: largest place of a search.
        whole: whether places are whole numbers.
    """

    low: float
    high: float
    whole: bool
    points: list[tuple[float, float]] = field(default_factory=list)

    def add(self, place: float, error: float) -> None:
        """Keep the error of a simulated fit."""
        self.points.append((place, error))

    def levelled(self) -> list[tuple[float, float]]:
        """Return the points by place, with errors that never rise: isotonic, on logarithms."""
        from sklearn.isotonic import isotonic_regression

        ordered = sorted(self.points)
        logs = [math.log(max(error, TINY)) for _, error in ordered]
        levels = isotonic_regression(logs, increasing=False)
        return [(place, math.exp(log)) for (place, _), log in zip(ordered, levels, strict=True)]

    def place_of(self, error: float) -> float:
        """Return where the error is expected, within the bounds; the least such place.

        Beyond the ends it is that of noise alone: half the error at twice the place.
        """
        points = self.levelled()
        if error >= points[0][1]:
            place, level = points[0]
            return max(self.low, place * level / error)
        for (start, above), (end, below) in zip(points, points[1:], strict=False):
            if below <= error:
                part = math.log(above / error) / math.log(above / below)
                return float(start * (end / start) ** part)
        place, level = points[-1]
        return min(self.high, place * level / error)

    def search(self, error: float, simulate: Callable[[float], float]) -> tuple[float, float, bool]:
        """Find the least place with at most this error, by simulated fits.

        Args:
            error: what is wanted.
            simulate: returns the error of a fit at a place; the result is added to the points.

        Returns:
            A place with two significant digits, the error of the fit there, and whether that is
            at most the wanted one.
        """
        tried: dict[float, float] = {}
        for _ in range(MAX_FITS):
            place = self._rounded(self.place_of(AIM * error))
            if place in tried:
                break
            tried[place] = simulate(place)
            self.add(place, tried[place])
            near = error * (1 - CLOSE) <= tried[place] <= error
            if near or (place <= self.low and tried[place] <= error):
                break
        good = [place for place, found in tried.items() if found <= error]
        if good:
            return min(good), tried[min(good)], True
        best = min(tried, key=lambda place: tried[place])
        return best, tried[best], False

    def _rounded(self, place: float) -> float:
        """Round up to two significant digits, within the bounds."""
        step = 10.0 ** (math.floor(math.log10(place)) - ROUNDING + 1)
        if self.whole:
            step = max(step, 1.0)
        rounded = math.ceil(place / step - 1e-9) * step
        bounded = min(max(float(f"{rounded:.6g}"), self.low), self.high)
        return float(math.floor(bounded)) if self.whole else bounded
