"""Curves and areas: against pairs, labellings and integrals that are counted one by one."""

from __future__ import annotations

import itertools
import json
import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import hypergeom, mannwhitneyu, multivariate_hypergeom

from dpsynth.eval.attack_stats import Roc
from dpsynth.eval.attack_stats.result import ALARM, ALARMS, SURE

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


def roc(members: list[float], non_members: list[float]) -> Roc:
    return Roc(np.array(members, dtype=float), np.array(non_members, dtype=float))


def tied(members: tuple[int, ...], non_members: tuple[int, ...]) -> Roc:
    """Scores 0, 1, ... with so many people at each."""
    levels = np.arange(len(members), dtype=float)
    return Roc(np.repeat(levels, members), np.repeat(levels, non_members))


@given(SCORES, SCORES)
def test_the_area_counts_pairs_and_ties_half(
    members: list[float], non_members: list[float]
) -> None:
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(members, non_members)]
    area = roc(members, non_members).auc
    assert area.value == pytest.approx(np.mean(pairs), abs=1e-12)
    assert area.low is not None and area.high is not None
    assert 0 <= area.low <= area.value <= area.high <= 1
    assert area.low < area.high and area.n == len(members) + len(non_members)


def test_the_interval_is_delongs() -> None:
    """By the definition: variances of each person's mean comparison with the other side."""
    members, non_members = [3.0, 1.0, 2.0, 5.0], [1.0, 0.0, 4.0]
    wins = np.array([[(a > b) + 0.5 * (a == b) for b in non_members] for a in members])
    error = math.sqrt(wins.mean(1).var(ddof=1) / 4 + wins.mean(0).var(ddof=1) / 3)
    area = roc(members, non_members).auc
    assert area.low == pytest.approx(max(0, wins.mean() - 1.959964 * error), abs=1e-6)
    assert area.high == pytest.approx(min(1, wins.mean() + 1.959964 * error), abs=1e-6)


@pytest.mark.parametrize(
    ("area", "levels"),
    [(0.5, 0), (0.8, 0), (0.95, 0), (0.8, 4)],
    ids=["half", "0.8", "0.95", "ties"],
)
def test_the_interval_covers_the_true_area(area: float, levels: int) -> None:
    rng = np.random.default_rng(1)
    shift = math.sqrt(2) * float(ndtri(area))

    def drawn(by: float, count: int) -> np.ndarray:
        values = rng.normal(by, 1, count)
        return np.floor(values * levels / 4) if levels else values

    if levels:  # the area of the rounded scores, of many of them
        area = Roc(drawn(shift, 200_000), drawn(0, 200_000)).auc.value
    covered = 0
    for _ in range(1000):
        found = Roc(drawn(shift, 120), drawn(0, 80)).auc
        assert found.low is not None and found.high is not None
        covered += found.low <= area <= found.high
    assert 920 <= covered <= 985


@given(SCORES, SCORES)
def test_a_monotone_change_of_scores_changes_nothing(
    members: list[float], non_members: list[float]
) -> None:
    plain = roc(members, non_members)
    bent = roc([math.exp(a) for a in members], [math.exp(b) for b in non_members])
    assert plain.to_dict() == bent.to_dict() and plain.chance == bent.chance


def test_the_rank_test_is_that_of_scipy_where_no_two_scores_are_equal() -> None:
    rng = np.random.default_rng(2)
    for n, m in ((30, 40), (25, 25), (300, 150)):
        members, non_members = rng.normal(0.3, 1, n), rng.normal(0, 1, m)
        known = mannwhitneyu(
            members, non_members, alternative="greater", method="asymptotic"
        ).pvalue
        assert Roc(members, non_members).chance == pytest.approx(known, rel=1e-3 if n == m else 0.1)


def false_alarms_of_two_levels(n: int, m: int, high: int, alarm: float) -> float:
    """The exact chance of a false alarm if so many of all have the higher of two scores."""
    counts = range(max(0, high - m), min(high, n) + 1)
    first = bisect_left(
        counts, True, key=lambda k: tied((n - k, k), (m - high + k, high - k)).chance < alarm
    )
    return float(hypergeom.sf(counts[0] + first - 1, n + m, high, n))


@pytest.mark.parametrize(
    "sizes", [(12, 13), (25, 25), (60, 40), (80, 20), (20, 80), (200, 220)], ids=str
)
def test_the_rank_test_keeps_its_level_where_scores_take_two_values(sizes: tuple[int, int]) -> None:
    n, m = sizes
    some = range(1, n + m, max(1, (n + m) // 50))
    worst = max(false_alarms_of_two_levels(n, m, high, ALARM) for high in some)
    assert ALARM / 4 < worst <= ALARM


def test_a_rank_test_without_corrections_accuses_too_often() -> None:
    """Broken twin: the normal approximation of scipy, with its correction for ties alone."""
    n, m, high = 60, 40, 91
    accused = []
    for k in range(high - m, n + 1):
        one = tied((n - k, k), (m - high + k, high - k))
        usual = mannwhitneyu(one.members, one.non_members, alternative="greater")
        accused += [k] if usual.pvalue < ALARM else []
    assert hypergeom.pmf(accused, n + m, high, n).sum() > 2 * ALARM
    assert false_alarms_of_two_levels(n, m, high, ALARM) <= ALARM


@pytest.mark.parametrize("levels", [(30, 25, 5), (10, 40, 10), (5, 9, 46), (50, 6, 4)], ids=str)
def test_the_rank_test_keeps_its_level_where_scores_take_three_values(
    levels: tuple[int, int, int],
) -> None:
    n, alarms = 28, 0.0
    for two, three in itertools.product(range(levels[1] + 1), range(levels[2] + 1)):
        members = (n - two - three, two, three)
        if not 0 <= members[0] <= levels[0]:
            continue
        non_members = tuple(all_ - mine for all_, mine in zip(levels, members, strict=True))
        if tied(members, non_members).chance < ALARM:
            alarms += float(multivariate_hypergeom.pmf(members, levels, n))
    assert 0 < alarms <= ALARM


@pytest.mark.long
@pytest.mark.parametrize("size", [12, 25, 60])
def test_the_rank_test_keeps_its_level_without_ties(size: int) -> None:
    """Of the exact law: the sum of members' ranks that is just accused is rare enough."""
    order = np.arange(2.0 * size)
    for wins in range(size * size):  # the first pairs that are accused, from all down
        start, rest = divmod(wins, size)
        members = np.arange(size, 2 * size)
        members[:start] -= size
        if rest:
            members[start] -= rest
        one = Roc(order[np.sort(members)], np.setdiff1d(order, members))
        assert one.auc.value == pytest.approx(1 - wins / size**2)
        if one.chance >= ALARM:
            break
        last = one
    exact = mannwhitneyu(last.members, last.non_members, alternative="greater", method="exact")
    assert ALARM / 3 < exact.pvalue <= ALARM


@pytest.mark.long
@pytest.mark.parametrize("alarm", [0.1, 0.01])
def test_members_that_score_as_others_are_accused_as_rarely_as_stated(alarm: float) -> None:
    rng = np.random.default_rng(3)
    chances = [
        Roc(rng.poisson(1.0, 60).astype(float), rng.poisson(1.0, 50).astype(float)).chance
        for _ in range(2000)
    ]
    assert 0.4 * alarm < np.mean([chance < alarm for chance in chances]) < 1.2 * alarm


@pytest.mark.parametrize("tests", [1, 4])
def test_the_least_area_is_seen_as_surely_as_stated(tests: int) -> None:
    rng = np.random.default_rng(4)
    n, m = 150, 180
    least = roc([0.0] * n, [0.0] * m).least(tests)
    shift = math.sqrt(2) * float(ndtri(least))
    alarms = [
        Roc(rng.normal(shift, 1, n), rng.normal(0, 1, m)).chance < ALARM / tests for _ in range(600)
    ]
    assert SURE - 0.04 < np.mean(alarms) < SURE + 0.07
    shift = math.sqrt(2) * float(ndtri(0.5 + 0.7 * (least - 0.5)))
    alarms = [
        Roc(rng.normal(shift, 1, n), rng.normal(0, 1, m)).chance < ALARM / tests for _ in range(100)
    ]
    assert np.mean(alarms) < 0.75


def test_a_handful_of_people_is_never_sure_to_be_seen() -> None:
    few = roc([1.0] * 4, [0.0] * 4)
    assert not few.found and few.least() == 1.0
    assert roc([1.0] * 60, [0.0] * 60).found and roc([1.0] * 60, [0.0] * 60).least() < 0.85
    assert roc([1.0] * 60, [0.0] * 60).least(4) > roc([1.0] * 60, [0.0] * 60).least()


@given(SCORES, SCORES, st.floats(0, 1) | st.sampled_from(ALARMS))
def test_false_alarms_stay_within_what_is_allowed_and_the_cut_is_the_lowest(
    members: list[float], non_members: list[float], alarm: float
) -> None:
    true, false = roc(members, non_members).at(alarm)
    assert Fraction(false.hits, false.runs) <= Fraction(alarm) + Fraction(1, 10**12)
    cuts = [-math.inf, *non_members]
    fine = [cut for cut in cuts if sum(b > cut for b in non_members) <= alarm * len(non_members)]
    assert true.hits == sum(a > min(fine) for a in members) if fine else true.hits == 0
    assert (true.runs, false.runs) == (len(members), len(non_members))


@given(SCORES, SCORES, SCORES)
def test_the_cut_does_not_look_at_members(
    members: list[float], others: list[float], non_members: list[float]
) -> None:
    for alarm in (0.0, 0.1, 0.5):
        assert roc(members, non_members).at(alarm)[1] == roc(others, non_members).at(alarm)[1]


def test_rates_by_hand() -> None:
    one = roc([9, 7, 5, 3], [8, 6, 4, 2, 1])
    assert [(t.hits, f.hits) for t, f in map(one.at, (0.0, 0.19, 0.2, 0.4, 1.0))] == [
        *[(1, 0), (1, 0), (2, 1), (3, 2), (4, 5)],
    ]
    same = roc([1, 1, 1], [1, 1])
    assert [(t.hits, f.hits) for t, f in map(same.at, (0.0, 0.5, 1.0))] == [(0, 0), (0, 0), (3, 2)]


def test_constant_and_single_scores_say_nothing() -> None:
    for one in (roc([2.0] * 30, [2.0] * 40), roc([1.0], [1.0])):
        assert one.auc.value == 0.5 and one.chance == 1.0 and not one.found
    single = roc([1.0], [0.0])
    assert single.auc.value == 1.0 and single.auc.low == 0.0 and not single.found
    for one in (roc([1.0], [0.0]), roc([1.0], [0.0] * 7), roc([0.5] * 9, [0.5])):
        assert 0 <= one.chance <= 1 and one.chance > ALARM
        json.dumps(one.to_dict(), allow_nan=False)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    for members, non_members in (([bad, 1.0], [0.0]), ([0.0], [1.0, bad])):
        with pytest.raises(ValueError, match="finite"):
            roc(members, non_members)


def test_an_empty_side_is_refused() -> None:
    for members, non_members in (([], [0.0]), ([0.0], [])):
        with pytest.raises(ValueError, match="members and of non-members"):
            roc(members, non_members)


def test_what_is_written_is_what_was_measured() -> None:
    rng = np.random.default_rng(5)
    one = Roc(rng.normal(1, 1, 500), rng.normal(0, 1, 400))
    shown = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert shown["auc"] == one.auc.to_dict()
    assert [rate["fpr"] for rate in shown["rates"]] == list(ALARMS)
    assert shown["rates"][1]["tpr"]["hits"] == one.at(0.01)[0].hits
    assert shown["rates"][1]["false"]["hits"] == one.at(0.01)[1].hits <= 4
    fpr, tpr = shown["roc"]["fpr"], shown["roc"]["tpr"]
    assert fpr == sorted(fpr) and tpr == sorted(tpr) and (fpr[-1], tpr[-1]) == (1.0, 1.0)
    assert np.trapezoid([0, *tpr], [0, *fpr]) == pytest.approx(one.auc.value, abs=0.03)
