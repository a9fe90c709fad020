"""Advice on a policy: which constraint binds, and budgets that satisfy all of them.

Everything here is by plain sums, exact in the decimals that the policy is written in. The filter of
the ledger may admit more (its Renyi sum), never less, as long as the deltas leave room: see
``Allocation.delta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth._util.formatting import counted
from dpsynth.errors import InputError
from dpsynth.policy.limits import Cap, Tier
from dpsynth.policy.policy import Policy
from dpsynth.policy.rules import CAPS, FLOOR, OVERALL, ROLLING, SINGLE, ConstraintCheck
from dpsynth.privacy import PrivacyFilter, exactly, rounded_down

MAX_CALLS = 8
_DIGITS = 3  # significant ones of an epsilon that is advised
_MAX_YEARS = 100


def binding(verdicts: Sequence[ConstraintCheck]) -> tuple[ConstraintCheck, ...]:
    """Give the verdicts that bind: those that refuse, else the cap that leaves the least.

    Empty if nothing refuses and there is no cap.
    """
    refusing = tuple(verdict for verdict in verdicts if not verdict.allowed)
    caps = [v for v in verdicts if v.constraint.endswith(CAPS)]
    return refusing or tuple(sorted(caps, key=_left)[:1])


def largest_epsilon(admits: Callable[[float], bool], below: float) -> float | None:
    """Find an epsilon that is admitted, near the largest, by bisection in at most 8 calls.

    Args:
        admits: whether a fit of this epsilon would be; where it is true it is true for less.
        below: an epsilon that is too much, above 0.

    Returns:
        The largest epsilon that ``admits`` was seen to allow, of 3 significant digits, about
        ``below`` / 256 from the largest there is; None if it never did, so that nothing above
        about ``below`` / 256 is admitted.
    """
    if not 0 < below < math.inf:
        raise InputError("the epsilon to stay below must be a finite number above 0")
    best, high = None, below
    for _ in range(MAX_CALLS):
        low = best or 0.0
        trial = rounded_down((exactly(low) + exactly(high)) / 2, _DIGITS)
        if not low < trial < high:
            break
        if admits(trial):
            best = trial
        else:
            high = trial
    return best


@dataclass(frozen=True)
class BindingCap:
    """A bound on the epsilon of each release, and the constraint that it comes from."""

    epsilon: Fraction
    constraint: str

    def __str__(self) -> str:
        """Return both, four digits of the number, rounded down."""
        return f"{rounded_down(self.epsilon, 4):g} ({self.constraint})"


@dataclass(frozen=True)
class TierBudget:
    """An epsilon for each release of a tier."""

    tier: str
    releases_a_year: int
    epsilon: float


@dataclass(frozen=True)
class Allocation:
    """Epsilons for the planned releases of a year, for whoever may be in all of them.

    Attributes:
        releases: of all tiers in a year.
        lowest: of one epsilon for all releases; None where no tier has a floor.
        highest: the same.
        tiers: an epsilon for each tier, so that all constraints hold; empty if there are none.
        contradiction: the constraints that exclude each other even so; empty if none do.
        years: for how many years the caps on everything allow such releases, at most 100; None if
            there are no such caps.
        delta: for each release, so that the deltas of all these years are within the plain sum.
        unplanned: tiers that say nothing of releases a year; they are left out.
    """

    releases: int
    lowest: BindingCap | None
    highest: BindingCap
    tiers: tuple[TierBudget, ...]
    contradiction: tuple[str, ...]
    years: int | None
    delta: float
    unplanned: tuple[str, ...]

    @property
    def uniform(self) -> bool:
        """Whether one epsilon for all releases satisfies every constraint."""
        return self.lowest is None or self.lowest.epsilon <= self.highest.epsilon

    def lines(self) -> list[str]:
        """Say it in words, a line each."""
        lines = [
            f"planned: {counted(self.releases, 'release')} a year; one person may be in all of them"
        ]
        minimum = "" if self.lowest is None else f"at least {self.lowest}, "
        lines.append(f"one epsilon for all releases: {minimum}at most {self.highest}")
        if not self.uniform:
            lines.append("  no epsilon satisfies both: these two contradict each other")
        if self.contradiction:
            lines.append(
                "no epsilon for each tier is possible: these constraints contradict each other:"
            )
            lines += [f"  {constraint}" for constraint in self.contradiction]
        else:
            lines.append("an epsilon for each tier, within every constraint:")
            lines += [f"  {t.tier}: {t.epsilon:g}, {t.releases_a_year} a year" for t in self.tiers]
            total = f"{float(_yearly(self.tiers)):g}"
            lines.append(f"  together {total} a year, each at a delta of at most {self.delta:g}")
        if self.years is not None:
            lines.append(f"  the caps on the total allow this for {counted(self.years, 'year')}")
        if self.unplanned:
            lines.append(f"left out, without releases_a_year: {', '.join(self.unplanned)}")
        return lines


def allocation(policy: Policy) -> Allocation:
    """Find epsilons for the releases that a policy plans, or the constraints that exclude them.

    First one epsilon for all releases; then one for each tier: every tier gets its floor, and the
    rest of the caps raises the smallest epsilons together, each up to its own caps.

    Raises:
        InputError: no tier says how many releases are planned a year.
    """
    planned = [tier for tier in policy.tiers if tier.releases_a_year]
    if not planned:
        reason = f"the policy '{policy.name}' plans no release"
        raise InputError(f"{reason}; give its tiers releases_a_year, and ask again")
    releases = sum(map(_count, planned))
    shared = _shared(policy, releases)
    floors = [_floor(tier) for tier in planned if tier.least is not None]
    tops = {tier.name: _smallest(_own(policy, tier, releases)) for tier in planned}
    contradiction = _contradiction(planned, tops, shared, releases)
    tiers = () if contradiction else _filled(planned, tops, shared, releases)
    years = None if contradiction else _years(policy, tiers)
    room = PrivacyFilter(1.0, policy.delta).plain_delta / (releases * (years or 1))
    return Allocation(
        releases=releases,
        lowest=max(floors, key=lambda bound: bound.epsilon, default=None),
        highest=_smallest([*shared, *tops.values()]),
        tiers=tiers,
        contradiction=contradiction,
        years=years,
        delta=rounded_down(room, 2),
        unplanned=tuple(tier.name for tier in policy.tiers if not tier.releases_a_year),
    )


def _shared(policy: Policy, releases: int) -> list[BindingCap]:
    """Bounds on the mean epsilon of all releases of a year."""
    caps = ((ROLLING, policy.caps.year), (OVERALL, policy.caps.total))
    return [_over(kind, cap, releases) for kind, cap in caps if cap is not None]


def _own(policy: Policy, tier: Tier, releases: int) -> list[BindingCap]:
    """Bounds on the epsilon of a release of one tier, whatever the others get."""
    limits, prefix, count = tier.caps, f"tier {tier.name}: ", _count(tier)
    bounds = [_over(SINGLE, policy.caps.release, 1)] if policy.caps.release is not None else []
    caps = (
        (SINGLE, limits.release, 1),
        (ROLLING, limits.year, count),
        (OVERALL, limits.total, count),
    )
    bounds += [_over(prefix + kind, cap, times) for kind, cap, times in caps if cap is not None]
    alone = [replace(b, epsilon=b.epsilon * releases / count) for b in _shared(policy, releases)]
    return bounds + alone


def _over(name: str, cap: Cap, releases: int) -> BindingCap:
    over = "" if releases == 1 else f" over {releases} releases"
    return BindingCap(exactly(cap.epsilon) / releases, f"{name} {cap.epsilon:g}{over}")


def _floor(tier: Tier) -> BindingCap:
    """The least epsilon of a tier; 0 where it has none."""
    if tier.least is None:
        return BindingCap(Fraction(0), "")
    label = f"tier {tier.name}: {FLOOR} {tier.least.epsilon:g}"
    return BindingCap(exactly(tier.least.epsilon), label)


def _contradiction(
    tiers: Sequence[Tier],
    tops: Mapping[str, BindingCap],
    shared: Sequence[BindingCap],
    releases: int,
) -> tuple[str, ...]:
    """Constraints that no epsilons satisfy: a floor above a cap, or floors that are too many."""
    for tier in tiers:
        if _floor(tier).epsilon > tops[tier.name].epsilon:
            return _floor(tier).constraint, tops[tier.name].constraint
    needed = sum((_count(tier) * _floor(tier).epsilon for tier in tiers), Fraction(0))
    for bound in shared:
        rest = bound.epsilon * releases - needed
        if rest < 0 or (rest == 0 and any(tier.least is None for tier in tiers)):
            floors = [_floor(tier).constraint for tier in tiers if tier.least is not None]
            return bound.constraint, *floors
    return ()


def _filled(
    tiers: Sequence[Tier],
    tops: Mapping[str, BindingCap],
    shared: Sequence[BindingCap],
    releases: int,
) -> tuple[TierBudget, ...]:
    """Raise one level for all tiers, between each one's floor and top, until a cap is reached."""

    def at(level: Fraction) -> list[Fraction]:
        return [max(_floor(t).epsilon, min(level, tops[t.name].epsilon)) for t in tiers]

    def total(level: Fraction) -> Fraction:
        return sum((_count(t) * e for t, e in zip(tiers, at(level), strict=True)), Fraction(0))

    turns = {_floor(t).epsilon for t in tiers} | {tops[t.name].epsilon for t in tiers}
    level, maximum = Fraction(0), min((b.epsilon * releases for b in shared), default=None)
    for turn in sorted(turns):
        if maximum is not None and total(turn) > maximum:  # a straight line from level to turn
            rise = (total(turn) - total(level)) / (turn - level)
            level += (maximum - total(level)) / rise
            break
        level = turn
    return tuple(
        TierBudget(tier.name, _count(tier), _written(epsilon, tier))
        for tier, epsilon in zip(tiers, at(level), strict=True)
    )


def _written(epsilon: Fraction, tier: Tier) -> float:
    """Round down to few digits, but not below the floor."""
    rounded = rounded_down(epsilon, _DIGITS)
    return rounded if tier.least is None else max(rounded, tier.least.epsilon)


def _years(policy: Policy, tiers: Sequence[TierBudget]) -> int | None:
    """For how many years the caps on everything last."""
    spans = []
    if policy.caps.total is not None:
        spans.append(exactly(policy.caps.total.epsilon) / _yearly(tiers))
    for budget in tiers:
        tier = policy.tier(budget.tier)
        if tier is not None and tier.caps.total is not None:
            spans.append(exactly(tier.caps.total.epsilon) / _yearly([budget]))
    return int(min(*spans, Fraction(_MAX_YEARS))) if spans else None


def _yearly(tiers: Sequence[TierBudget]) -> Fraction:
    return sum((t.releases_a_year * exactly(t.epsilon) for t in tiers), Fraction(0))


def _count(tier: Tier) -> int:
    return tier.releases_a_year or 0


def _smallest(bounds: Sequence[BindingCap]) -> BindingCap:
    return min(bounds, key=lambda bound: bound.epsilon)


def _left(verdict: ConstraintCheck) -> float:
    assert isinstance(verdict.limit, float)
    return verdict.limit - (verdict.used or 0.0)
