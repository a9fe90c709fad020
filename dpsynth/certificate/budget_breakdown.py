"""What each event of a certificate was for, in words, and its part of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth._util.formatting import figure, figure_at_most, percent
from dpsynth.certificate.certificate import Certificate
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    KeyCounts,
    LaplaceCounts,
    LinkCounts,
    PoissonSgd,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
    units_of,
)
from dpsynth.privacy.discovery_events import MASS
from dpsynth.privacy.pair_statistics import DEPARTURES, OF_PRODUCTS
from dpsynth.privacy.public_quality import QUALITY

_WRITTEN = "granularity of numbers"  # in names of events
_STANDS_OUT, _NEXT_VALUE = "that stand out", "where the next value lies"  # in names of events
_OF_HISTORIES = {
    "tables: clocks": "whether the tests of a table are taken on the same days",
    "patients: one-way": "how often each fact of a patient occurs, and when",
    "patients: codes": "how many patients ever have each code or event",
    "patients: tests": "how often tests are taken, and how patients differ in them",
    "rows: values": "how the values of each test are distributed",
    "rows: days": "on which days rows lie, and how far apart",
    "rows: places": "on which days of a stay, or due days, rows lie",
    "rows: memory": "how alike values of a patient are that lie some days apart",
    "rows: at one time": "how values of one day go together",
    "rows: taken together": "which tests are taken on one day",
    "rows: codes of": "which codes rows have, and which follow each other",
}
"""What events of histories learn, by what is in their names."""


@dataclass(frozen=True)
class BudgetLine:
    """An event of a plan.

    Attributes:
        name: of the event.
        share: its part of the sum of mu squared, by which a plan divides its budget.
        purpose: what was learned by it.
        noise: what was added.
    """

    name: str
    share: float
    purpose: str
    noise: str


def budget_lines(certificate: Certificate, *, quality: bool) -> list[BudgetLine]:
    """List every event of a certificate, in its order.

    Args:
        certificate: of the run.
        quality: whether figures are published that the event for them paid for.
    """
    squares = [event.mu() ** 2 for event in certificate.events]
    total = sum(squares)
    who = units_of(certificate.unit)
    lines = []
    for event, square in zip(certificate.events, squares, strict=True):
        purpose = _purpose(event, who, again=_STANDS_OUT in event.name)
        if certificate.tables and _NEXT_VALUE in event.name:
            purpose = "where the next value of a series lies, given the values before"
        if certificate.tables:
            told = [words for part, words in _OF_HISTORIES.items() if part in event.name]
            purpose = told[0] if told else purpose
        if event.name == QUALITY:
            spent = "on this page" if quality else "set aside; none are published with this bundle"
            purpose = f"figures on the quality of the synthetic table: {spent}"
        share = square / total if 0 < total < float("inf") else 1 / len(squares)
        lines.append(BudgetLine(event.name, share, purpose, _noise(event, who)))
    return lines


def _purpose(event: Event, who: str, *, again: bool) -> str:
    match event:
        case JointHistograms(name=name) if _WRITTEN in name:
            are = "1 number is" if event.histograms == 1 else f"{event.histograms:,} numbers are"
            return f"how {are} written: whole, with decimals, or rounded"
        case JointHistograms():
            many = "1 count" if event.histograms == 1 else f"{event.histograms:,} sets of counts"
            return f"how often each value of a column occurs: {many}"
        case ChosenHistograms(name=name) if name in OF_PRODUCTS:
            return (
                "how strongly columns are related: sums of products of two columns' scores, at "
                f"most {event.most:,}"
            )
        case ChosenHistograms(name=name) if name == DEPARTURES:
            return (
                "how much more than that there is to a relation: one distance for each of "
                f"{_pairs(event)}"
            )
        case ChosenHistograms():
            if again:
                return (
                    "a second, more precise count of the column pairs that stood out in the first"
                )
            return f"which values occur together: counts for at most {_pairs(event)}"
        case RowSums() | LaplaceCounts():
            return "sums over rows: a statistic of a request"
        case TeacherVotes():
            return (
                f"which of {event.classes:,} labels {event.queries:,} public rows have, by the "
                f"votes of {event.teachers:,} teachers"
            )
        case LinkCounts():
            return (
                f"how many candidate pairs of two registers reach each of {event.cells:,} "
                f"thresholds, at most {event.cap:,} of each record"
            )
        case StaySums():
            return f"how many {who} are there in each of {event.periods:,} periods"
        case TopChoice():
            return f"which {event.chosen:,} values most {who} have"
        case KeyCounts():
            return (
                f"how often each key occurs that nobody declared: those with a noisy count of "
                f"{event.threshold:,} or more; a key of one alone is listed with a chance of at "
                f"most {figure_at_most(event.delta)}"
            )
        case CodeDiscovery():
            chance = figure_at_most(event.delta)
            return (
                f"which codes occur: those that about {figure(event.threshold / MASS)} of the "
                f"{who} have, or more; a code of one alone is found with a chance of at most "
                f"{chance}"
            )
        case PoissonSgd(sampling_rate=1.0, steps=1):
            return f"training the network: 1 step, with all {who}"
        case PoissonSgd():
            share = percent(event.sampling_rate).replace(".0 ", " ")
            return (
                f"training the network: {event.steps:,} steps, each with a random {share} of "
                f"the {who}"
            )
    return "another measurement of the source"


def _pairs(event: ChosenHistograms) -> str:
    return "1 pair of columns" if event.most == 1 else f"{event.most:,} pairs of columns"


def noise_sd(event: JointHistograms | ChosenHistograms) -> float:
    """Return the standard deviation of the noise on one count, in units or in rows.

    Where the rows of a unit share its mass, counts are kept in parts of a unit, and this is in
    whole units; else it is in rows. Of chosen histograms, if as many as may be are chosen, and
    evenly.
    """
    whole = event.unit_mass or 1
    if isinstance(event, JointHistograms):
        return event.sigma / whole
    return event.noise_multiplier * math.sqrt(event.most) * event.mass / whole


def _noise(event: Event, who: str) -> str:
    """Say how much noise was added, in what is counted."""
    if isinstance(event, PoissonSgd):
        return f"multiplier {figure(event.noise_multiplier)}, in each step"
    if isinstance(event, RowSums):
        times = figure(event.sigma / event.sensitivity)
        return f"sd {figure(event.sigma)} on each sum; multiplier {times}"
    if isinstance(event, TeacherVotes):
        return f"sd {figure(event.sigma)} on each number of votes"
    if isinstance(event, LinkCounts):
        return f"sd {figure(event.sigma)} on each number of pairs"
    if isinstance(event, LaplaceCounts):
        return f"Laplace noise, sd {figure(event.sd)} on each count"
    if isinstance(event, KeyCounts):
        return f"sd {figure(event.sigma)} on each count"
    if isinstance(event, StaySums):
        return f"multiplier {figure(event.relative_noise)} for all periods together"
    if isinstance(event, TopChoice):
        return f"Gumbel noise of scale {figure(event.scale)} on each score"
    if isinstance(event, CodeDiscovery):
        return f"sd {figure(event.sigma / MASS)} {who} on the number of each code"
    each = event.unit_mass is not None or event.rows_per_unit == 1
    sd = f"sd {figure(noise_sd(event))} {who if each else 'rows'}"
    if isinstance(event, JointHistograms):
        return f"{sd} on each count; multiplier {figure(event.sigma / event.sensitivity)}"
    multiplier = f"multiplier {figure(event.noise_multiplier)} for all of them together"
    if event.name in OF_PRODUCTS:
        return f"on each sum, times the most that one unit adds to all: {multiplier}"
    if event.name == DEPARTURES:
        return f"{sd} on each distance; {multiplier}"
    if event.name == QUALITY:
        return f"about {sd} on each figure; {multiplier}"
    return f"{sd} on each count if all pairs are used; {multiplier}"
