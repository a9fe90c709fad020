"""Facts of patients: who has which code, what codes and values have to do, survival, regressions.

A patient has a code if one of their rows has it. Groups of patients are those who have a code or an
event, and those of each category of the table of patients. All of them follow from the schema;
which ones are compared follows from how many patients of train there are, and the strongest effects
are those of train.

Cox, Regression Models and Life-Tables, JRSS B 34, 1972, with Breslow's ties. Without a group of
patients, coefficients are those of the infinitesimal jackknife (Reid and Crepeau, Influence
Functions for Proportional Hazards Regression, Biometrika 72, 1985).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, Field, Floats, Ints, ratio
from dpsynth.eval.longitudinal.facts_of_rows import slope, title_of
from dpsynth.eval.longitudinal.named_facts import (
    CLEAR,
    FactSet,
    NamedFact,
    distinct,
    enough,
    errors,
    is_few,
    measured,
    quantiles,
)
from dpsynth.eval.longitudinal.survival import (
    YEAR,
    horizon,
    levels,
    member,
    outcome,
    outcome_names,
    survival_by_day,
)

Bools = npt.NDArray[np.bool_]

MIN_WITH = 20  # patients of train with a code whose prevalence is compared
MIN_GROUP = 50  # patients of train with a code, and without it, whose values are compared
MANY_CODES = 40  # of a column; fewer of them may help
MAX_GROUPS = 250  # groups of patients between which effects are looked for
MAX_VALUES = 120  # values of rows, for the same
LEAST_SHARE = 1e-4  # of patients; rarer codes count as so rare

PREVALENCE = (
    "Mean difference of the share of patients who ever have a code or an event, as a logarithm to "
    "the base 2: 0.1 is 7 % too many or too few, 1 is twice as many or half, 3 is as far as can "
    "be. Rare codes count as much as common ones."
)


@dataclass(frozen=True)
class Code:
    """A code that patients may have: a level of a column of rows, an event, or a baseline level.

    Attributes:
        label: for people.
        column: what it is a code of, by which codes exclude each other or not.
        kind: "rows", "event" or "baseline".
        levels: how many codes the column has.
        name: of table and column.
    """

    label: str
    column: int
    kind: str
    levels: int
    name: str


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of codes: of some series of one table, or of the table of patients."""

    name: str
    field: Field
    series: tuple[int, ...]
    place: int
    columns_of_table: int = 1

    def codes(self) -> list[int]:
        """Return its codes but that of missing."""
        return [code for code in range(self.field.size) if code != self.field.missing]

    def label(self, code: int) -> str:
        """Name a code for people."""
        label = self.field.labels[code] if code < len(self.field.labels) else str(code)
        return f"{self.field.title} {label}"


class Codes:
    """All codes that patients of a schema may have, numbered.

    Attributes:
        columns: of rows, and then of the table of patients.
        codes: of rows, then events, then baseline levels.
    """

    def __init__(self, cohort: Cohort) -> None:
        """List them from the facts of a cohort."""
        facts = cohort.facts
        self.columns: list[_Column] = []
        for table, name in enumerate(facts.tables):
            own = [n for n, one in enumerate(facts.series) if one.place[0] == table]
            long = facts.schema.child(name).kind == "long"
            fields = facts.series[own[0]].fields if own else ()
            for place, field in enumerate(fields):
                if long and place == 0:
                    for number in own:
                        test = facts.series[number]
                        if not test.fields[0].ordered:
                            column = _Column(test.name, test.fields[0], (number,), 0)
                            self.columns.append(column)
                elif not field.ordered:
                    column = _Column(f"{name}.{field.name}", field, tuple(own), place)
                    self.columns.append(column)
        self.rows = len(self.columns)
        status = -1 if facts.ending is None else facts.ending[1]
        for place, field in enumerate(facts.baseline):
            if not field.ordered and place != status:
                self.columns.append(_Column(field.name, field, (), place))
        self.codes: list[Code] = []
        self.starts: list[int] = []
        for number, column in enumerate(self.columns):
            if number == self.rows:
                self._add_events(facts.events)
            kind = "rows" if number < self.rows else "baseline"
            self._add(column, number, kind)
        if self.rows == len(self.columns):
            self._add_events(facts.events)

    def _add(self, column: _Column, number: int, kind: str) -> None:
        self.starts.append(len(self.codes))
        levels = len(column.codes())
        self.codes += [
            Code(column.label(code), number, kind, levels, column.name)
            for code in range(column.field.size)
        ]

    def _add_events(self, events: tuple[str, ...]) -> None:
        self.event_start = len(self.codes)
        self.codes += [Code(event, -1, "event", len(events), "events") for event in events]

    def of(self, cohort: Cohort) -> tuple[Ints, Ints]:
        """Return who has which code: patients and numbers of codes, each pair once."""
        patients: list[Ints] = []
        numbers: list[Ints] = []
        for number, column in enumerate(self.columns):
            start, size = self.starts[number], column.field.size
            if number >= self.rows:
                codes = cohort.codes(column.place)
                who = np.arange(len(cohort))
            else:
                keys = [
                    cohort.series[one].patients * size + cohort.series[one].values[:, column.place]
                    for one in column.series
                ]
                key = distinct(np.concatenate(keys))
                who, codes = key // size, key % size
            kept = codes != column.field.missing
            patients.append(who[kept])
            numbers.append(start + codes[kept])
        who, event = np.nonzero(cohort.histories.onsets != NEVER)
        patients.append(who)
        numbers.append(self.event_start + event)
        return np.concatenate(patients), np.concatenate(numbers)


def _every_code(cohort: Cohort, codes: Codes) -> Floats:
    patients, numbers = codes.of(cohort)
    size = len(codes.codes)
    counts = cohort.sums(np.ones(len(patients)), patients, numbers, size)
    return ratio(counts, cohort.sums(np.ones(len(cohort))))


def prevalence(compared: Compared) -> PartResult:
    """Compare how many patients ever have each code of their rows, and each event."""
    codes = Codes(compared.train)
    shares = _every_code(compared.train, codes)[0]
    chosen = [
        number
        for number, code in enumerate(codes.codes)
        if code.kind != "baseline"
        and enough(compared, int(round(shares[number] * len(compared.train))), MIN_WITH)
    ]
    if not chosen:
        return PartResult()
    size = len(compared.train)
    facts = [_prevalent(codes.codes[number], shares[number] * size, size) for number in chosen]
    found = FactSet(
        "prevalence",
        "How many patients have each code",
        PREVALENCE,
        facts,
        lambda cohort: _every_code(cohort, codes)[:, chosen],
        np.ones(len(chosen)),
        3.0,
        logarithm=LEAST_SHARE,
    )
    measures, entry = measured(compared, found)
    return PartResult(tuple(measures), entry)


def _prevalent(code: Code, patients: float, size: int) -> NamedFact:
    help = ""
    if code.levels > MANY_CODES:
        help = (
            f"Fewer codes in {code.name}: it has {code.levels:,}, which share one budget. Group "
            "those that no analysis tells apart (`rollup`)."
        )
    few = (is_few(round(patients), size),)
    return NamedFact(f"patients with {code.label}", "share", code.label, few=few, help=help)


STRONGEST = 20  # effects of each kind
ENOUGH = 400  # patients from which on more of them do not make an effect stronger
MIN_BOTH = 8  # patients who would have both codes if they were independent
ADDED = 2.0  # patients in each cell of a pair of codes, so that none is empty

EFFECTS = (
    "The 20 strongest differences of patients' mean values between those with and without a code, "
    "in standard deviations, and the 20 strongest logarithms of odds ratios of two codes: mean "
    "difference over the mean size in the source. 0 is that all have their size and sign, 1 that "
    "effects are lost."
)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Groups of patients and values of rows between which effects are looked for."""

    codes: Codes
    groups: Ints
    values: tuple[tuple[int, int], ...]
    low: Floats
    high: Floats

    def members(self, cohort: Cohort) -> npt.NDArray[np.float32]:
        """Return who belongs to which group, ``[patients, groups]``."""
        patients, numbers = self.codes.of(cohort)
        column = np.full(len(self.codes.codes), -1)
        column[self.groups] = np.arange(len(self.groups))
        at = column[numbers]
        found = np.zeros((len(cohort), len(self.groups)), dtype=np.float32)
        found[patients[at >= 0], at[at >= 0]] = 1.0
        return found

    def means(self, cohort: Cohort) -> npt.NDArray[np.float32]:
        """Return each patient's mean values, ``[patients, values]``; NaN without one."""
        found = np.full((len(cohort), len(self.values)), np.nan, dtype=np.float32)
        for column, (number, place) in enumerate(self.values):
            found[:, column] = patient_means(cohort, number, place)
        return np.clip(found, self.low, self.high, out=found) if len(self.low) else found


def patient_means(cohort: Cohort, number: int, place: int) -> Floats:
    """Return the mean of a value over each patient's rows; NaN without one."""
    view = cohort.series[number]
    numbers = view.numbers(place)
    known = np.isfinite(numbers)
    who = view.patients[known]
    sums = np.bincount(who, weights=numbers[known], minlength=len(cohort)).astype(np.float64)
    return ratio(sums, np.bincount(who, minlength=len(cohort)).astype(np.float64))


def _choose(compared: Compared) -> _Chosen:
    """Choose the groups and values of which most patients of train have something."""
    train = compared.train
    codes = Codes(train)
    counts = np.rint(_every_code(train, codes)[0] * len(train)).astype(int)
    groups = [
        number
        for number in np.argsort(-counts, kind="stable").tolist()
        if enough(compared, int(min(counts[number], len(train) - counts[number])), MIN_GROUP)
    ]
    values = [
        (number, place)
        for number, view in enumerate(train.series)
        for place, field in enumerate(view.facts.fields)
        if field.ordered
    ]
    values.sort(key=lambda one: -int((train.series[one[0]].counts > 0).sum()))
    nothing = np.zeros(0)
    first = _Chosen(codes, np.array(groups[:MAX_GROUPS], int), tuple(values), nothing, nothing)
    kept, low, high = [], [], []
    for number, place in values[:MAX_VALUES]:
        x = patient_means(train, number, place)
        x = x[np.isfinite(x)]
        if enough(compared, len(x), 2 * MIN_GROUP):
            ends = np.quantile(x, (0.01, 0.99))
            if ends[1] > ends[0]:
                kept.append((number, place))
                low.append(ends[0])
                high.append(ends[1])
    return _Chosen(codes, first.groups, tuple(kept), np.array(low), np.array(high))


@dataclass(frozen=True, eq=False)
class _Sums:
    """What groups and values of patients add up to, each ``[variants, ...]``."""

    patients: Floats
    members: Floats  # [groups]
    both: Floats  # [groups, groups]
    known: Floats  # [values]
    total: Floats  # [values]
    known_in: Floats  # [groups, values]
    total_in: Floats  # [groups, values]

    @classmethod
    def of(cls, cohort: Cohort, chosen: _Chosen) -> _Sums:
        """Add up a cohort, and without each of its groups."""
        h, x = chosen.members(cohort), chosen.means(cohort)
        groups = max(1, cohort.groups)
        parts: list[tuple[Any, ...]] = []
        for seat in range(groups):
            own = np.flatnonzero(cohort.seats == seat)
            mine, values = h[own], x[own]
            known = np.isfinite(values)
            zeroed, there = np.where(known, values, 0.0), known.astype(np.float32)
            parts.append(
                (np.array([float(len(own))]), mine.sum(axis=0), mine.T @ mine,
                 there.sum(axis=0), zeroed.sum(axis=0), mine.T @ there,
                 mine.astype(np.float64).T @ zeroed)
            )  # fmt: skip
        found = []
        for each in zip(*parts, strict=True):
            stacked = np.stack(each).astype(np.float64)
            total = stacked.sum(axis=0, keepdims=True)
            found.append(np.concatenate([total, total - stacked]) if cohort.groups else total)
        return cls(*found)

    def means(self) -> tuple[Floats, Floats]:
        """Return means of values of those in each group and of all others."""
        inside = ratio(self.total_in, self.known_in)
        outside = self.total[:, None] - self.total_in, self.known[:, None] - self.known_in
        return inside, ratio(*outside)

    def odds(self) -> Floats:
        """Return logarithms of odds ratios of two groups."""
        one, other, n = (
            self.members[:, :, None],
            self.members[:, None, :],
            self.patients[:, :, None],
        )
        both = np.maximum(self.both, 0.0)
        neither = np.maximum(n - one - other + both, 0.0)
        alone = np.maximum(one - both, 0.0) + ADDED, np.maximum(other - both, 0.0) + ADDED
        return np.asarray(np.log((both + ADDED) * (neither + ADDED) / (alone[0] * alone[1])))


def effects(compared: Compared) -> PartResult:
    """Compare the strongest effects of codes on values, and of codes on codes."""
    chosen = _choose(compared)
    if not len(chosen.groups):
        return PartResult()
    sums = _Sums.of(compared.train, chosen)
    deviations = np.array([np.nanstd(column) for column in chosen.means(compared.train).T])
    of_values = _strong_means(sums, deviations)
    of_codes = _strong_odds(sums, chosen)
    if not of_values and not of_codes:
        return PartResult()
    groups, values = np.array(of_values, int).reshape(-1, 2).T
    ones, others = np.array(of_codes, int).reshape(-1, 2).T

    def statistic(cohort: Cohort) -> Floats:
        own = _Sums.of(cohort, chosen)
        inside, outside = own.means()
        apart = (inside - outside)[:, groups, values] / deviations[values]
        return np.hstack([np.nan_to_num(apart), own.odds()[:, ones, others]])

    def spoken(cohort: Cohort) -> list[tuple[float, ...]]:
        own = _Sums.of(cohort, chosen)
        inside, outside = own.means()
        found = [(inside[0, g, v], outside[0, g, v]) for g, v in of_values]
        members, n = own.members[0], float(own.patients[0, 0])
        for one, other in of_codes:
            both = own.both[0, one, other]
            rest = members[other] - both, n - members[one]
            found.append((_share(both, members[one]), _share(*rest)))
        return [(float(a), float(b)) for a, b in found]

    facts = [_named_mean(compared, chosen, *one) for one in of_values]
    facts += [_named_odds(chosen, sums, *one) for one in of_codes]
    real = statistic(compared.train)[0]
    size = max(float(np.abs(real).mean()), 1e-9)
    scale = np.full(len(facts), size)
    title = "Effects of codes on values and on each other"
    most = float(np.abs(real).max() / size + 5.0)
    found = FactSet("effects", title, EFFECTS, facts, statistic, scale, most, spoken=spoken)
    measures, entry = measured(compared, found)
    drawn, chance = statistic(compared.synthetic)[0], statistic(compared.chance)[0]
    count = len(of_values)
    for name, part in (("means", slice(0, count)), ("odds", slice(count, None))):
        kept = {"synthetic": slope(real[part], drawn[part])}
        entry[f"kept_{name}"] = kept | {"chance": slope(real[part], chance[part])}
    return PartResult(tuple(measures), entry)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


def _strong_means(sums: _Sums, deviations: Floats) -> list[tuple[int, int]]:
    inside, outside = (one[0] for one in sums.means())
    smaller = np.minimum(sums.known_in[0], sums.known[0] - sums.known_in[0])
    strength = np.abs(inside - outside) / np.where(deviations > 0, deviations, np.inf)
    strength = np.nan_to_num(strength) * np.sqrt(np.minimum(smaller, ENOUGH))
    strength[smaller < MIN_GROUP] = 0.0
    return _first(strength)


def _first(strength: Floats) -> list[tuple[int, int]]:
    """Return the places of the largest numbers of a matrix."""
    order = np.argsort(-strength, axis=None, kind="stable")[:STRONGEST]
    width = strength.shape[1]
    return [divmod(int(at), width) for at in order if strength.flat[at] > 0]


def _strong_odds(sums: _Sums, chosen: _Chosen) -> list[tuple[int, int]]:
    members, n = sums.members[0], float(sums.patients[0, 0])
    expected = members[:, None] * members[None, :] / n
    strength = np.abs(sums.odds()[0]) * np.sqrt(np.minimum(expected, ENOUGH))
    strength[expected < MIN_BOTH] = 0.0
    codes = [chosen.codes.codes[number] for number in chosen.groups]
    size = len(codes)
    allowed = np.zeros((size, size), dtype=bool)
    for i, j in combinations(range(size), 2):
        if _may_pair(codes[i], codes[j]):
            one, other = (i, j) if members[i] <= members[j] else (j, i)
            allowed[one, other] = True
    return _first(np.where(allowed, strength, 0.0))


def _may_pair(one: Code, other: Code) -> bool:
    """Whether two codes may have an effect: categories of one patient exclude each other."""
    if one.column != other.column:
        return True
    return one.kind == "rows" and one.levels > 2


def _named_mean(compared: Compared, chosen: _Chosen, group: int, value: int) -> NamedFact:
    number, place = chosen.values[value]
    view = compared.train.series[number]
    field = view.facts.fields[place]
    label = chosen.codes.codes[chosen.groups[group]].label
    name = f"{title_of(view, field)} of patients with {label}, and of the others"
    return NamedFact(name, field.unit, label)


def _named_odds(chosen: _Chosen, sums: _Sums, one: int, other: int) -> NamedFact:
    first, second = (chosen.codes.codes[chosen.groups[at]].label for at in (one, other))
    both = sums.both[0, one, other]
    members, n = sums.members[0], sums.patients[0, 0]
    name = f"{second} among patients with {first}, and among the others"
    few = (
        is_few(both, members[one]),
        is_few(members[other] - both, n - members[one]),
    )
    help = ""
    if both == 0:
        help = (
            f"No patient of the source has {first} and {second}. If nobody can, declare a rule "
            "that forbids it."
        )
    return NamedFact(name, "share", first, few=few, help=help)


TIMES = (0.2, 0.5, 0.9)  # of the follow-up of a group, at which survival is named
MIN_EVENTS = 10  # of train, as in curves


def survival_differences(compared: Compared) -> dict[str, Any] | None:
    """Say where survival by group differs most; its figure is that of ``event_curves``."""
    facts = compared.facts
    asked: list[tuple[str, int, int, Ints]] = []
    named: list[NamedFact] = []
    for event in outcome_names(facts) if facts.timed else ():
        follow = outcome(compared.train, event)
        if (follow.happened & follow.at_risk).sum() < MIN_EVENTS:
            continue
        for group, level, label in levels(compared):
            who = follow.at_risk & member(compared.train, group, level)
            if who.sum() < MIN_GROUP:
                continue
            days = (np.array(TIMES) * horizon(follow.days[who])).astype(np.int64)
            whom = label if group < 0 else f"{facts.groups[group].title} {label}"
            asked.append((event, group, level, days))
            for day in days.tolist():
                came = int((follow.happened & (follow.days <= day))[who].sum())
                name = f"{event} within {day:,} days, {whom}"
                few = (is_few(came, int(who.sum())),)
                named.append(NamedFact(name, "share", f"{event} {whom}", few=few))
    if not named:
        return None

    def statistic(cohort: Cohort) -> Floats:
        return 1 - np.hstack(
            [survival_by_day(cohort, event, *who)[:, days] for event, *who, days in asked]
        )

    ones = np.ones(len(named))
    title = "Survival, by group"
    found = FactSet("event_curves", title, "", named, statistic, ones, 1.0)
    return measured(compared, found, alone=True)[1]


MAX_COVARIATES = 8  # of the table of patients
MOST_CODES = 2  # codes among the covariates of a model
MAX_MODELS = 24  # regressions of values
MIN_OUTCOMES = 50  # events of train, for a Cox model
LEAST_LEVEL = 0.05  # share of patients of a level that is a covariate
LEAST_HAZARD, LEAST_SLOPE = 0.1, 0.05  # coefficients below which a model says nothing
RIDGE = 0.01
REACH = 4.0  # standard deviations of a covariate

COEFFICIENTS = (
    "Coefficients that are clear in the source, beyond three standard errors: of Cox models of "
    "each event, and of linear models of each value, on columns of the table of patients and the "
    "codes that matter most. Mean difference over the size in the source: 0 is that an analyst "
    "finds the same, 1 that nothing is found, 2 is as far as can be."
)


@dataclass(frozen=True, eq=False)
class _Covariate:
    """A covariate of patients: a number, a level of a column, or a code that they ever have."""

    label: str
    of: Callable[[Cohort], Floats]
    is_number: bool = False


@dataclass(frozen=True, eq=False)
class _Model:
    """A regression: of an event, or of a value of rows on covariates and the years."""

    title: str
    unit: str
    covariates: tuple[_Covariate, ...]
    fit: Callable[[Cohort, list[Floats]], Floats]
    least: float
    factor: float  # by which a coefficient is shown; 0 where its exponential is


def coefficients(compared: Compared) -> PartResult:
    """Compare coefficients of Cox models of events and of linear models of values."""
    named: list[NamedFact] = []
    asked: list[tuple[_Model, Ints]] = []
    scales: list[float] = []
    for model in _models(compared):
        x = [one.of(compared.train) for one in model.covariates]
        beta = model.fit(compared.train, x)
        size, error = np.abs(beta[0]), errors(beta)
        clear = np.flatnonzero((size > model.least) & (size > CLEAR * error))
        labels = [
            f"{one.label}, per standard deviation" if one.is_number else one.label
            for one in model.covariates
        ]
        labels += ["a year more"] * (beta.shape[1] - len(labels))
        if len(clear):
            asked.append((model, clear))
            scales += size[clear].tolist()
        for at in clear.tolist():
            named.append(NamedFact(f"{model.title}: {labels[at]}", model.unit, model.title))
    if not named:
        return PartResult()

    every = {id(one): one for model, _ in asked for one in model.covariates}

    def statistic(cohort: Cohort) -> Floats:
        columns = {key: one.of(cohort) for key, one in every.items()}
        return np.hstack(
            [
                model.fit(cohort, [columns[id(one)] for one in model.covariates])[:, clear]
                for model, clear in asked
            ]
        )

    factors = np.concatenate([np.full(len(clear), model.factor) for model, clear in asked])

    def spoken(cohort: Cohort) -> list[tuple[float, ...]]:
        beta = statistic(Cohort.of(cohort.facts, cohort.histories))[0]
        return [(float(b),) for b in np.where(factors > 0, beta * factors, np.exp(beta))]

    found = FactSet(
        "coefficients",
        "Coefficients of Cox and linear models",
        COEFFICIENTS,
        named,
        statistic,
        np.array(scales),
        2.0,
        spoken=spoken,
    )
    measures, entry = measured(compared, found)
    return PartResult(tuple(measures), entry)


def _models(compared: Compared) -> Iterator[_Model]:
    train, facts = compared.train, compared.facts
    base = list(_baseline(compared))
    chosen = _choose(compared)
    codes = [chosen.codes.codes[number].kind == "rows" for number in chosen.groups]
    groups = chosen.groups[np.array(codes, bool)]
    only = _Chosen(chosen.codes, groups, (), np.zeros(0), np.zeros(0))
    members = only.members(train)
    for event in outcome_names(facts) if facts.timed else ():
        follow = outcome(train, event)
        happened = (follow.happened & follow.at_risk).astype(float)
        if enough(compared, int(happened.sum()), MIN_OUTCOMES):
            more = _codes_for(only, members, happened)
            title = f"hazard ratio of {event}"
            yield _Model(title, "", (*base, *more), partial(_cox, event=event), LEAST_HAZARD, 0.0)
    for number, place in chosen.values[:MAX_MODELS]:
        view = train.series[number]
        field = view.facts.fields[place]
        numbers = view.numbers(place)
        counts = np.bincount(view.values[:, place], minlength=field.size)[None].astype(float)
        known = np.flatnonzero(np.isfinite(field.numbers))
        low, high = quantiles(counts[:, known], field.numbers[known], (0.1, 0.9))[0]
        mean, spread = float(np.nanmean(numbers)), float((high - low) / 2.563)
        if spread <= 0:
            continue
        more = _codes_for(only, members, patient_means(train, number, place))
        fit = partial(_linear, number=number, place=place, mean=mean, spread=spread)
        title = f"{title_of(view, field)}, linear model"
        yield _Model(title, field.unit, (*base, *more), fit, LEAST_SLOPE, spread)


def _baseline(compared: Compared) -> Iterator[_Covariate]:
    """Yield covariates from the table of patients, groups first."""
    facts, train = compared.facts, compared.train
    status = -1 if facts.ending is None else facts.ending[1]
    first = [group.place for group in facts.groups]
    places = dict.fromkeys([*first, *range(len(facts.baseline))])
    count = 0
    for place in places:
        field = facts.baseline[place]
        if place in (facts.end, status):
            continue
        codes = train.codes(place)
        if field.ordered:
            numbers = field.numbers[codes]
            mean, spread = float(np.nanmean(numbers)), float(np.nanstd(numbers))
            if not spread > 0:
                continue
            of = partial(_standard, place=place, mean=mean, spread=spread)
            found = [_Covariate(field.title, of, True)]
        else:
            shares = np.bincount(codes, minlength=field.size) / len(train)
            levels = [
                code
                for code in range(field.size)
                if code not in (field.missing, int(shares.argmax())) and shares[code] >= LEAST_LEVEL
            ]
            found = [
                _Covariate(
                    f"{field.title} {field.labels[code]}", partial(_is, place=place, code=code)
                )
                for code in levels
            ]
        for one in found[: MAX_COVARIATES - count]:
            count += 1
            yield one


def _standard(cohort: Cohort, place: int, mean: float, spread: float) -> Floats:
    numbers = cohort.facts.baseline[place].numbers[cohort.codes(place)]
    return np.asarray(np.nan_to_num(np.clip((numbers - mean) / spread, -REACH, REACH)))


def _is(cohort: Cohort, place: int, code: int) -> Floats:
    return np.asarray(cohort.codes(place) == code, dtype=np.float64)


def _codes_for(
    chosen: _Chosen, members: npt.NDArray[np.float32], outcomes: Floats
) -> list[_Covariate]:
    """Return the codes that an outcome of patients correlates most with."""
    known = np.isfinite(outcomes)
    if not len(chosen.groups) or not known.any():
        return []
    h, y = members[known].astype(float), outcomes[known] - outcomes[known].mean()
    size = h.sum(axis=0)
    smaller = np.minimum(size, len(y) - size)
    spread = np.sqrt(size * (len(y) - size) / len(y))
    strength = np.abs(y @ h) / np.where(spread > 0, spread, np.inf)
    strength[smaller < MIN_GROUP] = 0.0
    found = []
    for at in np.argsort(-strength, kind="stable")[:MOST_CODES].tolist():
        if strength[at] > 0:
            number = int(chosen.groups[at])
            label = chosen.codes.codes[number].label
            found.append(_Covariate(label, partial(_has, codes=chosen.codes, number=number)))
    return found


def _has(cohort: Cohort, codes: Codes, number: int) -> Floats:
    column = codes.columns[codes.codes[number].column]
    code = number - codes.starts[codes.codes[number].column]
    found = np.zeros(len(cohort))
    for series in column.series:
        view = cohort.series[series]
        found[view.patients[view.values[:, column.place] == code]] = 1.0
    return found


def _linear(
    cohort: Cohort, x: list[Floats], number: int, place: int, mean: float, spread: float
) -> Floats:
    """Return coefficients ``[variants, covariates]`` by least squares; each patient weighs one."""
    view = cohort.series[number]
    values = view.numbers(place)
    rows = np.flatnonzero(np.isfinite(values))
    who = view.patients[rows]
    weights = 1.0 / np.maximum(np.bincount(who, minlength=len(cohort)), 1)
    by_patient = np.column_stack([np.ones(len(cohort)), *x])
    size = by_patient.shape[1] + view.facts.timed
    groups = max(1, cohort.groups)
    products, right = np.zeros((groups, size, size)), np.zeros((groups, size))
    y = np.clip((values[rows] - mean) / spread, -5, 5)
    years = view.days[rows] / YEAR
    seats = cohort.seats[who]
    for seat in range(groups):
        at = np.flatnonzero(seats == seat)
        design = by_patient[who[at]]
        if view.facts.timed:
            design = np.column_stack([design, years[at]])
        weighted = design * weights[who[at]][:, None]
        products[seat], right[seat] = weighted.T @ design, weighted.T @ y[at]
    both = [np.sum(one, axis=0, keepdims=True) for one in (products, right)]
    if cohort.groups:
        both = [
            np.concatenate([one, one - part])
            for one, part in zip(both, (products, right), strict=True)
        ]
    ridge = 1e-6 * len(cohort) * np.eye(size)
    found = np.linalg.solve(both[0] + ridge, both[1][:, :, None])[:, :, 0]
    return np.asarray(found[:, 1:])


ROUNDS = 25
MIN_CAME = 5  # events, with fewer of which a cohort has no coefficients


def _cox(cohort: Cohort, x: list[Floats], event: str) -> Floats:
    """Return coefficients ``[variants, covariates]``; 0 where hardly anybody has the event."""
    follow = outcome(cohort, event)
    who = np.flatnonzero(follow.at_risk)
    order = who[np.argsort(-follow.days[who], kind="stable")]
    came, days = follow.happened[order], follow.days[order]
    variants = 1 + cohort.groups
    design = np.column_stack([one[order] for one in x]) if x else np.zeros((len(order), 0))
    size = design.shape[1]
    if came.sum() < MIN_CAME or not size:
        return np.zeros((variants, size))
    last = np.searchsorted(-days, -days, side="right") - 1  # the last row at risk on each day
    events = np.flatnonzero(came)
    at = last[events]
    beta, ridge = np.zeros(size), RIDGE * np.eye(size)
    for _ in range(ROUNDS):
        weight = np.exp(np.clip(design @ beta, -20, 20))
        s0 = np.cumsum(weight)[at]
        mean = np.cumsum(weight[:, None] * design, axis=0)[at] / s0[:, None]
        hessian = ridge.copy()
        for column in range(size):
            of_column = np.cumsum((weight * design[:, column])[:, None] * design, axis=0)[at]
            hessian[column] += (of_column / s0[:, None]).sum(axis=0)
        hessian -= mean.T @ mean
        step = np.linalg.solve(hessian, (design[events] - mean).sum(axis=0) - RIDGE * beta)
        beta = beta + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-6:
            break
    if not cohort.groups:
        return beta[None]
    # score residuals: an event of one's own, less what was expected while one was at risk
    hazard, moved = np.zeros(len(order)), np.zeros((len(order), size))
    np.add.at(hazard, at, 1 / s0)
    np.add.at(moved, at, mean / s0[:, None])
    hazard, moved = (np.cumsum(one[::-1], axis=0)[::-1] for one in (hazard, moved))
    residuals = -weight[:, None] * (design * hazard[:, None] - moved)
    residuals[events] += design[events] - mean
    by_group = np.stack(
        [
            np.bincount(cohort.seats[order], weights=residuals[:, column], minlength=cohort.groups)
            for column in range(size)
        ],
        axis=1,
    )
    return np.concatenate([beta[None], beta - np.linalg.solve(hessian, by_group.T).T])


def patient_facts(compared: Compared) -> Iterator[PartResult]:
    """Yield the sets of facts of patients that have something to compare."""
    yield prevalence(compared)
    yield effects(compared)
    found = survival_differences(compared)
    if found is not None:
        yield PartResult((), found)
    yield coefficients(compared)
