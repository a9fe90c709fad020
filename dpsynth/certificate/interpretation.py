"""What a certificate means for whoever is in the data: a bound on what an attacker may believe.

Whether a patient is in the data or not, the chance of anything that the release shows differs by a
factor of at most e^epsilon, but for delta. By Bayes' theorem the *odds* that an attacker gives to
the patient's being in the data change by at most the same factor, whatever they were before, for an
attacker who knows everybody else's records, or holds a patient's presence to be independent of
theirs. (Whoever knows that a family is in as a whole or not at all learns from all of its members.)
Two records that a patient *in* the data might have are apart by e^(2 epsilon): one removed, one
added. With delta: every (epsilon, delta)-private release is
post-processing of one that tells everything with probability delta and otherwise changes odds by
exactly e^epsilon, up or down (Kairouz, Oh, Viswanath, The Composition Theorem for Differential
Privacy, arXiv 1311.0776). So an attacker who sees the release does no better than one who is told
all with probability delta, and is bound by e^epsilon otherwise.

Attack rates say the same of somebody who tries to find those who are in the data. For one release
they follow from all of its events (`dpsynth.privacy.attack_rates`); for several, of which epsilon
and delta alone are known here, from these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth._util.formatting import (
    at_most,
    figure_at_most,
    one_in,
    percent,
    percent_at_most,
    shown,
)
from dpsynth.certificate.certificate import Certificate
from dpsynth.certificate.table_bound import TableBound, rows_that_count
from dpsynth.errors import InputError
from dpsynth.privacy import AttackRates, Unit, counted_several, rates_of_claim, whom

PRIORS = (0.5, 0.1, 0.01)
_STATISTICS = "statistics"  # what a certificate of statistics has for a model
_LOGARITHM_OF_MOST = 700.0  # e^700 is about the largest float


@dataclass(frozen=True)
class Belief:
    """What an attacker thought before, and the most and the least that is left afterwards."""

    prior: float
    most: float
    least: float

    @property
    def words(self) -> str:
        """Say it in one line."""
        return f"{percent(self.prior)} before, {self.bound} afterwards"

    @property
    def bound(self) -> str:
        """Return the upper bound, as "at most 75 %", or "almost 100 %" where it rounds to that."""
        maximum = percent_at_most(self.most)
        return maximum if maximum.startswith("almost") else f"at most {maximum}"


@dataclass(frozen=True)
class Interpretation:
    """A guarantee in words.

    Attributes:
        title: what it is about: this release, or all fits on the dataset.
        epsilon: of it.
        delta: of it.
        rates: the most that a membership attack can reach.
        beliefs: for each of `PRIORS`.
        verdict: how much that is, plainly.
    """

    title: str
    epsilon: float
    delta: float
    rates: AttackRates
    beliefs: tuple[Belief, ...]
    verdict: str

    @property
    def factor(self) -> str:
        """Say by which factor odds may change, rounded up."""
        maximum = at_most(math.exp(min(self.epsilon, _LOGARITHM_OF_MOST)))
        return maximum if maximum.startswith("over") else f"at most {maximum}"

    @property
    def attack(self) -> str:
        """Say in two sentences what a membership attack can reach."""
        rates = self.rates
        return (
            "An attack that wrongly accuses 1 % of the people who are not in the data (false "
            f"alarms) finds at most {percent_at_most(rates.tpr_at_1_percent)} of those who are; "
            f"with 10 % false alarms, at most {percent_at_most(rates.tpr_at_10_percent)}. The "
            "share found exceeds the share of false alarms by at most "
            f"{percent_at_most(rates.advantage).removesuffix(' %')} percentage points (the "
            "advantage)."
        )

    @property
    def exception(self) -> str:
        """Return delta in words: the probability with which the bound may not hold."""
        return one_in(self.delta) if self.delta < 0.5 else percent(min(1.0, self.delta))


def largest_posterior(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the most that an attacker may come to believe of what was believed before.

    The exceptional chance delta counts as full knowledge.

    >>> round(largest_posterior(0.5, math.log(3)), 6)
    0.75

    Raises:
        InputError: prior or delta is not a probability, or epsilon is negative.
    """
    if not (0 <= prior <= 1 and 0 <= delta <= 1 and epsilon >= 0):
        raise InputError("prior and delta must be between 0 and 1, and epsilon at least 0")
    if prior in (0, 1):
        return float(prior)
    # prior e^eps / (prior e^eps + 1 - prior), written so that nothing overflows
    bound = prior / (prior + (1 - prior) * math.exp(-epsilon))
    return delta + (1 - delta) * bound


def smallest_posterior(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the least that may be left of a belief: the mirror image of the largest."""
    return 1 - largest_posterior(1 - prior, epsilon, delta)


def readings(certificate: Certificate) -> tuple[Interpretation, ...]:
    """Read a certificate: this release; then all fits on the dataset, if they come to more.

    Both are for one of those whom the ledger counts. The sum over all fits is that of the ledger
    when the fit was certified.
    """
    alone = certificate.unit.cost(certificate.composed_epsilon, certificate.delta)
    lines = [_reading("This release alone", *alone, certificate.attack_rates)]
    charged = certificate.registers[:1] if certificate.is_joint else certificate.registers
    for register in charged:
        charge = register.ledger
        if charge is None or charge.epsilon_total <= certificate.cost[0] * (1 + 1e-9):
            continue
        fits, this = "fits", "this fit was"
        if certificate.model == _STATISTICS:
            fits, this = "fits and statistics", "these were"
        title = (
            f"All {charge.fits} {fits} that the ledger counted for the same "
            f"{counted_several(register.unit)} when {this} certified"
        )
        if len(charged) > 1:
            title += f", on dataset '{shown(charge.dataset)}'"
        total = charge.epsilon_total, min(1.0, charge.delta_total)
        lines.append(_reading(title, *total, rates_of_claim(*total)))
    return tuple(lines)


def protected(unit: Unit, tables: Sequence[TableBound] = ()) -> str:
    """Say whose presence the guarantee hides.

    Args:
        unit: of a certificate.
        tables: what counts of each of several linked tables; empty for a single one.
    """
    if tables:
        return _protected_history(unit, tables)
    if unit.max_units > 1:
        several = "rows" if unit.name is None else f"values of column '{shown(unit.name)}'"
        if unit.missing_key == "own":
            several += " and rows without one"
        return (
            f"The guarantee protects {whom(unit)} with at most {unit.max_units} {several} in the "
            "source table, and covers all of them together: the noise was planned for one of them, "
            f"and the figures below are for {unit.max_units}. This assumes that {whom(unit)} has "
            "no more, and nothing checks that. Basis of the assumption: "
            f"{shown(unit.max_units_basis or '').strip().rstrip('.')}."
        )
    if unit.name is None:
        if unit.person is not None:
            return (
                f"The guarantee protects {whom(unit)}, as one row of the source table. This "
                "assumes that nobody has several rows, and nothing checks that. Basis of the "
                "assumption: "
                f"{shown(unit.max_units_basis or '').strip().rstrip('.')}."
            )
        return (
            "The guarantee protects one row of the source table. If a person has several rows, it "
            "protects each row separately, not all of them together."
        )
    rows = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
    used = "counts in each measurement" if unit.max_rows == 1 else "count in each measurement"
    several = ", consecutive ones" if unit.max_rows > 1 and unit.keep == "window" else ""
    several += ", chosen at random; two measurements may use different rows"
    column = f"column '{shown(unit.name)}' of the source table"
    if unit.person is None:
        return (
            f"The guarantee protects a value of {column}, with all of its rows together. At most "
            f"{rows} of each value {used}{several}. If a person has several values, it protects "
            "each value separately."
        )
    return (
        f"The guarantee protects {whom(unit)}, identified by {column}, with all of their rows "
        f"together. At most {rows} of each {unit.person} {used}{several}."
    )


def _protected_history(unit: Unit, tables: Sequence[TableBound]) -> str:
    """Say it of a patient with all rows in all tables."""
    column = f"column '{shown(unit.name or '')}' of table {tables[0].name}"
    rows = "with all of their rows in all tables together"
    if unit.max_units > 1:
        whose = (
            f"{whom(unit)} with at most {unit.max_units} values of {column}, {rows}. The noise was "
            f"planned for one value, and the figures below are for {unit.max_units}. This assumes "
            f"that {whom(unit)} has no more, and nothing checks that. Basis of the assumption: "
            f"{shown(unit.max_units_basis or '').strip().rstrip('.')}"
        )
    elif unit.person is None:
        whose = (
            f"a value of {column}, {rows}. If a person has several values, it protects each value "
            "separately"
        )
    else:
        whose = f"{whom(unit)}, identified by {column}, {rows}"
    counts = rows_that_count(tables, unit.person or "value")
    return f"The guarantee protects {whose}. {counts}"


def for_person(certificate: Certificate) -> str:
    """Continue a sentence about epsilon of a unit with that of a person; empty if they are one."""
    unit = certificate.unit
    if unit.max_units == 1:
        return ""
    epsilon, delta = certificate.cost
    return (
        f" (for {whom(unit)}, assuming at most {unit.max_units} of them: epsilon "
        f"{figure_at_most(epsilon)} and delta {figure_at_most(delta)})"
    )


def attack_conditions(unit: Unit) -> str:
    """Say under which conditions attack rates hold.

    >>> from dpsynth.privacy.unit import EACH_ROW
    >>> attack_conditions(EACH_ROW).split(". ")[1]
    'They compare the data with and without a row'
    """
    whose = whom(unit)
    apart = whose if whose == "a row" else f"{whose} with all of their rows"
    return (
        "These rates bound every attack, also by someone who knows all other rows. They compare "
        f"the data with and without {apart}. They cover what the mechanisms listed in the "
        "certificate released, and nothing else. What delta leaves open is counted as found. The "
        "rates follow from the planned noise. They were not measured: an audit measures what its "
        "attacks reach."
    )


def what_it_is_not(*, several: bool = False) -> tuple[str, ...]:
    """List the ways in which epsilon is commonly misread; of one table, or of several."""
    this = "these tables" if several else "this table"
    return (
        "It is not the probability that you are recognised. It limits how much the presence of "
        "your records can change anyone's belief that you are in the data.",
        "It is about whether you are in the data. For what a record says about someone who is "
        "known to be in the data, the factor applies twice (e^(2 epsilon)).",
        "It covers you alone. If an attacker knows that a family, or a medical practice, is in the "
        "data as a whole or not at all, the records of all its members count together, and the "
        "bound is weaker.",
        "It is not a forecast of what an attacker will achieve. It is a limit for every attack by "
        "anyone, now or later.",
        f"It does not hide what is true of people like you. For example, {this} can show that "
        "smokers fall ill more often. That also concerns smokers who were never in the data.",
        f"It was not measured on {this}. It follows from the noise, which was planned before "
        "the records were opened.",
    )


def _reading(title: str, epsilon: float, delta: float, rates: AttackRates) -> Interpretation:
    beliefs = tuple(
        Belief(
            prior,
            largest_posterior(prior, epsilon, delta),
            smallest_posterior(prior, epsilon, delta),
        )
        for prior in PRIORS
    )
    return Interpretation(title, epsilon, delta, rates, beliefs, _verdict(epsilon))


def _verdict(epsilon: float) -> str:
    """Say how much a bound is worth, by the beliefs that it allows."""
    even, rare = largest_posterior(0.5, epsilon), largest_posterior(0.01, epsilon)
    if rare > 0.5:
        return (
            "On its own, this bound promises little: an attacker who thought it 1 % likely that "
            f"you are in the data could come to think it {percent_at_most(rare)} likely. Known "
            "attacks usually achieve less, but nothing here guarantees that."
        )
    if even > 0.9:
        return (
            "The protection is strongest for people an attacker does not already suspect: 1 % "
            f"becomes at most {percent_at_most(rare)}. An attacker who already thought it as "
            f"likely as not that you are in the data could become {percent_at_most(even)} sure "
            "of it."
        )
    if even > 0.75:
        return (
            "This bound is moderate: an attacker may become more certain of a suspicion (50 % "
            f"becomes at most {percent_at_most(even)}), but cannot turn a mere possibility into "
            f"near certainty (1 % becomes at most {percent_at_most(rare)})."
        )
    return (
        "This bound is strong: whatever an attacker thought about whether you are in the data, the "
        f"release changes it little (50 % becomes at most {percent_at_most(even)})."
    )
