"""Events in time: how many patients had one at the start, rates, and Kaplan-Meier curves by group.

Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958. Days are
whole numbers within the declared window, so a curve is two counts by day: who had the event, and
who was last seen. That gives the curve of every jackknife group in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult, Variants
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, Floats, HistoryFacts, Ints, ratio

Bools = npt.NDArray[np.bool_]

MIN_PATIENTS = 50  # of train at risk in a group
MIN_EVENTS = 10  # of train
AT_RISK = 10  # patients of train, below which a curve is not compared any further
MAX_RATIO = float(np.log(4))  # of two rates, as a logarithm; beyond it, they are simply apart
POINTS = 61  # of a curve on a page
YEAR = 365.25

CURVES = (
    "Mean absolute difference of Kaplan-Meier curves of synthetic and real patients, over all "
    "events and the declared groups of patients: 0.05 means that the shares still without the "
    "event differ by 5 points on average."
)
RATES = (
    "Mean absolute logarithm of the ratio of an event's rate among synthetic and real patients: "
    "0.1 is 10 % too many or too few, 0.7 is twice as many or half; four times as many, or none, "
    "is 1.39 and as far as can be. Rare events count as much as common ones, unlike in curves."
)


@dataclass(frozen=True, eq=False, repr=False)
class OutcomeFollowUp:
    """How long each patient was followed for an event.

    Attributes:
        at_risk: whether the patient had not had it by day 0.
        days: until the event, or the end of follow-up.
        happened: whether it came.
    """

    at_risk: Bools
    days: Ints
    happened: Bools


def outcome_names(facts: HistoryFacts) -> tuple[str, ...]:
    """Return what can happen once to a patient: the declared end, such as death, and events."""
    ending = () if facts.ending is None else (facts.ending[0],)
    return (*ending, *facts.events)


def outcome(cohort: Cohort, name: str) -> OutcomeFollowUp:
    """Return how long patients were followed for one of `outcome_names`."""
    facts, ends = cohort.facts, np.clip(cohort.histories.ends, 0, None)
    if facts.ending is not None and name == facts.ending[0]:
        came = cohort.codes(facts.ending[1]) == facts.ending[2]
        return OutcomeFollowUp(np.ones(len(cohort), dtype=bool), ends, came)
    onset = cohort.histories.onsets[:, facts.events.index(name)]
    happened = (onset > 0) & (onset <= ends)
    before = (onset != NEVER) & (onset <= 0)
    return OutcomeFollowUp(~before, np.where(happened, onset, ends), happened)


def survival(compared: Compared) -> PartResult:
    """Measure curves by event and group, and say rates in plain units."""
    facts = compared.facts
    if not facts.timed or not (facts.events or facts.ending):
        return PartResult()
    measures: list[Measure] = []
    curves: list[dict[str, Any]] = []
    rates: list[dict[str, Any]] = []
    figures: list[JackknifeEstimate] = []
    grouped: list[JackknifeEstimate] = []
    ratios: list[JackknifeEstimate] = []
    notes: list[str] = []
    for name in outcome_names(facts):
        follow = outcome(compared.train, name)
        rates.append({"event": name, "figures": _rates(compared, name)})
        if (follow.happened & follow.at_risk).sum() < MIN_EVENTS:
            notes.append(f"fewer than {MIN_EVENTS} patients of train had {name}: no curves of it")
            continue
        rate = compared.each(partial(_log_rate, event=name))
        logs = JackknifeEstimate.of(_rates_apart, rate)
        if logs is not None:
            ratios.append(logs)
            measures += compared.measure(f"event_rates:{name}", f"Rate of {name}", [logs], RATES)
        own = []
        for group, level, label in levels(compared):
            who = follow.at_risk & member(compared.train, group, level)
            if who.sum() < MIN_PATIENTS:
                continue
            variants = compared.each(partial(survival_by_day, event=name, group=group, level=level))
            last = horizon(follow.days[who])
            own.append(_apart(variants, last))
            grouped += own[-1:] if group >= 0 else []
            title = None if group < 0 else facts.groups[group].title
            curves.append(_curve(name, title, label, variants, last) | {"distance": own[-1].value})
        figures += own
        measures += compared.measure(f"event_curves:{name}", f"Curves of {name}", own, CURVES)
    leading = [
        *compared.measure("event_curves", "Time to events, by group", figures, CURVES),
        *compared.measure("event_rates", "Rates of events, logarithm", ratios, RATES),
        *compared.measure("group_curves", "Time to events, groups alone", grouped, CURVES),
    ]
    return PartResult((*leading, *measures), {"curves": curves, "rates": rates}, tuple(notes))


def survival_by_day(cohort: Cohort, event: str, group: int = -1, level: int = 0) -> Floats:
    """Return the share without the event at the end of each day ``[variants, days]``, from day 0.

    It is 0 where nobody is at risk, so that such a group is far from any other.

    Args:
        cohort: of patients.
        event: one of `outcome_names`.
        group: number of a group of the schema; -1 for all patients.
        level: of the group.
    """
    follow = outcome(cohort, event)
    who = np.flatnonzero(follow.at_risk & member(cohort, group, level))
    days = np.clip(follow.days[who], 0, cohort.facts.last)
    cells = cohort.facts.last + 1
    came = cohort.sums(follow.happened[who], who, days, cells)
    left = cohort.sums(np.ones(len(who)), who, days, cells)
    at_risk = np.cumsum(left[:, ::-1], axis=1)[:, ::-1]
    curve = np.cumprod(1 - came / np.maximum(at_risk, 1.0), axis=1)
    return np.asarray(np.where(at_risk[:, :1] > 0, curve, 0.0))


def levels(compared: Compared) -> Iterator[tuple[int, int, str]]:
    """Yield all patients, and each level of each group: the group (-1: all), level and label."""
    yield -1, 0, "all patients"
    for number, group in enumerate(compared.facts.groups):
        for level, name in enumerate(group.names):
            yield number, level, name


def member(cohort: Cohort, group: int, level: int) -> Bools:
    """Return which patients belong to a level of a group; all of them for group -1."""
    if group < 0:
        return np.ones(len(cohort), dtype=bool)
    one = cohort.facts.groups[group]
    return np.asarray(one.of_code[cohort.codes(one.place)] == level)


def horizon(days: Ints) -> int:
    """Return the last day on which enough patients of train were followed."""
    return max(1, int(np.sort(days)[-min(AT_RISK, len(days))]))


def _apart(variants: Variants, last: int) -> JackknifeEstimate:
    def distance(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.abs(a[:, : last + 1] - b[:, : last + 1]).mean(axis=1))

    found = JackknifeEstimate.of(distance, variants)
    assert found is not None  # curves are finite
    return found


def _curve(
    event: str, group: str | None, level: str, variants: Variants, last: int
) -> dict[str, Any]:
    """Return a curve of each cohort as a page shows it; the interval is by the jackknife."""
    at = np.unique(np.linspace(0, last, POINTS).astype(int))
    value, without = variants.source[0, at], variants.source[1:, at]
    entry: dict[str, Any] = {"event": event, "group": group, "level": level}
    entry |= {"times": at.tolist(), "source": _short(value)}
    if len(without) > 1:
        count = len(without)
        error = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
        entry["source_low"] = _short(np.clip(value - 1.96 * error, 0, 1))
        entry["source_high"] = _short(np.clip(value + 1.96 * error, 0, 1))
    entry["synthetic"] = _short(variants.synthetic[0, at])
    return entry


def _short(values: Floats) -> list[float]:
    return [round(float(value), 5) for value in values]


def _rates_apart(a: Floats, b: Floats) -> Floats:
    return np.minimum(np.abs(a - b), MAX_RATIO)


def _log_rate(cohort: Cohort, event: str) -> Floats:
    """Return the logarithm of events by patient year; half an event more, so that none has one."""
    follow = outcome(cohort, event)
    years = np.where(follow.at_risk, follow.days, 0) / YEAR
    came = cohort.sums(follow.happened & follow.at_risk)
    return np.log(np.maximum(came, 0) + 0.5) - np.log(np.maximum(cohort.sums(years), 1e-9))


def _rates(compared: Compared, event: str) -> list[dict[str, Any]]:
    """Return how many patients had an event by day 0, and how often it came later."""

    def before(one: Cohort) -> Floats:
        follow = outcome(one, event)
        return ratio(one.sums(~follow.at_risk), one.sums(np.ones(len(one))))

    def rate(one: Cohort) -> Floats:
        follow = outcome(one, event)
        years = np.where(follow.at_risk, follow.days, 0) / YEAR
        return ratio(1000 * one.sums(follow.happened & follow.at_risk), one.sums(years))

    ending = compared.facts.ending
    if ending is not None and event == ending[0]:
        return [compared.spoken("per 1,000 patient years", "", rate)]
    return [
        compared.spoken("had it by day 0", "share", before),
        compared.spoken("later, per 1,000 patient years", "", rate),
    ]
