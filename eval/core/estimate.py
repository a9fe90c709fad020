"""A number that an evaluation measured: never without its interval, its size and its references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95  # of every interval
Z = 1.959963984540054  # half-width of a normal interval of that level, in standard errors


@dataclass(frozen=True)
class Estimate:
    """A figure, what it may be, and what it is held against.

    Attributes:
        value: a finite number.
        low: lower end of the interval of 95 %; None where none is known.
        high: upper end.
        n: rows (or units, where the measure says so) that it was computed from; at least 1.
        reference: the same figure for real people that no generator saw, a holdout.
        chance: the same figure for a bootstrap of the source: what chance alone makes.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    reference: float | None = None
    chance: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no estimate."""
        numbers = [self.value, self.low, self.high, self.reference, self.chance]
        if not all(math.isfinite(number) for number in numbers if number is not None):
            raise ValueError("an estimate is made of finite numbers")
        if (self.low is None) != (self.high is None) or self.n < 1:
            raise ValueError("an interval has two ends, and an estimate comes from something")

    def to_dict(self) -> dict[str, Any]:
        """Give the estimate in JSON types, rounded to six significant digits."""
        return {name: _rounded(number) for name, number in vars(self).items()}


def about(
    value: float,
    error: float,
    n: int,
    *,
    reference: float | None = None,
    chance: float | None = None,
    minimum: float = -math.inf,
    maximum: float = math.inf,
) -> Estimate:
    """Return an estimate with a normal interval around it, within the range of the figure."""
    low, high = max(minimum, value - Z * error), min(maximum, value + Z * error)
    return Estimate(float(value), float(low), float(high), int(n), reference, chance)


def jackknife_error(parts: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the standard error of a figure from its values without each of g equal groups.

    The delete-a-group jackknife (Kott, The Delete-a-Group Jackknife, J. Official Statistics 17,
    2001): groups are random sets of whole units, so that rows of a unit stay together.
    """
    values = np.asarray(parts, dtype=float)
    groups = len(values)
    return float(math.sqrt((groups - 1) / groups * ((values - values.mean()) ** 2).sum()))


def _rounded(number: float | None) -> float | int | None:
    if number is None or isinstance(number, int):
        return number
    return float(f"{number:.6g}")
