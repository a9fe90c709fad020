"""The fits of a forecast, in order, and what follows from them.

First the fit that was asked for, then one for each other assumption, then others at other budgets
and of other populations. In the place of a network, which takes minutes, all but the first are of
`QUICK`, and their errors are multiplied by what the network's is over that of `QUICK` where both
were fitted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.forecasts.curve import Curve
from dpsynth.forecasts.errors import Errors
from dpsynth.forecasts.rows import RowSource
from dpsynth.forecasts.simulated_fit import Setting, simulate_fit
from dpsynth.models import Progress, spec_of

COLUMNS, PAIRS = "columns", "pairs"
REPEATS = 2  # fits of the forecast itself, where they take seconds
QUICK = "mixture"
FACTORS_OF_EPSILON = (1 / 3, 3.0)
FACTORS_OF_POPULATION = (1 / 4, 4.0)
MIN_EPSILON, MAX_EPSILON = 0.01, 20.0  # of a search; beyond, epsilon promises next to nothing
MIN_POPULATION = 200


@dataclass(frozen=True)
class Wish:
    """What a forecast is asked for beside the errors.

    Attributes:
        error: wanted, above 0 and below 1; None if no error is wanted.
        of: `PAIRS`, `COLUMNS`, or the name of a column.
    """

    error: float | None = None
    of: str = PAIRS

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse what no table has.

        Raises:
            InputError: the error is out of range, or the column is not in the schema.
        """
        if self.error is not None and not (
            isinstance(self.error, int | float) and 0 < self.error < 1
        ):
            raise InputError(
                f"the wanted error is {self.error:g}; give a distance above 0 and below 1, such as "
                "0.02"
            )
        if self.of not in (PAIRS, COLUMNS, *names):
            raise InputError(
                f"the schema models no column '{self.of}'; a wanted error is of {PAIRS}, of "
                f"{COLUMNS}, or of one of its columns"
            )

    def figure(self, errors: Errors, names: tuple[str, ...]) -> float:
        """Return the error that is meant."""
        if self.of == PAIRS:
            return errors.mean_of_pairs
        if self.of == COLUMNS:
            return errors.mean_of_columns
        return float(errors.columns[names.index(self.of)])


class Forecaster:
    """The fits of one forecast, in order."""

    def __init__(
        self,
        setting: Setting,
        sources: list[RowSource],
        wish: Wish,
        codec: Codec,
        seed: int,
        progress: Progress,
    ) -> None:
        """Keep what is forecast; the first source is the forecast, the others its range."""
        self.setting, self.sources, self.wish, self.codec = setting, sources, wish, codec
        self.seed, self.progress, self.fits = seed, progress, 0
        self.since = time.monotonic()
        spec = spec_of(setting.model)
        self.slow = bool(spec.preset) or spec.outside is not None
        self.quick = QUICK if self.slow else setting.model
        self.repeats = 1 if wish.of in (PAIRS, COLUMNS) else REPEATS  # of a column it varies more
        moved = len(FACTORS_OF_EPSILON) + len(FACTORS_OF_POPULATION)
        searched = 0 if wish.error is None else 4  # two fits of each search, about
        self.expected_fits = REPEATS + len(sources[1:]) + self.repeats * (moved + searched)

    def run(self) -> dict[str, Any]:
        """Return what was found, in JSON types."""
        names, first = self.codec.names, self.sources[0]
        fits = [self._fit(self.setting, first) for _ in range(1 if self.slow else REPEATS)]
        base = [self._fit(self._quickly(self.setting), first)] if self.slow else fits
        others = [self._fit(self._quickly(self.setting), source) for source in self.sources[1:]]
        curves = self._curves(fits, base)
        wanted = None if self.wish.error is None else self._search(curves, fits, base)
        ratio = [_mean(fits, pick) / max(_mean(base, pick), 1e-9) for pick in (_columns, _pairs)]
        return {
            "columns": {
                **_spread(fits, others, _columns, ratio[0]),
                "each": self._each(fits, others, ratio[0]),
            },
            "pairs": {
                **_spread(fits, others, _pairs, ratio[1]),
                "each": [
                    {"columns": [names[i], names[j]], "expected": float(error)}
                    for (i, j), error in zip(
                        fits[0].pairs,
                        np.mean([errors.of_pairs for errors in fits], axis=0),
                        strict=True,
                    )
                ],
            },
            "subgroups": {
                "by_size": fits[0].subgroups.by_size(),
                "smallest_of_all": fits[0].subgroups.smallest_of_all(),
                "smallest": {str(ways): fits[0].subgroups.smallest(ways) for ways in (1, 2, 3)},
            },
            "by_epsilon": [
                {"epsilon": place, "error": error} for place, error in curves[0].levelled()
            ],
            "by_population": [
                {"population": int(place), "error": error} for place, error in curves[1].levelled()
            ],
            "error_of": self.wish.of,
            "wanted": wanted,
            "fits": self.fits,
        }

    def _fit(self, setting: Setting, source: RowSource) -> Errors:
        """Simulate one fit; each has a seed of its own."""
        number = self.fits
        self.fits += 1

        whole = max(self.expected_fits, self.fits)
        stage = f"simulated fit {self.fits} of about {whole}, {setting.model}{self._left()}"

        def shown(_: str, fraction: float) -> None:
            self.progress(stage, min(1.0, fraction))

        shown("", 0.0)
        errors = simulate_fit(setting, source, self.seed * 1000 + number, shown)
        shown("", 1.0)
        if self.slow and number == 0:
            self.since = time.monotonic()
        return errors

    def _left(self) -> str:
        """Say how long the fits that are left will take, as far as those before tell."""
        quick = self.fits - 1 - self.slow  # the first one may be a network's, which takes longer
        if quick < 1:
            return ""
        seconds = (time.monotonic() - self.since) / quick
        minutes = seconds * max(1, self.expected_fits - self.fits + 1) / 60
        return f" (about {math.ceil(minutes)} min left)" if minutes > 1 else ""

    def _quickly(self, setting: Setting) -> Setting:
        return replace(setting, model=self.quick)

    def _figure(self, fits: list[Errors]) -> float:
        names = self.codec.names
        return float(np.mean([self.wish.figure(errors, names) for errors in fits]))

    def _at(self, epsilon: float, population: int, ratio: float) -> float:
        """Return the error that is meant, at another budget and size."""
        moved = self._quickly(self.setting).of_population(population)
        moved = replace(moved, epsilon=epsilon)
        fits = [self._fit(moved, self.sources[0]) for _ in range(self.repeats)]
        return ratio * self._figure(fits)

    def _curves(self, fits: list[Errors], base: list[Errors]) -> tuple[Curve, Curve]:
        """Simulate fits at other budgets, and of other populations."""
        setting, error = self.setting, self._figure(fits)
        ratio = error / max(self._figure(base), 1e-9)
        most = math.ceil(1 / setting.delta) - 1  # a delta above 1 over the population is refused
        by_epsilon = Curve(MIN_EPSILON, max(MAX_EPSILON, setting.epsilon), whole=False)
        least = min(MIN_POPULATION, setting.population)
        by_size = Curve(least, max(most, setting.population), whole=True)
        for curve, place, factors in (
            (by_epsilon, setting.epsilon, FACTORS_OF_EPSILON),
            (by_size, float(setting.population), FACTORS_OF_POPULATION),
        ):
            curve.add(place, error)
            for factor in factors:
                other = min(max(place * factor, curve.low), curve.high)
                if other != place:
                    budget = other if curve is by_epsilon else setting.epsilon
                    units = setting.population if curve is by_epsilon else int(other)
                    curve.add(other, self._at(budget, units, ratio))
        return by_epsilon, by_size

    def _search(
        self, curves: tuple[Curve, Curve], fits: list[Errors], base: list[Errors]
    ) -> dict[str, Any]:
        """Seek the epsilon and the population with the wanted error."""
        assert self.wish.error is not None
        ratio = self._figure(fits) / max(self._figure(base), 1e-9)
        ways: tuple[tuple[str, Curve, Callable[[float], float]], ...] = (
            (
                "epsilon",
                curves[0],
                lambda place: self._at(place, self.setting.population, ratio),
            ),
            (
                "population",
                curves[1],
                lambda place: self._at(self.setting.epsilon, int(place), ratio),
            ),
        )
        found: dict[str, Any] = {"error": self.wish.error, "of": self.wish.of}
        for name, curve, simulate in ways:
            place, error, reached = curve.search(self.wish.error, simulate)
            value = int(place) if curve.whole else place
            found[name] = {"value": value, "expected": error, "reached": reached}
        return found

    def _each(self, fits: list[Errors], others: list[Errors], ratio: float) -> list[dict[str, Any]]:
        """Return the expected error of each column, with the range over the assumptions."""
        mean = np.mean([errors.columns for errors in fits], axis=0)
        every = np.stack(
            [*(errors.columns for errors in fits), *(ratio * errors.columns for errors in others)]
        )
        return [
            {
                "name": name,
                "expected": float(mean[j]),
                "low": float(every[:, j].min()),
                "high": float(every[:, j].max()),
            }
            for j, name in enumerate(self.codec.names)
        ]


def _columns(errors: Errors) -> float:
    return errors.mean_of_columns


def _pairs(errors: Errors) -> float:
    return errors.mean_of_pairs


def _mean(fits: list[Errors], pick: Callable[[Errors], float]) -> float:
    return float(np.mean([pick(errors) for errors in fits]))


def _spread(
    fits: list[Errors], others: list[Errors], pick: Callable[[Errors], float], ratio: float
) -> dict[str, float]:
    """Return the mean over the fits, and the least and largest over all assumptions.

    ``ratio`` is of the model to the quicker one that stands for it in the others.
    """
    every = [*(pick(errors) for errors in fits), *(ratio * pick(errors) for errors in others)]
    return {"expected": _mean(fits, pick), "low": min(every), "high": max(every)}
