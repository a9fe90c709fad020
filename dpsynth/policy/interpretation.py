"""A policy in words, for people who did not write it."""

from __future__ import annotations

from dpsynth.policy.limits import Caps
from dpsynth.policy.policy import Policy


def policy_lines(policy: Policy) -> list[str]:
    """Say what a policy asks for, a line each."""
    lines = [f"delta       {policy.delta:g}, for every cap", *_caps(policy.caps, "")]
    for tier in policy.tiers:
        lines.append(f"tier        {tier.name}{_planned(tier.releases_a_year)}")
        lines += _caps(tier.caps, "  ")
        if tier.least is not None:
            lines.append(f"            at least {tier.least.epsilon:g}: {tier.least.basis}")
    for group in policy.groups:
        lines.append(f"one budget  {group.name}: {', '.join(group.members)}")
    if policy.models is not None:
        lines.append(f"models      {', '.join(policy.models)}")
    if policy.minimum_population is not None:
        minimum = policy.minimum_population
        lines.append(f"population  at least {minimum.value}: {minimum.basis}")
    if not policy.allow_refuse:
        lines.append("refusals    no column may refuse a cell")
    if policy.gates:
        lines.append(f"gates       a release needs {', '.join(policy.gates)}")
    if policy.sign_off:
        people = "1 person" if policy.sign_off == 1 else f"{policy.sign_off} people"
        lines.append(f"sign-off    {people} other than the one who ran the fit, before a release")
    return lines


def _planned(releases: int | None) -> str:
    if not releases:
        return ""
    return f", {releases} {'release' if releases == 1 else 'releases'} a year planned"


def _caps(caps: Caps, indent: str) -> list[str]:
    named = (("a release", caps.release), ("365 days", caps.year), ("in total", caps.total))
    return [
        f"{indent}cap         epsilon {cap.epsilon:g} {'in ' if name == '365 days' else ''}{name}: "
        f"{cap.basis}"
        for name, cap in named
        if cap is not None
    ]
