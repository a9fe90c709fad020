"""The rules of a policy: what is refused, why, and whether the remedy that is named is one."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import BudgetError, InputError
from dpsynth.policy.fits import Past, Request
from dpsynth.policy.policy import Policy
from dpsynth.policy.rules import Verdict, judge, require, room
from dpsynth.privacy import accounting
from dpsynth.privacy.events import JointHistograms
from dpsynth.privacy.filter import Spend
from dpsynth.privacy.unit import EACH_ROW

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)

DOCUMENT: dict[str, Any] = {
    "dpsynth_policy": 1,
    "name": "office",
    "delta": 1e-5,
    "caps": {
        "release": {"epsilon": 0.405, "basis": "the law"},
        "year": {"epsilon": 0.5, "basis": "ethics board"},
        "total": {"epsilon": 1, "basis": "the board"},
    },
    "tiers": {
        "rare": {
            "caps": {
                "release": {"epsilon": 0.3, "basis": "rare release"},
                "year": {"epsilon": 0.35, "basis": "rare year"},
                "total": {"epsilon": 0.6, "basis": "rare total"},
            },
            "least": {"epsilon": 0.17, "basis": "accuracy"},
        },
        "standard": {},
    },
    "datasets": {"diabetes": ["diabetes-2019", "diabetes-2020"]},
    "models": ["mixture", "tvae"],
    "minimum_population": {"value": 5000, "basis": "small cohorts"},
    "allow_refuse": False,
}
POLICY = Policy.from_dict(DOCUMENT, "test")
PLAIN = Policy.from_dict(
    {key: DOCUMENT[key] for key in ("dpsynth_policy", "name", "delta", "caps")}, "test"
)
REQUEST = Request("diabetes-2019", "rare", "tvae", 9000, False, Spend(0.2, 1e-7, ()), EACH_ROW)

NAMES = [
    "tier",
    "model",
    "minimum population",
    "cells may refuse",
    "delta",
    "epsilon a release",
    "epsilon in 365 days",
    "epsilon in all",
    "tier rare: epsilon a release",
    "tier rare: epsilon in 365 days",
    "tier rare: epsilon in all",
    "tier rare: least epsilon",
]


def past(
    epsilon: float,
    days: float = 10,
    dataset: str = "diabetes-2020",
    tier: str | None = "rare",
    delta: float = 1e-7,
) -> Past:
    return Past(NOW - timedelta(days=days), dataset, tier, Spend(epsilon, delta, ()), EACH_ROW)


def asking(epsilon: float = 0.2, delta: float = 1e-7, **changes: Any) -> Request:
    return replace(REQUEST, spend=Spend(epsilon, delta, ()), **changes)


def refused(request: Request, *entries: Past, policy: Policy = POLICY) -> list[str]:
    verdicts = judge(policy, entries, request, NOW)
    return [verdict.constraint for verdict in verdicts if not verdict.allowed]


def verdict_on(name: str, request: Request, *entries: Past) -> Verdict:
    return next(v for v in judge(POLICY, entries, request, NOW) if v.constraint == name)


def test_every_constraint_is_judged_in_a_fixed_order() -> None:
    verdicts = judge(POLICY, (), REQUEST, NOW)
    assert [verdict.constraint for verdict in verdicts] == NAMES
    assert all(verdict.allowed and not verdict.remedy and verdict.basis for verdict in verdicts)
    require(POLICY, (), REQUEST, NOW)


def test_a_policy_without_tiers_has_the_general_constraints() -> None:
    verdicts = judge(PLAIN, (), asking(tier=None), NOW)
    assert [verdict.constraint for verdict in verdicts] == NAMES[4:8]


@pytest.mark.parametrize(
    ("change", "name", "remedy"),
    [
        ({"tier": None}, "tier", "name one of rare, standard"),
        ({"tier": "rars"}, "tier", "did you mean 'rare'?"),
        ({"model": "ctgan"}, "model", "fit one of mixture, tvae"),
        ({"population": 4999}, "minimum population", "too small"),
        ({"may_refuse": True}, "cells may refuse", "on_bad"),
        ({"delta": 1.1e-5}, "delta", "at most 1e-05"),
        ({"epsilon": 0.16}, "tier rare: least epsilon", "at least 0.17"),
    ],
)
def test_a_request_outside_one_constraint_is_refused_for_it(
    change: dict[str, Any], name: str, remedy: str
) -> None:
    request = asking(**change)
    assert name in refused(request)
    assert remedy in verdict_on(name, request).remedy
    with pytest.raises(BudgetError) as caught:
        require(POLICY, (), request, NOW)
    assert f"\n  {name}: " in str(caught.value) and caught.value.exit_code == 4


def test_a_tier_that_the_policy_does_not_know_is_refused_where_there_are_none() -> None:
    assert refused(asking(tier="rare"), policy=PLAIN) == ["tier"]


@pytest.mark.parametrize("tier", ["RARE", "rare"])
def test_two_spellings_of_a_tier_are_one_budget(tier: str) -> None:
    assert refused(asking(0.2, tier="Rare"), past(0.2, tier=tier)) == NAMES[9:10]


def test_a_release_is_held_against_its_own_cap() -> None:
    assert refused(asking(0.406, tier="standard")) == ["epsilon a release"]
    assert refused(asking(0.405, 1e-7, tier="standard")) == []
    assert refused(asking(0.301)) == ["tier rare: epsilon a release"]


@pytest.mark.parametrize(
    ("epsilon", "spent", "name"),
    [(0.405, 0.0, "epsilon a release"), (0.4, 0.1, "epsilon in 365 days")]
    + [(0.4, 0.6, "epsilon in all")],
)
def test_a_cap_is_kept_to_the_last_digit(epsilon: float, spent: float, name: str) -> None:
    earlier = [past(spent, 10 if "365" in name else 400)] if spent else []
    assert name not in refused(asking(epsilon, tier="standard"), *earlier)
    over = math.nextafter(epsilon, 1)
    assert name in refused(asking(over, tier="standard"), *earlier)


@pytest.mark.parametrize("dataset", ["diabetes-2019", "DIABETES", "Diabetes-2020"])
def test_a_fit_of_another_unit_is_refused_whatever_is_left(dataset: str) -> None:
    """By the rules alone, as a preview asks them, and not only when a ledger reserves."""
    earlier = replace(past(0.01, 900, dataset), unit=replace(EACH_ROW, name="patient_id"))
    assert refused(REQUEST, earlier) == ["privacy unit"]
    assert refused(replace(REQUEST, unit=earlier.unit), earlier) == []
    assert refused(REQUEST, replace(earlier, dataset="heart")) == []


def test_all_names_that_share_patients_count_and_no_others() -> None:
    for name in ("diabetes", "DIABETES-2019", "diabetes-2020"):
        assert "epsilon in 365 days" in refused(asking(tier="standard"), past(0.4, dataset=name))
    assert refused(asking(tier="standard"), past(0.4, dataset="heart")) == []
    assert refused(asking(tier="standard", dataset="heart"), past(0.4)) == []


def test_general_caps_count_every_tier_and_fits_before_the_policy() -> None:
    for tier in ("rare", "standard", None):
        assert "epsilon in 365 days" in refused(asking(tier="standard"), past(0.4, tier=tier))


def test_caps_of_a_tier_count_its_fits_alone() -> None:
    spent = past(0.2, tier="standard")
    assert refused(asking(0.3), spent) == []
    assert refused(asking(0.3), past(0.2)) == ["tier rare: epsilon in 365 days"]


def test_365_days_roll() -> None:
    """A fit leaves the sum when it is 365 days old, and not at the turn of a year."""
    request = asking(tier="standard")
    assert refused(request, past(0.4, days=364.99)) == ["epsilon in 365 days"]
    assert refused(request, past(0.4, days=365)) == []
    assert refused(request, past(0.4, days=-1)) == ["epsilon in 365 days"]  # a clock set back
    assert refused(request, past(0.4, days=400), past(0.45, days=800)) == ["epsilon in all"]


def test_sums_are_exact_in_decimals() -> None:
    three = [past(0.1, tier="standard", days=n) for n in range(1, 5)]
    assert refused(asking(0.1, tier="standard"), *three) == []
    assert refused(asking(0.1001, tier="standard"), *three) == ["epsilon in 365 days"]


def test_what_is_admitted_by_divergences_is_allowed() -> None:
    event = JointHistograms("counts", 1, 1, 100.0)
    spend = Spend(accounting.epsilon([event], 1e-6) + 1e-6, 1e-6, (event,))
    entries = [replace(past(0.1, tier="standard"), spend=spend)] * 20
    request = replace(asking(tier="standard"), spend=spend)
    assert spend.epsilon * 21 > 0.5  # beyond the plain sum
    assert refused(request, *entries) == []
    blind = [replace(e, spend=Spend(spend.epsilon, 1e-6, ())) for e in entries]
    assert "epsilon in 365 days" in refused(request, *blind)


def test_a_delta_that_leaves_nothing_for_others_is_refused_with_the_remedy() -> None:
    request = asking(0.2, 1e-5, tier="standard")
    verdict = verdict_on("epsilon in 365 days", request)
    assert not verdict.allowed and "ask for a delta of at most 9e-06" in verdict.remedy
    assert refused(asking(0.2, 9e-6, tier="standard")) == []


def test_the_refusal_names_every_constraint_with_basis_use_and_remedy() -> None:
    with pytest.raises(BudgetError) as caught:
        require(POLICY, [past(0.34, tier="standard")], asking(0.31, model="ctgan"), NOW)
    head, *lines = str(caught.value).splitlines()
    assert head == "the policy 'office' refuses this fit of dataset 'diabetes-2019':"
    assert [line.strip().split(": limit")[0] for line in lines] == [
        "model",
        "epsilon in 365 days",
        "tier rare: epsilon a release",
    ]
    assert lines[1] == (
        "  epsilon in 365 days: limit 0.5, 0.34 of it used, 0.31 asked (basis: ethics board); "
        "ask for an epsilon of at most 0.16, or ask again after 2027-06-21, "
        "or ask the people who set the cap to raise it"
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.001, 0.4), st.floats(0, 700), st.sampled_from([1e-8, 1e-7, 4e-6])),
        max_size=5,
    ),
    st.floats(0.01, 0.405),
    st.sampled_from([1e-8, 3e-6, 9e-6]),
)
def test_the_remedies_are_remedies(
    entries: list[tuple[float, float, float]], epsilon: float, delta: float
) -> None:
    spent = [past(e, days=d, delta=x, tier=None) for e, d, x in entries]
    request = asking(epsilon, delta, tier=None)
    for verdict in judge(PLAIN, spent, request, NOW):
        if verdict.allowed or "epsilon in" not in verdict.constraint:
            continue
        if verdict.remedy.startswith("ask for"):
            found = re.search(r"epsilon of at most ([\d.e-]+)", verdict.remedy)
            less = min(epsilon, float(found[1].rstrip("."))) if found else epsilon
            found = re.search(r"delta of at most ([\d.e-]+)", verdict.remedy)
            finer = min(delta, float(found[1])) if found else delta
            assert (less, finer) != (epsilon, delta)
            again = judge(PLAIN, spent, asking(less, finer, tier=None), NOW)
            assert next(v for v in again if v.constraint == verdict.constraint).allowed
        if day := re.search(r"after (\d{4}-\d\d-\d\d)", verdict.remedy):
            later = datetime.fromisoformat(day[1]).replace(tzinfo=UTC) + timedelta(days=1)
            again = judge(PLAIN, spent, request, later)
            assert next(v for v in again if v.constraint == verdict.constraint).allowed


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 300), st.floats(0.01, 0.4)), min_size=1, max_size=12))
def test_no_window_of_365_days_passes_the_cap(asks: list[tuple[float, float]]) -> None:
    """An office that asks again and again; what was entered is summed up independently."""
    entered: list[Past] = []
    now = NOW
    for days, epsilon in asks:
        now += timedelta(days=days)
        request = asking(epsilon, 1e-8, tier=None)
        if all(verdict.allowed for verdict in judge(PLAIN, entered, request, now)):
            entered.append(Past(now, "diabetes-2019", None, request.spend, EACH_ROW))
    for first in entered:
        window = [e for e in entered if first.at <= e.at < first.at + timedelta(days=365)]
        assert sum(e.spend.epsilon for e in window) <= 0.5 + 1e-12
    assert sum(e.spend.epsilon for e in entered) <= 1 + 1e-12


def test_room_says_what_is_left_of_each_cap() -> None:
    entries = [past(0.2), past(0.25, days=400), past(0.1, tier="standard")]
    meters = room(POLICY, entries, "Diabetes-2019", "rare", NOW)
    assert [meter.name for meter in meters] == NAMES[5:11]
    found = {meter.name: (meter.limit, meter.used) for meter in meters}
    assert found == {
        "epsilon a release": (0.405, 0),
        "epsilon in 365 days": (0.5, 0.3),
        "epsilon in all": (1, 0.55),
        "tier rare: epsilon a release": (0.3, 0),
        "tier rare: epsilon in 365 days": (0.35, 0.2),
        "tier rare: epsilon in all": (0.6, 0.45),
    }
    for meter in meters:
        assert meter.left == pytest.approx(meter.limit - meter.used) and meter.basis
    assert len(room(POLICY, entries, "Diabetes-2019", None, NOW)) == 3


def test_room_is_never_below_nothing() -> None:
    for over in (past(0.9), past(0.1, delta=2e-5)):
        meters = room(POLICY, [over], "diabetes", None, NOW)
        assert meters[1].left == 0 and meters[1].used > 0.5
        verdict = verdict_on("epsilon in 365 days", asking(), over)
        assert not verdict.allowed and "inf" not in str(verdict)
        assert "the plain sum leaves nothing" in verdict.remedy


def test_times_need_their_zone() -> None:
    with pytest.raises(InputError, match="time zone"):
        Past(datetime(2026, 1, 1), "a", None, Spend(0.1, 1e-7, ()), EACH_ROW)
    with pytest.raises(InputError, match="time zone"):
        judge(POLICY, (), REQUEST, datetime(2026, 1, 1))
