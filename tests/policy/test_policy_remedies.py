"""What a refusal by a policy names, whether its remedy is one, and what room a cap leaves."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import BudgetError
from dpsynth.policy import Past, judge, require, room
from dpsynth.privacy.unit import EACH_ROW

from ..support.judged_policy import NAMES, NOW, PLAIN, POLICY, asking, past, refused, verdict_on


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
            match = re.search(r"epsilon of at most ([\d.e-]+)", verdict.remedy)
            less = min(epsilon, float(match[1].rstrip("."))) if match else epsilon
            match = re.search(r"delta of at most ([\d.e-]+)", verdict.remedy)
            finer = min(delta, float(match[1])) if match else delta
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
