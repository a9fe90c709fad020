"""The verb `forecast`: what error to expect of a fit, before anything is spent.

The fits of a forecast, in order, and what follows from them.

First the fit that was asked for, then one for each other assumption, then others at other budgets
and of other populations. In the place of a network, which takes minutes, all but the first are of
`QUICK`, and their errors are multiplied by what the network's is over that of `QUICK` where both
were fitted.

Error against epsilon, or against the population: a few simulated fits, and lines between them.

Between two fits the logarithm of the error is taken to be linear in the logarithm of epsilon or of
the population: noise alone gives a slope of -1, chance of the draw -1/2, and a floor 0. Errors that
rise by chance are levelled first, since more of either does not make a table worse.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.seeds import check_seed
from dpsynth._version import __version__
from dpsynth.encoding import Codec, Cohort
from dpsynth.errors import InputError
from dpsynth.forecasts.errors import Errors
from dpsynth.forecasts.rows import ForecastRows, assumed, earlier
from dpsynth.models import Progress, silent, spec_of
from dpsynth.models.registry import DEFAULT
from dpsynth.privacy import PoissonSgd, PrivacyPlan, SeededEntropy
from dpsynth.schema import AnySchema, Schema, load_any
from dpsynth.schema.column import Declared
from dpsynth.synthesis import Prepared, RowSampler, prepare, require_small_delta

COLUMNS, PAIRS = "columns", "pairs"
REPEATS = 2  # fits of the forecast itself, where they take seconds
QUICK = "mixture"
FACTORS_OF_EPSILON = (1 / 3, 3.0)
FACTORS_OF_POPULATION = (1 / 4, 4.0)
MIN_EPSILON, MAX_EPSILON = 0.01, 20.0  # of a search; beyond, epsilon promises next to nothing
MIN_POPULATION = 200


@dataclass(frozen=True)
class ErrorTarget:
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
        sources: list[ForecastRows],
        wish: ErrorTarget,
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

    def _fit(self, setting: Setting, source: ForecastRows) -> Errors:
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

    def _curves(self, fits: list[Errors], base: list[Errors]) -> tuple[ErrorCurve, ErrorCurve]:
        """Simulate fits at other budgets, and of other populations."""
        setting, error = self.setting, self._figure(fits)
        ratio = error / max(self._figure(base), 1e-9)
        most = math.ceil(1 / setting.delta) - 1  # a delta above 1 over the population is refused
        by_epsilon = ErrorCurve(MIN_EPSILON, max(MAX_EPSILON, setting.epsilon), whole=False)
        least = min(MIN_POPULATION, setting.population)
        by_size = ErrorCurve(least, max(most, setting.population), whole=True)
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
        self, curves: tuple[ErrorCurve, ErrorCurve], fits: list[Errors], base: list[Errors]
    ) -> dict[str, Any]:
        """Seek the epsilon and the population with the wanted error."""
        assert self.wish.error is not None
        ratio = self._figure(fits) / max(self._figure(base), 1e-9)
        ways: tuple[tuple[str, ErrorCurve, Callable[[float], float]], ...] = (
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


FORMAT, VERSION = "dpsynth-forecast", 1


@shown_in_notebooks
def forecast(
    schema: AnySchema | str | Path,
    *,
    epsilon: float,
    delta: float,
    model: str = DEFAULT,
    like: str | Path | None = None,
    wanted_error: float | None = None,
    error_of: str = PAIRS,
    publish_quality: float | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Forecast the errors of a fit from public facts, or from an earlier release; open no data.

    Args:
        schema: a `Schema`, the path of one, or the name of a shipped one. Its population and rows
            are those of what would be fitted.
        epsilon: privacy budget of the fit.
        delta: likewise.
        model: a generator's name, or ``auto``.
        like: folder of an earlier run or bundle with the same columns, to draw rows from; None:
            rows are assumed, in three ways.
        wanted_error: a distance for which the epsilon and the population are sought.
        error_of: what it is of: ``pairs``, ``columns``, or the name of a column.
        publish_quality: share of the budget for public quality figures.
        seed: the same one gives the same forecast.
        progress: called with a stage and its fraction done.

    Returns:
        The forecast in JSON types; `docs/forecast.md` says what is in it.

    Raises:
        InputError: the schema is of linked tables, the earlier release does not suit it, or an
            argument is out of range.

    >>> found = forecast("cardio", epsilon=3, delta=1e-6, model="mixture")  # doctest: +SKIP
    >>> found["pairs"]["expected"]  # doctest: +SKIP
    0.0048...
    """
    loaded = schema if isinstance(schema, AnySchema) else load_any(schema)
    if not isinstance(loaded, Schema):
        raise InputError(
            f"a forecast is of a single table, and {loaded.name} is of linked tables; leave out "
            "--forecast"
        )
    check_seed(seed)
    require_small_delta(loaded, epsilon, delta)
    setting = Setting(loaded, epsilon, delta, model, publish_quality)
    prepared = setting.prepared()
    setting = replace(setting, model=prepared.model)
    wish = ErrorTarget(wanted_error, error_of)
    wish.check(prepared.codec.names)
    sources: list[ForecastRows]
    if like is None:
        sources = assumed(loaded, prepared.codec)
    else:
        sources = [earlier(like, loaded, seed=seed)]
    found = Forecaster(setting, sources, wish, prepared.codec, seed, progress).run()
    return {
        "format": FORMAT,
        "version": VERSION,
        "dpsynth": __version__,
        "schema": {"name": loaded.name, "title": loaded.title, "sha256": loaded.hash()},
        "model": prepared.model,
        "reason": prepared.reason,
        "epsilon": epsilon,
        "delta": delta,
        "population": setting.population,
        "rows": loaded.rows.value,
        "like": None if like is None else sources[0].name,
        "assumptions": None if like is not None else [source.name for source in sources],
        "seed": seed,
        **found,
    }


CLOSE = 0.12  # relative distance below the wanted error at which a search ends
AIM = 0.96  # of the wanted error: a fit's error moves by a few per cent by chance
TINY = 1e-9  # stands for no error
MAX_FITS = 4  # of a search
ROUNDING = 2  # significant digits of an epsilon or a population


@dataclass
class ErrorCurve:
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


MAX_UNITS = 200_000  # that are simulated; of more, the noise is made smaller instead
ALIKE = 0.97  # correlation by which rows of a unit are alike, and differ with their number


@dataclass(frozen=True)
class Setting:
    """What would be fitted.

    Attributes:
        schema: public facts, with the population and the rows.
        epsilon: of the whole fit.
        delta: likewise.
        model: the generator's name; ``auto`` is decided before.
        publish_quality: share of the budget set aside for public figures.
    """

    schema: Schema
    epsilon: float
    delta: float
    model: str
    publish_quality: float | None = None

    @property
    def population(self) -> int:
        """Public number of units."""
        return self.schema.population.value

    def of_population(self, units: int) -> Setting:
        """Return the same of another population, with rows in proportion."""
        rows = max(1, round(self.schema.rows.value * units / self.population))
        size, count = Declared(units, "a forecast"), Declared(rows, "a forecast")
        return replace(self, schema=replace(self.schema, population=size, rows=count))

    def prepared(self) -> Prepared:
        """Calibrate the plan."""
        return prepare(
            self.schema,
            epsilon=self.epsilon,
            delta=self.delta,
            model=self.model,
            publish_quality=self.publish_quality,
        )


def simulate_fit(setting: Setting, source: ForecastRows, seed: int, progress: Progress) -> Errors:
    """Draw rows, fit them under the plan, draw a synthetic table, and measure how far it is off.

    Args:
        setting: what would be fitted.
        source: of the rows that stand for the private ones.
        seed: of rows, noise and the synthetic table.
        progress: of the fit.
    """
    prepared = setting.prepared()
    units = min(setting.population, MAX_UNITS)
    scale = units / setting.population
    rng = np.random.default_rng([seed, units])
    cohort = _cohort(setting.schema, source, units, rng)
    plan = prepared.plan if scale == 1 else _quieter(prepared.plan, scale)
    generator = prepared.with_codes({}).generator()  # no code is known: groups
    generator.fit(cohort, plan, SeededEntropy(seed), progress)
    rows = max(1, round(setting.schema.rows.value * scale))
    sampler = RowSampler(generator, prepared.codec, setting.schema.rules)
    try:
        drawn = sampler.codes(rows, seed=seed)
    except InputError:  # hardly a row keeps the rules, nor did those that were assumed
        drawn = generator.sample(rows, rng)
    return Errors.between(cohort.codes[cohort.mask], drawn, prepared.codec)


def _cohort(schema: Schema, source: ForecastRows, units: int, rng: np.random.Generator) -> Cohort:
    """Draw the rows of so many units.

    A unit has 1, 2, ... rows with geometric chances, cut at ``max_rows``, so that the mean is that
    of the public facts. Its rows are like each other, and those of units with many rows differ from
    others: rows are dealt out along a score of all their columns, to units along their number of
    rows, both blurred so that `ALIKE` of the order is kept.
    """
    most = schema.unit.max_rows
    counts = rng.choice(np.arange(1, most + 1), units, p=_row_counts(schema))
    drawn = source.rows(int(counts.sum()), rng)
    codes = np.zeros((units, most, drawn.shape[1]), dtype=np.uint16)
    if most == 1:
        codes[:, 0] = drawn
        return Cohort(codes, np.ones((units, 1), dtype=bool))
    ranks = np.argsort(np.argsort(drawn + rng.random(drawn.shape), axis=0), axis=0)
    scores = ranks @ rng.choice([-1.0, 1.0], drawn.shape[1])
    drawn = drawn[np.argsort(_blurred(scores, rng))]
    seats = np.argsort(_blurred(np.argsort(np.argsort(counts + rng.random(units))), rng))
    mask = np.arange(most) < counts[:, None]
    seated = np.zeros((units, most, drawn.shape[1]), dtype=np.uint16)
    seated[mask[seats]] = drawn
    codes[seats] = seated
    return Cohort(codes, mask)


def _blurred(scores: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Mix scores with noise, so that `ALIKE` of them is left, as a correlation."""
    own = np.asarray(scores, dtype=np.float64)
    own = (own - own.mean()) / max(float(own.std()), 1e-9)
    return np.asarray(ALIKE * own + np.sqrt(1 - ALIKE**2) * rng.standard_normal(len(own)))


def _row_counts(schema: Schema) -> npt.NDArray[np.float64]:
    """Return the shares of units with 1 .. max_rows rows, whose mean is rows over population."""
    most = schema.unit.max_rows
    if most == 1:
        return np.ones(1)
    mean = min(max(schema.rows.value / schema.population.value, 1.0), float(most))
    rows = np.arange(1, most + 1)
    low, high = -20.0, 20.0  # the logarithm of the ratio of neighbouring shares
    for _ in range(60):
        middle = (low + high) / 2
        shares = np.exp(middle * (rows - most / 2) - abs(middle) * most / 2)
        shares /= shares.sum()
        low, high = (middle, high) if shares @ rows < mean else (low, middle)
    return np.asarray(shares)


def _quieter(plan: PrivacyPlan, scale: float) -> PrivacyPlan:
    """Return the plan with less noise: the same beside fewer units as its own beside all of them.

    It protects nobody, and no private row ever meets it.
    """
    events = [
        replace(event, noise_multiplier=event.noise_multiplier * scale)
        if isinstance(event, PoissonSgd)
        else event.with_mu(event.mu() / scale)
        for event in plan.events
    ]
    return replace(plan, events=tuple(events))
