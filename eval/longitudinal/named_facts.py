"""Facts of histories with names: one figure of all of them, and where they differ most.

A set of facts is a list of numbers that each have a name and a unit that people know, such as the
median of the third potassium value. Which numbers there are follows from the schema and from how
many patients of train stand behind each. Its figure is the mean difference of synthetic and real
numbers, in a scale that makes them comparable. It stands beside the same figure of a bootstrap of
train's patients, which is what a perfect generator would reach.

The list of the largest differences shows numbers of real patients in plain units, for the office.
A number has enough patients behind it, or is not shown; see `NamedFact`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.eval.core import JackknifeEstimate, Measure, Variants, plain
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, Floats, Ints

LISTED = 6  # differences of a set
CLEAR = 3.0  # standard errors, from which on a difference is listed
MIN_SHOWN = 10  # patients behind a number that is shown

Spoken = Callable[[Cohort], list[tuple[float, ...]]]


@dataclass(frozen=True)
class NamedFact:
    """One number.

    Attributes:
        name: what it is, for people.
        unit: of the number: that of a column, "d", "share", or empty.
        subject: what it is about. A list of differences names each subject once.
        shown: whether enough patients of train stand behind it that a list may show it.
        few: of each number that is shown, whether it is of 1 to 9 patients of train; lists then
            say so in place of it. Empty where no number is.
        help: what may bring it nearer to the real one, as a sentence; empty where nothing is known.
        declared: whether a declaration of the schema keeps it; None where none could.
    """

    name: str
    unit: str
    subject: str
    shown: bool = True
    few: tuple[bool, ...] = ()
    help: str = ""
    declared: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class FactSet:
    """Numbers that are compared together.

    Attributes:
        key: of the measure.
        title: for people.
        meaning: what is counted, and what a bad value means.
        facts: the numbers.
        statistic: of a cohort, ``[variants, facts]``.
        scale: what a difference of each is divided by.
        most: as far as a number can be; one that is missing is so far.
        logarithm: the least number, where logarithms to the base 2 are compared; 0 where not.
        weights: of each number in the figure; equal ones where None.
        spoken: numbers to show in place of the statistic, one or two for each fact.
    """

    key: str
    title: str
    meaning: str
    facts: Sequence[NamedFact]
    statistic: Callable[[Cohort], Floats]
    scale: Floats
    most: float
    logarithm: float = 0.0
    weights: Floats | None = None
    spoken: Spoken | None = None

    def apart(self, a: Floats, b: Floats) -> Floats:
        """Return how far each number is off, ``[variants, facts]``, by its scale."""
        away = np.abs(self.compared(a) - self.compared(b)) / self.scale
        away = np.where(np.isnan(b), self.most, np.where(np.isnan(a), 0.0, away))
        return np.asarray(np.minimum(away, self.most))

    def compared(self, numbers: Floats) -> Floats:
        """Return numbers as they are compared."""
        return np.log2(np.maximum(numbers, self.logarithm)) if self.logarithm else numbers

    def mean(self, a: Floats, b: Floats) -> Floats:
        """Return the mean of what numbers are off."""
        away = self.apart(a, b)
        return away.mean(axis=1) if self.weights is None else away @ self.weights


def measured(
    compared: Compared, facts: FactSet, *, alone: bool = False
) -> tuple[list[Measure], dict[str, Any]]:
    """Measure a set of facts; return its figure, and where it differs most.

    Args:
        compared: the cohorts.
        facts: at least one.
        alone: whether differences are wanted alone, because another part has the figure.
    """
    variants = compared.each(facts.statistic)
    found = JackknifeEstimate.of(facts.mean, variants)
    assert found is not None  # what is missing is as far as can be
    estimate = found.estimate(compared.n, maximum=facts.most)
    measure = Measure(facts.key, facts.title, estimate, 0.0, facts.meaning)
    return [] if alone else [measure], {
        "key": facts.key,
        "title": facts.title,
        "count": len(facts.facts),
        "largest": _largest(compared, facts, variants),
    }


def _largest(compared: Compared, facts: FactSet, variants: Variants) -> list[dict[str, Any]]:
    """Return the largest clear differences, each subject once; all where declarations keep them."""
    away = facts.apart(variants.source[:1], variants.synthetic[:1])[0]
    spreads = [errors(facts.compared(side)) for side in (variants.source, variants.synthetic)]
    clear = (away > CLEAR * np.hypot(*spreads) / facts.scale) & (away > 0)
    chosen: list[int] = []
    subjects = set()
    for place in np.argsort(-away, kind="stable").tolist():
        fact = facts.facts[place]
        if not fact.shown:
            continue
        if fact.declared is not None:
            chosen.append(place)
        elif clear[place] and fact.subject not in subjects and len(chosen) < LISTED:
            chosen.append(place)
            subjects.add(fact.subject)
    sides = {"source": compared.train, "synthetic": compared.synthetic, "chance": compared.chance}
    numbers: dict[str, list[tuple[float, ...]]] = {}
    for name, side in sides.items() if chosen else ():
        own = getattr(variants, name)[0].tolist()
        numbers[name] = facts.spoken(side) if facts.spoken else [(number,) for number in own]
    entries = []
    for place in chosen:
        fact = facts.facts[place]
        entry: dict[str, Any] = {"name": fact.name, "unit": fact.unit, "apart": plain(away[place])}
        for name in sides:
            shown = [plain(one) for one in numbers[name][place]]
            if name != "synthetic" and fact.few:
                shown = [None if few else one for one, few in zip(shown, fact.few, strict=True)]
            entry[name] = shown
        entry |= {"clear": bool(clear[place]), "declared": fact.declared, "help": fact.help}
        entries.append(entry)
    return entries


def errors(variants: Floats) -> Floats:
    """Return the standard error of each number by the jackknife over groups of patients."""
    without = variants[1:]
    if len(without) < 2:
        return np.zeros(variants.shape[1])
    with np.errstate(invalid="ignore"):
        spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.nan_to_num(np.sqrt((len(without) - 1) / len(without) * spread)))


def quantiles(counts: Floats, numbers: Floats, shares: Sequence[float]) -> Floats:
    """Return quantiles of counted numbers, ``[variants, shares]``; NaN where nothing is counted.

    Args:
        counts: ``[variants, numbers]``.
        numbers: ascending.
        shares: of the count, from 0 to 1.
    """
    sums = np.cumsum(np.maximum(counts, 0.0), axis=1)
    total = sums[:, -1:]
    places = np.stack([(sums < share * total - 1e-9).sum(axis=1) for share in shares], axis=1)
    return np.where(total > 1e-9, numbers[np.minimum(places, len(numbers) - 1)], np.nan)


def distinct(keys: Ints) -> Ints:
    """Return different keys in order; by sorting, which is faster here than `numpy.unique`."""
    ordered = np.sort(keys)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def enough(compared: Compared, patients: int, least: int = 50) -> bool:
    """Whether so many patients of train, and as many by share of a sample, are ``least``."""
    return patients * min(1.0, compared.n / len(compared.train)) >= least


def is_few(part: float, whole: float) -> bool:
    """Whether a share tells of 1 to 9 patients: of those in it, or of those who are not."""
    return 0 < part < MIN_SHOWN or 0 < whole - part < MIN_SHOWN


ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 10: "tenth"}
