"""Advice on a policy: what binds, the largest epsilon, and budgets that satisfy everything."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.policy import Past, Policy, Request, allocation, binding, judge, largest_epsilon
from dpsynth.policy.advice import MAX_CALLS
from dpsynth.privacy import Spend, exactly
from dpsynth.privacy.unit import EACH_ROW

GUIDE = (Path(__file__).parents[2] / "docs/governance.md").read_text()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def policy(tiers: dict[str, Any], **caps: float) -> Policy:
    document = {
        "dpsynth_policy": 1,
        "name": "office",
        "delta": 1e-5,
        "caps": {key: {"epsilon": value, "basis": "board"} for key, value in caps.items()},
        "tiers": tiers,
    }
    return Policy.from_dict(document, "test")


def tier(releases: int | None = None, least: float | None = None, **caps: float) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if releases is not None:
        document["releases_a_year"] = releases
    if least is not None:
        document["least"] = {"epsilon": least, "basis": "accuracy"}
    if caps:
        document["caps"] = {k: {"epsilon": v, "basis": "board"} for k, v in caps.items()}
    return document


CASE = policy({"rare": tier(1, 0.17), "standard": tier(2)}, release=0.405, year=0.5, total=5)


def test_the_worked_case() -> None:
    """By hand: 0.5 / 3 < 0.17, and (0.5 - 0.17) / 2 = 0.165."""
    advice = allocation(CASE)
    assert not advice.uniform
    assert advice.lowest is not None and advice.lowest.epsilon == exactly(0.17)
    assert advice.highest.epsilon == exactly(0.5) / 3
    assert "rare" in advice.lowest.constraint and "365 days" in advice.highest.constraint
    assert [(t.tier, t.releases_a_year, t.epsilon) for t in advice.tiers] == [
        ("rare", 1, 0.17),
        ("standard", 2, 0.165),
    ]
    assert advice.contradiction == ()
    assert advice.years == 10 and advice.delta == 3e-7


def test_the_guide_shows_a_policy_that_loads_and_the_lines_that_it_gives(tmp_path: Path) -> None:
    shown = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    lines = re.search(r"```text\n(.*?)\n```", GUIDE, re.DOTALL)
    assert shown and lines
    path = tmp_path / "office.yaml"
    path.write_text(shown[1])
    advice = allocation(Policy.load(path))
    assert advice.lines() == lines[1].split("\n")
    assert "  rare-disease: 0.17, 1 a year" in advice.lines()
    assert "  standard: 0.165, 2 a year" in advice.lines()


def test_the_guide_explains_every_key() -> None:
    from dpsynth.policy.policy import TIER_KEYS, TOP_KEYS

    for key in (*TOP_KEYS, *(f"tiers.*.{key}" for key in TIER_KEYS)):
        assert f"| `{key}` |" in GUIDE


def test_one_epsilon_for_all_where_there_is_one() -> None:
    advice = allocation(policy({"a": tier(2, 0.1), "b": tier(1)}, release=0.3, year=1))
    assert advice.uniform and advice.highest.epsilon == exactly(0.3)
    assert [t.epsilon for t in advice.tiers] == [0.3, 0.3]
    assert advice.years is None and advice.delta == 3e-6
    assert "at least 0.1 (tier a: least epsilon 0.1), at most 0.3" in advice.lines()[1]


def test_what_one_tier_may_not_take_goes_to_the_others() -> None:
    """By hand: a stops at 0.1; the other two share 1 - 0.1."""
    tiers = {"a": tier(1, release=0.1), "b": tier(1), "c": tier(1, year=0.8)}
    advice = allocation(policy(tiers, year=1))
    assert [t.epsilon for t in advice.tiers] == [0.1, 0.45, 0.45]


def test_caps_of_a_tier_are_over_its_own_releases() -> None:
    advice = allocation(policy({"a": tier(4, year=0.2), "b": tier(1)}, release=0.4, year=9))
    assert [t.epsilon for t in advice.tiers] == [0.05, 0.4]
    assert advice.highest.constraint == "tier a: epsilon in 365 days 0.2 over 4 releases"


@pytest.mark.parametrize(
    ("tiers", "caps", "contradiction"),
    [
        (
            {"a": tier(1, 0.3, release=0.2)},
            {"year": 1},
            ("tier a: least epsilon 0.3", "tier a: epsilon a release 0.2"),
        ),
        (
            {"a": tier(2, 0.2), "b": tier(1, 0.15), "c": tier(1)},
            {"release": 0.4, "year": 0.5},
            (
                "epsilon in 365 days 0.5 over 4 releases",
                "tier a: least epsilon 0.2",
                "tier b: least epsilon 0.15",
            ),
        ),
        (
            {"a": tier(1, 0.5), "b": tier(1)},
            {"year": 0.5},
            ("epsilon in 365 days 0.5 over 2 releases", "tier a: least epsilon 0.5"),
        ),
    ],
)
def test_constraints_that_exclude_each_other_are_named(
    tiers: dict[str, Any], caps: dict[str, float], contradiction: tuple[str, ...]
) -> None:
    advice = allocation(policy(tiers, **caps))
    assert advice.contradiction == contradiction
    assert advice.tiers == () and advice.years is None
    for constraint in contradiction:
        assert f"  {constraint}" in advice.lines()


def test_floors_that_use_a_cap_up_are_an_allocation() -> None:
    advice = allocation(policy({"a": tier(1, 0.3), "b": tier(1, 0.2)}, year=0.5))
    assert [t.epsilon for t in advice.tiers] == [0.3, 0.2]


def test_tiers_without_a_plan_are_left_out_and_said_to_be() -> None:
    advice = allocation(policy({"a": tier(1), "b": tier()}, release=0.4))
    assert advice.unplanned == ("b",)
    assert advice.lines()[-1] == "left out, without releases_a_year: b"
    with pytest.raises(InputError, match="releases_a_year"):
        allocation(policy({"b": tier()}, release=0.4))


some = st.one_of(st.none(), st.sampled_from([0.05, 0.1, 0.17, 0.3, 0.405, 1.0, 2.5]))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), some, some, some, some), min_size=1, max_size=3),
    st.tuples(some, some, some),
)
def test_an_allocation_is_what_the_rules_allow_and_cannot_be_raised(
    parts: list[tuple[Any, ...]], general: tuple[Any, ...]
) -> None:
    """A year of it passes the rules; no tier could have 2 % more, all others as they are."""
    kinds = ("release", "year", "total")
    caps = {k: v for k, v in zip(kinds, general, strict=True) if v is not None}
    tiers = {}
    for n, (releases, least, *own) in enumerate(parts):
        chosen = {k: v for k, v in zip(kinds, own, strict=True) if v is not None}
        tiers[f"t{n}"] = tier(releases, least, **chosen)
    rules = policy(tiers, **(caps or {"year": 0.7}))
    advice = allocation(rules)

    def year(epsilons: dict[str, float]) -> bool:
        past: list[Past] = []
        for part in advice.tiers:
            for _ in range(part.releases_a_year):
                spend = Spend(epsilons[part.tier], advice.delta, ())
                now = NOW + timedelta(days=len(past))
                asked = Request("d", part.tier, "tvae", 1000, False, spend, EACH_ROW)
                if not all(verdict.allowed for verdict in judge(rules, past, asked, now)):
                    return False
                past.append(Past(now, "d", part.tier, spend, EACH_ROW))
        return True

    budgets = {part.tier: part.epsilon for part in advice.tiers}
    assert bool(budgets) != bool(advice.contradiction)
    assert year(budgets)
    lowest = min(budgets, key=lambda name: budgets[name], default=None)
    if lowest is not None:
        assert not year(budgets | {lowest: 1.02 * budgets[lowest] + 0.001})


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 20), st.floats(0, 0.999))
def test_the_largest_epsilon_is_found_in_few_calls_and_was_seen_to_be_admitted(
    below: float, part: float
) -> None:
    calls: list[float] = []

    def admits(epsilon: float) -> bool:
        calls.append(epsilon)
        return epsilon <= part * below

    largest = largest_epsilon(admits, below)
    assert len(calls) <= MAX_CALLS
    if largest is None:
        assert part <= 1.1 / 2**MAX_CALLS
    else:
        assert largest in calls and largest <= part * below
        assert part * below - largest <= max(0.02 * below, 0.0)
        assert float(f"{largest:.2e}") == largest


def test_the_largest_epsilon_needs_a_place_to_stay_below() -> None:
    with pytest.raises(InputError, match="above 0"):
        largest_epsilon(lambda epsilon: True, 0.0)


def test_what_binds_is_what_refuses_or_else_leaves_least() -> None:
    def verdicts(epsilon: float, *past: Past) -> Any:
        asked = Request("d", "standard", "tvae", 1000, False, Spend(epsilon, 1e-7, ()), EACH_ROW)
        return judge(CASE, past, asked, NOW)

    earlier = Past(NOW - timedelta(days=9), "d", "rare", Spend(0.3, 1e-7, ()), EACH_ROW)
    assert [v.constraint for v in binding(verdicts(0.1))] == ["epsilon a release"]
    assert [v.constraint for v in binding(verdicts(0.1, earlier))] == ["epsilon in 365 days"]
    refusing = binding(verdicts(0.5, earlier))
    assert [v.constraint for v in refusing] == ["epsilon a release", "epsilon in 365 days"]
    assert binding(()) == ()
