"""A number that an evaluation measured: never without its interval, its size and its references.

Rates seen in repeated trials have bounds that hold however few the trials were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
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


Floats = npt.NDArray[np.float64]
Distance = Callable[[Floats, Floats], Floats]


class Variants(NamedTuple):
    """A statistic of each table of a comparison; the first axis numbers its variants.

    Variant 0 is that of the whole table; for source and synthetic table, variant g is that of the
    table without group g - 1. The other axes are those of the statistic.
    """

    source: Floats
    synthetic: Floats
    holdout: Floats | None
    chance: Floats

    def whole(self) -> dict[str, Any]:
        """The statistic of each whole table, for a document; None for a holdout that is missing."""
        holdout = None if self.holdout is None else plain(self.holdout[0])
        return {
            "source": plain(self.source[0]),
            "synthetic": plain(self.synthetic[0]),
            "holdout": holdout,
        }


@dataclass(frozen=True, eq=False)
class JackknifeEstimate:
    """A distance between synthetic table and source, and what its interval is made from.

    Attributes:
        value: the distance.
        reference: that of the holdout to the source; None if there is none.
        chance: that of a bootstrap of the source to the source.
        without: the distance without each group of the source, and of the synthetic table.
    """

    value: float
    reference: float | None
    chance: float | None
    without: tuple[Floats, Floats]

    @classmethod
    def of(cls, distance: Distance, variants: Variants) -> JackknifeEstimate | None:
        """Apply a distance to a statistic.

        Args:
            distance: takes two arrays that broadcast along the first axis, and keeps that axis.
            variants: the statistic of each table.

        Returns:
            The figure; None if the distance of synthetic table and source is not finite.
        """
        source, synthetic, holdout, chance = variants
        value = _number(distance(source[:1], synthetic[:1]))
        if value is None:
            return None
        return cls(
            value,
            None if holdout is None else _number(distance(source[:1], holdout[:1])),
            _number(distance(source[:1], chance[:1])),
            (
                _known(distance(source[1:], synthetic[:1]), value),
                _known(distance(source[:1], synthetic[1:]), value),
            ),
        )

    @classmethod
    def mean(cls, figures: Sequence[JackknifeEstimate]) -> JackknifeEstimate:
        """Return the mean of at least one figure over the same groups."""
        references = [figure.reference for figure in figures if figure.reference is not None]
        chances = [figure.chance for figure in figures if figure.chance is not None]
        return cls(
            float(np.mean([figure.value for figure in figures])),
            float(np.mean(references)) if references else None,
            float(np.mean(chances)) if chances else None,
            (
                np.mean([figure.without[0] for figure in figures], axis=0),
                np.mean([figure.without[1] for figure in figures], axis=0),
            ),
        )

    def estimate(self, n: int, *, minimum: float = 0.0, maximum: float = 1.0) -> Estimate:
        """Return the estimate, with the interval of a delete-a-group jackknife over both tables.

        The groups are whole units; the two tables vary independently, so their variances add. The
        interval is for the sampling of rows, not for the bias by chance, for which see `chance`.

        Args:
            n: rows of the synthetic table that was compared.
            minimum: no value lies below this one.
            maximum: no value lies above this one.
        """
        if min(map(len, self.without)) < 2:
            return Estimate(self.value, None, None, n, self.reference, self.chance)
        error = math.hypot(*map(jackknife_error, self.without))
        return about(
            self.value,
            error,
            n,
            reference=self.reference,
            chance=self.chance,
            minimum=min(minimum, self.value),
            maximum=max(maximum, self.value),
        )


def absolute(a: Floats, b: Floats) -> Floats:
    """Return the absolute difference of two statistics that are one number a table."""
    return np.abs(a - b)


def mean_absolute(a: Floats, b: Floats) -> Floats:
    """Return the mean absolute difference over the last axis."""
    return np.asarray(np.abs(a - b).mean(axis=-1))


def plain(values: Any) -> Any:
    """Return numbers in JSON types with six significant digits; what is not finite is None."""
    if values is None:
        return None
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim):
        return [plain(value) for value in values]
    number = float(values)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _number(values: Floats) -> float | None:
    """Return the one number of an array, None if it is not finite."""
    number = float(np.asarray(values).reshape(-1)[0])
    return number if math.isfinite(number) else None


def _known(values: Floats, value: float) -> Floats:
    """Put the figure itself where it cannot be computed without a group."""
    return np.where(np.isfinite(values), values, value)


@dataclass(frozen=True)
class Measure:
    """A figure under its name.

    Attributes:
        key: by which gates and scripts know it, such as ``tvd2``; a column's or a target's own
            figures end in ``:name``.
        title: a few words for people.
        estimate: the figure.
        best: the value of a table that could not be told from the population.
        meaning: one plain sentence: what is counted, and what a bad value would mean.
    """

    key: str
    title: str
    estimate: Estimate
    best: float
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Give the measure in JSON types."""
        return {
            "title": self.title,
            **self.estimate.to_dict(),
            "best": self.best,
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class PartResult:
    """One part of an evaluation.

    Attributes:
        measures: its figures.
        details: what tables and pictures show, in JSON types, by name.
        notes: what a reader has to know: what was left out and why, which subsample was taken.
    """

    measures: tuple[Measure, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
