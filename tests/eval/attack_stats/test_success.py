"""Success over control: the test, the excess, its interval and its power, by other routes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from dpsynth.eval.attack_stats import Success, precise_percent
from dpsynth.eval.attack_stats.result import ALARM, SURE
from dpsynth.eval.core import Rate
from dpsynth.eval.core.estimate import LEVEL


def success(hits: int, runs: int, control_hits: int, control_runs: int) -> Success:
    return Success(Rate(hits, runs), Rate(control_hits, control_runs))


@st.composite
def successes(draw: st.DrawFn, most: int = 60) -> Success:
    runs, others = draw(st.integers(1, most)), draw(st.integers(1, most))
    return success(draw(st.integers(0, runs)), runs, draw(st.integers(0, others)), others)


@given(successes())
@settings(deadline=None)
def test_the_chance_is_fishers(one: Success) -> None:
    table = [[r.hits, r.runs - r.hits] for r in (one.members, one.controls)]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert one.chance == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(successes())
@settings(deadline=None)
def test_the_excess_is_what_is_left_of_the_room_above_control(one: Success) -> None:
    excess = one.excess
    if one.controls.hits < one.controls.runs:
        p, q = one.members.value, one.controls.value
        assert excess.value == pytest.approx(1 - (1 - p) / (1 - q), abs=1e-9)
    assert excess.low is not None and excess.high is not None
    assert excess.low <= excess.value <= excess.high <= 1
    assert excess.n == one.members.runs and excess.reference == 0.0
    json.dumps(one.to_dict(), allow_nan=False)


def test_the_excess_by_hand() -> None:
    assert success(75, 100, 50, 100).excess.value == pytest.approx(0.5)
    assert success(50, 100, 75, 100).excess.value == pytest.approx(-1.0)
    assert success(7, 100, 7, 100).excess.value == 0.0
    assert success(100, 100, 0, 100).excess.value == 1.0
    assert success(100, 100, 100, 100).excess.value == 0.0
    assert success(99, 100, 100, 100).excess.value == pytest.approx(-2.0)  # of half a control


def test_the_interval_is_newcombes_with_exact_bounds() -> None:
    """Bounds of the two rates from the definition: tails of 2.5 % each, found by bisection."""

    def tail(hits: int, runs: int, rate: float) -> float:
        """The chance of at least so many hits."""
        terms = (
            math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(hits, runs + 1)
        )
        return math.fsum(terms)

    def bound(hits: int, runs: int, target: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(hits, runs, middle) < target else (low, middle)
        return low

    p, q = 12 / 40, 5 / 50
    p_low, p_high = bound(12, 40, 0.025), bound(13, 40, 0.975)
    q_low, q_high = bound(5, 50, 0.025), bound(6, 50, 0.975)
    got = success(12, 40, 5, 50).excess
    low = p - q - math.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    high = p - q + math.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    assert (got.low, got.high) == pytest.approx((low / 0.9, high / 0.9), abs=1e-9)


@pytest.mark.parametrize("people", [40, 400])
@pytest.mark.parametrize("control", [0.0, 0.02, 0.3, 0.9])
def test_each_end_of_the_interval_fails_as_rarely_as_stated(people: int, control: float) -> None:
    rng = np.random.default_rng(1)
    for truth in (0.0, 0.1, 0.6):
        p = control + truth * (1 - control)
        missed = np.zeros(2)
        for hits, others in zip(
            rng.binomial(people, p, 500), rng.binomial(people, control, 500), strict=True
        ):
            found = success(int(hits), people, int(others), people).excess
            assert found.low is not None and found.high is not None
            missed += [found.low > truth + 1e-12, found.high < truth - 1e-12]
        assert (missed / 500 < 0.045).all()


def test_a_smaller_failure_makes_a_wider_interval() -> None:
    one = success(12, 40, 5, 50)
    wide, narrow = one.beyond(1e-4), one.excess
    assert wide.value == narrow.value
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.02, 0.5, 0.98])
def test_false_alarms_are_as_rare_as_stated(rate: float) -> None:
    """Of the exact law of both sides, at a level that is often reached."""
    n, m, alarm = 60, 45, 0.05
    laws = [
        [math.comb(k, h) * rate**h * (1 - rate) ** (k - h) for h in range(k + 1)] for k in (n, m)
    ]
    alarms = sum(
        laws[0][hits] * laws[1][others]
        for hits in range(n + 1)
        for others in range(m + 1)
        if success(hits, n, others, m).finding("key", "title", "it is", alarm).found
    )
    assert alarms <= alarm


@pytest.mark.long
@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 300), (3, 300), (150, 300), (297, 300)], ids=["0", "0.01", "0.5", "0.99"]
)
@pytest.mark.parametrize("alarm", [ALARM, 0.05], ids=str)
def test_the_least_excess_is_seen_as_surely_as_stated(hits: int, runs: int, alarm: float) -> None:
    """By playing the test itself against true rates of that excess."""
    rng = np.random.default_rng(2)
    members = 250
    rate = max(hits, 1) / runs
    least = success(0, members, hits, runs).least_seen(alarm)
    assert least is not None or rate > 0.9
    if least is None:  # then even a hit of everyone is not seen so surely
        least = 1.0
    draws = zip(
        rng.binomial(members, rate + least * (1 - rate), 2500),
        rng.binomial(runs, rate, 2500),
        strict=True,
    )
    share = np.mean([success(int(h), members, int(o), runs).chance < alarm for h, o in draws])
    if least < 1.0:
        assert SURE - 0.03 < share < SURE + 0.03
    else:
        assert share < SURE + 0.02


def test_power_knows_more_people_and_a_milder_test_to_see_more() -> None:
    def least(people: int, alarm: float = ALARM) -> float:
        share = success(0, people, people // 10, people).least_seen(alarm)
        assert share is not None
        return share

    assert least(4000) < least(400) < least(100)
    assert least(400, 0.05) < least(400) < least(400, 1e-6)
    assert success(0, 400, 40, 400).least_seen() == success(399, 400, 40, 400).least_seen()


def test_where_every_control_is_hit_or_people_are_few_nothing_is_sure_to_be_seen() -> None:
    for one in (success(300, 300, 300, 300), success(4, 4, 0, 4), success(1, 1, 0, 1)):
        assert one.least_seen() is None
        power = one.power("key")
        assert power.least is None and power.unit == "share"
        assert power.sentence == "no share of those in the data is sure to be seen"


def test_what_is_said_names_the_figures() -> None:
    one = success(60, 400, 4, 400)
    finding = one.finding("memorization:copies", "Copies", "a row is copied")
    assert finding.found and finding.key == "memorization:copies" and finding.title == "Copies"
    assert finding.sentence == (
        "a row is copied for 15.00 % of those in the data and 1.00 % of others: "
        "more than chance allows"
    )
    same = success(4, 400, 4, 400).finding("key", "title", "it is")
    assert not same.found and same.sentence.endswith(": no more than chance allows")
    power = one.power("memorization:copies")
    assert power.key == "memorization:copies" and power.least == one.least_seen()
    assert power.sentence == (
        "would have been seen with probability 90 % if it succeeded for "
        f"{precise_percent(power.least)} of those in the data beyond what it does for others"
    )


def test_a_finding_is_what_fishers_test_says_at_its_level() -> None:
    one = success(14, 100, 2, 100)
    assert ALARM < one.chance < 2e-3
    assert not one.finding("key", "title", "it is").found
    assert one.finding("key", "title", "it is", 0.002).found


@given(successes())
@settings(deadline=None)
def test_what_is_written_is_the_two_rates_and_the_excess(one: Success) -> None:
    shown = one.to_dict()
    assert shown["excess"] == one.excess.to_dict()
    for key, rate in (("members", one.members), ("controls", one.controls)):
        assert shown[key] == {
            **{"hits": rate.hits, "runs": rate.runs, "value": rate.value},
            **dict(zip(("low", "high"), rate.bounds((1 - LEVEL) / 2), strict=True)),
        }


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0 %"), (1.0, "100.00 %"), (0.25, "25.00 %"), (1e-4, "0.010 %"), (0.00051, "0.051 %")],
    ids=str,
)
def test_small_shares_are_written_with_the_digits_they_need(share: float, shown: str) -> None:
    assert precise_percent(share) == shown


@given(st.floats(1e-12, 1))
def test_two_digits_of_every_share_are_shown(share: float) -> None:
    assert float(precise_percent(share).removesuffix(" %")) == pytest.approx(100 * share, rel=0.05)
