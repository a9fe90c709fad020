"""The rules of a policy: may this fit be run, after all that was spent, and what is left.

Pure functions of public facts: the policy, the fits that count, the request, the time. A cap on
several fits is a privacy filter (privacy_filter.py): it is asked about the past with the request.

**365 days.** Which fits count at a time, and why every window is within the cap: policy_fits.py.

**One unit.** Sums are of epsilons for one of those whom all fits of a budget count, be it a row, a
value of a key column or a patient (`conflict`); a fit that counts something else is refused.

**One release.** A single fit needs no filter: its own claim, at its own delta, which is at most the
policy's, is compared with the cap.

A fit as the rules of a policy take it: one that is asked for, and one that counts.

**365 days.** A fit spends when it reads, which is after it was admitted, and once more when its
share for quality figures is measured, which may be long after. So a fit counts as a whole, from the
moment when it is admitted until 365 days after the time since when it can spend nothing more
(``Past.at``; None as long as it may). Then what is *spent* in any window (a, a + 365 days] is
within the cap:

1. Let E be the fits that spend something in the window, and f the one of E that was admitted last,
   at time t. It spends in the window after t, so t <= a + 365 days.
2. Let e be another fit of E; it was admitted before f and spends at a time s > a. If it could
   still spend at t, it counted at t. If it could not, its ``at`` is a time of its last spending or
   later, so ``at`` >= s > a >= t - 365 days, and it counted at t as well. (Records hold whole
   seconds, rounded down. So ``at`` is one second after that of the record; t is rounded down too,
   which only lets more fits count.)
3. So at t all of E counted, f included, and their sum was admitted. Parts of a sum that is admitted
   are, and what a fit spends within the window is at most all that it may spend.

So *every* window of 365 days is within the cap, not only calendar years, whose turn would allow
twice the cap within weeks. Counting a fit at the time of its reservation is wrong: two fits that
are admitted a year apart can both have their quality measured in one week. Nothing is judged a
second time, because what may still be spent is held. What a window reveals is bounded for somebody
who knows the results of earlier windows.

One budget counts one unit: epsilons for a row and for a patient must not be added.

Two fits that are each epsilon-private for *the same* unit are 2 epsilon-private for it together.
Where one hides a row and the other a patient, no such sum means anything: a patient of five rows
pays five times the first epsilon. So all fits of a budget (a dataset with those that share its
patients) have to count the same:

- a row; or
- a value of one key column, read in one way (trimming, case, leading zeros, rows without a key),
  since keys that are read otherwise are other units; or
- a person whom the schemas name: there one value of a key column is one person, or a person has a
  declared number of rows or values, and pays for as many by group privacy (`privacy.unit`).

A key column stands for a person where one schema of the budget says so, by its own key column or
by ``same_as``, which lists the key columns of other extracts. Where another schema says that a
person has several values of this column, one of both is wrong, and nothing is added up.
How many rows of a unit count, and which ones (``max_rows``, ``keep``), may differ: each fit is
private for the unit with all its rows, whatever number of them it uses.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dpsynth._util.messages import did_you_mean
from dpsynth.errors import BudgetError, InputError
from dpsynth.policy.limits import Cap, Caps, Tier
from dpsynth.policy.policy import Policy
from dpsynth.privacy import PrivacyFilter, Spend, Unit, counted_of, described, exactly, rounded_down
from dpsynth.privacy.accounting import MIN_DELTA

CAPS = SINGLE, ROLLING, OVERALL = "epsilon a release", "epsilon in 365 days", "epsilon in all"
FLOOR = "least epsilon"
BUILT_IN = ("those of dpsynth",)


@dataclass(frozen=True)
class ConstraintCheck:
    """What one constraint of a policy says about a request.

    Attributes:
        constraint: its name.
        allowed: whether the request keeps it.
        limit: what the policy allows.
        used: epsilon that earlier fits have used of the limit; None where nothing adds up.
        asked: what the request asks for.
        basis: why the policy has the constraint.
        remedy: what would satisfy it; empty if it is satisfied.
    """

    constraint: str
    allowed: bool
    limit: str | float | None
    used: float | None
    asked: str | float | None
    basis: str
    remedy: str

    def __str__(self) -> str:
        """Return the verdict as one line."""
        figure = "more than all" if self.used == math.inf else figure_of(self.used)
        used = "" if self.used is None else f", {figure} of it used"
        line = (
            f"{self.constraint}: limit {figure_of(self.limit)}{used}, {figure_of(self.asked)} asked"
        )
        return f"{line} (basis: {self.basis})" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class CapUsage:
    """How much of one cap is used: epsilon at the policy's delta.

    Attributes:
        name: of the cap.
        limit: the cap.
        used: of it, by the filter; 0 for a cap on single releases; infinite where the deltas of
            the past are beyond the policy's.
        left: limit less used, never below 0.
        basis: the cap's.
    """

    name: str
    limit: float
    used: float
    left: float
    basis: str


def judge(
    policy: Policy, past: Sequence[Past], request: Request, now: datetime
) -> tuple[ConstraintCheck, ...]:
    """Hold a request against every constraint of the policy, in a fixed order.

    Args:
        policy: the policy in force.
        past: the fits that count, of all datasets; those of the same budget are picked here.
        request: the fit that is asked for.
        now: the time, with its zone.
    """
    tier = policy.tier(request.tier)
    verdicts = [*_facts(policy, request), *_one_unit(policy, past, request)]
    accounts = _accounts(policy, past, request.dataset, tier, now)
    verdicts += [account.verdict(request) for account in accounts]
    if tier is not None and (minimum := tier.least) is not None:  # too noisy to serve its purpose
        epsilon, name = request.spend.epsilon, f"tier {tier.name}: {FLOOR}"
        fits, remedy = exactly(epsilon) >= exactly(minimum.epsilon), f"at least {minimum.epsilon!r}"
        verdict = _verdict(name, fits, minimum.epsilon, epsilon, minimum.basis, f"ask for {remedy}")
        verdicts.append(verdict)
    return tuple(verdicts)


def require(policy: Policy, past: Sequence[Past], request: Request, now: datetime) -> None:
    """Let a request pass only if it keeps every constraint.

    Raises:
        BudgetError: it names each constraint that fails, its basis, and what would satisfy it.
    """
    failed = [verdict for verdict in judge(policy, past, request, now) if not verdict.allowed]
    if failed:
        refusal = f"the policy '{policy.name}' refuses this fit of dataset '{request.dataset}'"
        raise BudgetError(f"{refusal}:", items=failed)


def room(
    policy: Policy, past: Sequence[Past], dataset: str, tier: str | None, now: datetime
) -> tuple[CapUsage, ...]:
    """Say how much of each cap a dataset, with those that share its budget, has used.

    Caps of a tier are among them where one is named.
    """
    return tuple(a.meter() for a in _accounts(policy, past, dataset, policy.tier(tier), now))


@dataclass(frozen=True)
class _Account:
    """A cap with the fits that count against it."""

    prefix: str
    kind: str
    delta: float
    cap: Cap
    counted: tuple[Past, ...]

    @property
    def filter(self) -> PrivacyFilter:
        return PrivacyFilter(self.cap.epsilon, self.delta)

    @property
    def spends(self) -> list[Spend]:
        return [entry.spend for entry in self.counted]

    def meter(self) -> CapUsage:
        used = self.filter.used(self.spends)
        rest = max(0.0, self.cap.epsilon - used)
        return CapUsage(self.prefix + self.kind, self.cap.epsilon, used, rest, self.cap.basis)

    def verdict(self, request: Request) -> ConstraintCheck:
        used, spend = None, request.spend
        if self.kind == SINGLE:
            allowed = exactly(spend.epsilon) <= exactly(self.cap.epsilon)
            remedy = f"ask for an epsilon of at most {self.cap.epsilon!r}{_for_whom(request)}"
        else:
            allowed = self.filter.admits([*self.spends, spend])
            used, remedy = self.filter.used(self.spends), "" if allowed else self._remedy(request)
        limit, basis = self.cap.epsilon, self.cap.basis
        return _verdict(self.prefix + self.kind, allowed, limit, spend.epsilon, basis, remedy, used)

    def _remedy(self, request: Request) -> str:
        """Say what would be admitted by the plain sum, or when the request as it is would be."""
        spend = request.spend
        rest, rest_delta = self.filter.plain_room(self.spends)
        ways = []
        if rest > 0 and rest_delta >= exactly(MIN_DELTA):
            asks = []
            if rest < exactly(spend.epsilon):
                asks.append(f"an epsilon of at most {rounded_down(rest, 3)!r}")
            if rest_delta < exactly(spend.delta):
                asks.append(f"a delta of at most {rounded_down(rest_delta, 2)!r}")
            ways.append("ask for " + " and ".join(asks) + _for_whom(request))
        else:
            ways.append("the plain sum leaves nothing; use `dpsynth plan` to look for an epsilon")
        if self.kind == ROLLING:
            ways += self._waiting(spend)
        return ", or ".join([*ways, "ask the people who set the cap to raise it"])

    def _waiting(self, spend: Spend) -> list[str]:
        """Say after which day (UTC) enough of the past is 365 days old, or what keeps it young."""

        def admitted(moment: datetime) -> bool:
            rest = [entry.spend for entry in self.counted if entry.counts_at(moment)]
            return self.filter.admits([*rest, spend])

        moments = sorted(entry.at + YEAR for entry in self.counted if entry.at is not None)
        first = bisect_left(moments, True, key=admitted)  # less of the past is never worse
        if moments[first:]:
            return [f"ask again after {moments[first].astimezone(UTC).date().isoformat()}"]
        still = sum(entry.at is None for entry in self.counted)
        if not still or not self.filter.admits([spend]):
            return []
        fits = "1 fit" if still == 1 else f"{still} fits"
        return [f"end what {fits} can still spend (`dpsynth ledger show`), and wait 365 days"]


def _accounts(
    policy: Policy, past: Sequence[Past], dataset: str, tier: Tier | None, now: datetime
) -> list[_Account]:
    """Every cap, the general ones first, with the fits that count against it."""
    require_zone(now)
    members = policy.members(dataset)
    shared = tuple(entry for entry in past if entry.dataset.lower() in members)
    accounts = _of_caps(policy, policy.caps, "", shared, now)
    if tier is not None:
        of_tier = tuple(e for e in shared if (e.tier or "").lower() == tier.name.lower())
        accounts += _of_caps(policy, tier.caps, f"tier {tier.name}: ", of_tier, now)
    return accounts


def _of_caps(
    policy: Policy, caps: Caps, prefix: str, counted: tuple[Past, ...], now: datetime
) -> list[_Account]:
    recent = tuple(entry for entry in counted if entry.counts_at(now))
    year, total = (ROLLING, caps.year, recent), (OVERALL, caps.total, counted)
    accounts = ((SINGLE, caps.release, ()), year, total)
    return [_Account(prefix, kind, policy.delta, cap, fits) for kind, cap, fits in accounts if cap]


def _facts(policy: Policy, request: Request) -> list[ConstraintCheck]:
    """Judge what does not add up: tier, model, population, cells that refuse, delta."""
    verdicts = []
    if policy.tiers or request.tier is not None:
        verdicts.append(_tier(policy, request.tier))
    if policy.models is not None or not policy.allows(request.model):
        fits, names = policy.allows(request.model), ", ".join(policy.models or BUILT_IN)
        basis, remedy = "the policy's list of models", f"fit one of {names}"
        verdicts.append(_verdict("model", fits, names, request.model, basis, remedy))
    if (minimum := policy.minimum_population) is not None:
        people = request.population // request.unit.max_units  # of whom there are so many at least
        fits = people >= minimum.value
        remedy = "this dataset is too small for a release"
        name = "minimum population"
        verdicts.append(_verdict(name, fits, minimum.value, people, minimum.basis, remedy))
    if not policy.allow_refuse:
        fits, requested = not request.may_refuse, "yes" if request.may_refuse else "no"
        basis = "a refusal is one bit outside the guarantee"
        remedy = "give the columns of the schema another on_bad than refuse"
        verdicts.append(_verdict("cells may refuse", fits, "no", requested, basis, remedy))
    fits = exactly(request.spend.delta) <= exactly(policy.delta)
    basis, remedy = "every cap holds at this delta", f"ask for a delta of at most {policy.delta!r}"
    verdicts.append(_verdict("delta", fits, policy.delta, request.spend.delta, basis, remedy))
    return verdicts


def _one_unit(policy: Policy, past: Sequence[Past], request: Request) -> list[ConstraintCheck]:
    """Refuse a fit that counts something else than the fits of its budget."""
    members = policy.members(request.dataset)
    others = [entry.unit for entry in past if entry.dataset.lower() in members]
    reason = conflict(request.unit, others)
    if reason is None:
        return []
    limit, requested = described(others[0]), described(request.unit)
    basis = "epsilons of different units do not add up"
    return [_verdict("privacy unit", False, limit, requested, basis, reason)]


def _tier(policy: Policy, name: str | None) -> ConstraintCheck:
    names, fits = [tier.name for tier in policy.tiers], policy.tier(name) is not None
    meant = did_you_mean(name or "", names)
    remedy = f"name one of {', '.join(names)}{meant}" if names else "leave it out: it has no tiers"
    basis = "a fit counts under the tier of its purpose"
    return _verdict("tier", fits, ", ".join(names) or None, name, basis, remedy)


def _verdict(
    constraint: str,
    allowed: bool,
    limit: str | float | None,
    requested: str | float | None,
    basis: str,
    remedy: str,
    used: float | None = None,
) -> ConstraintCheck:
    """Build a verdict; where the request is allowed, there is nothing to remedy."""
    return ConstraintCheck(
        constraint, allowed, limit, used, requested, basis, "" if allowed else remedy
    )


def _for_whom(request: Request) -> str:
    """Say for whom a figure is, where it is not the fit's own."""
    unit = request.unit
    if unit.max_units == 1:
        return ""
    return f" for a {unit.person}, who counts as {unit.max_units} units of the table"


def figure_of(value: str | float | None) -> str:
    """Show a limit, or what is asked or used."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.6g}"


YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Request:
    """A fit that is asked for: public facts only.

    Attributes:
        dataset: where it counts.
        tier: its purpose, if the policy has tiers.
        model: the generator's name.
        population: the public number of units.
        may_refuse: whether a column may refuse a cell.
        spend: for one of those whom the ledger counts.
        unit: of the fit.
    """

    dataset: str
    tier: str | None
    model: str
    population: int
    may_refuse: bool
    spend: Spend
    unit: Unit


@dataclass(frozen=True)
class Past:
    """A fit that counts.

    Attributes:
        at: time, with its zone, since when it can spend nothing more; None while it may. Not the
            time of its reservation: see the proof above.
        dataset: where it counts.
        tier: its purpose.
        spend: for one of those whom the ledger counts.
        unit: of the fit.
    """

    at: datetime | None
    dataset: str
    tier: str | None
    spend: Spend
    unit: Unit

    def __post_init__(self) -> None:
        """Refuse a time without a zone: it could be any of 26 hours."""
        if self.at is not None:
            require_zone(self.at)

    def counts_at(self, moment: datetime) -> bool:
        """Whether it counts in the 365 days before a moment."""
        return self.at is None or self.at > moment - YEAR


def require_zone(time: datetime) -> None:
    """Refuse a time that could be any of 26 hours."""
    if time.utcoffset() is None:
        raise InputError("times of a ledger carry their time zone; give it in UTC")


def kinds(units: Iterable[Unit]) -> list[Unit]:
    """Give one unit for each thing that is counted; a single one if all count the same.

    Units that count the same are those that some chain of units connects.
    """
    distinct = list(dict.fromkeys(units))
    single: dict[str | None, Unit] = {key: unit for unit in distinct for key in unit.same_as}
    single |= {unit.name: unit for unit in distinct if unit.person is not None and unit.reading}
    for unit in distinct:
        declared = single.get(unit.name)
        if _has_several(unit) and declared not in (None, unit):
            return [declared, unit]
    keys = single.keys()
    counted: dict[object, Unit] = {}
    for unit in distinct:
        person = unit.person is not None or (unit.name is not None and unit.name in keys)
        counted.setdefault(("person",) if person else ("column", unit.name), unit)
    named = {unit.person: unit for unit in reversed(distinct) if unit.person is not None}
    by_reading = {unit.reading: unit for unit in reversed(distinct) if unit.reading is not None}
    several = (named, by_reading)
    return list(next((group for group in several if len(group) > 1), counted).values())


def _has_several(unit: Unit) -> bool:
    """Whether a person may have several values of the key column, and not only rows without one."""
    return unit.max_units > 1 and unit.name is not None and unit.missing_key == "drop"


def conflict(unit: Unit, others: Iterable[Unit]) -> str | None:
    """Say why a fit cannot be added to others, and what to do; None if it can."""
    past = list(others)
    if len(kinds([*past, unit])) <= 1:
        return None
    other = next((earlier for earlier in past if len(kinds([earlier, unit])) > 1), past[0])
    return (
        f"this fit counts {described(unit)}, and earlier fits count {described(other)}: epsilons "
        f"of different units do not add up. {_remedy(unit, other)}"
    )


def _remedy(unit: Unit, other: Unit) -> str:
    """Say which declaration would make both count the same."""
    if unit.person and unit.person == other.person and _has_several(unit) != _has_several(other):
        return (
            f"One schema treats a value of a key column as one {unit.person}, and the other says "
            f"that a {unit.person} has several: declare in this schema what the schemas of the "
            "earlier fits declare"
        )
    if unit.person and other.person and unit.person != other.person:
        return f"If both are the same, name the person '{other.person}' in this schema too"
    if unit.reading and other.reading and unit.reading != other.reading:
        return "Let the schema read keys (key, missing_key) as the schema of the earlier fits does"
    if other.name is None and other.person is None:
        return "Earlier fits cannot be counted again: fit by rows as they did, or do not fit"
    name = f"name: {other.person or 'patient'}"
    same = "" if other.person else f", same_as: ['{other.name}']"
    if unit.name is None or unit.missing_key == "own":
        return (
            f"Declare in this schema how many of its units one {counted_of(other)} has at most: "
            f"person: {{{name}{same}, max_units: {{value: ..., basis: ...}}}}"
        )
    return (
        "If the keys mean the same, give the key column the same name, or declare it in this "
        f"schema: person: {{{name}{same}}}; add max_units if one person can have several"
    )
