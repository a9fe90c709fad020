"""The rules of a policy: which requests are refused, for which constraint."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from dpsynth.errors import BudgetError, InputError
from dpsynth.policy import Past, judge, require
from dpsynth.privacy import JointHistograms, Spend, accounting
from dpsynth.privacy.unit import EACH_ROW

from ..support.judged_policy import (
    NAMES,
    NOW,
    PLAIN,
    POLICY,
    REQUEST,
    asking,
    past,
    refused,
    verdict_on,
)


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


def test_times_need_their_zone() -> None:
    with pytest.raises(InputError, match="time zone"):
        Past(datetime(2026, 1, 1), "a", None, Spend(0.1, 1e-7, ()), EACH_ROW)
    with pytest.raises(InputError, match="time zone"):
        judge(POLICY, (), REQUEST, datetime(2026, 1, 1))
