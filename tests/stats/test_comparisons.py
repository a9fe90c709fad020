"""Comparisons: what they count, what noise does to them, and tests wrong 5 times in 100."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import read_cohort
from dpsynth.privacy import SeededEntropy
from dpsynth.stats import Result, StatisticsRequest, shares_of_request
from dpsynth.stats.comparisons import independent
from dpsynth.stats.statistic import Ints, Rows
from dpsynth.stats.survival import kaplan_meier, log_rank
from dpsynth.tables import open_table, simulate

ENTRIES = [
    {
        "name": "stay",
        "survival": {"time": "length_of_stay", "event": "readmitted_30d", "of": ["True"]},
        "cuts": [4, 8, 15],
        "by": ["sex"],
    },
    {"name": "pressure", "compare": "sbp", "between": {"sex": ["male", "female"]}},
    {"name": "pill", "independence": ["medication", "diabetes"]},
]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return simulate(600, seed=1)


@pytest.fixture(scope="module")
def found(rows: pd.DataFrame) -> dict[str, Result]:
    """Answers with little noise: a unit of it is 3 hundredths of a patient."""
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES})
    shares = shares_of_request(request, 1e-6)
    events = {share.event.name: replace(share.event, sigma=1000.0) for share in shares}
    source = SeededEntropy(1)
    table = open_table(rows, request.schema)
    coded = Rows.of(read_cohort(table, request.codec, request.schema, source))
    answers: dict[str, list[Ints]] = {}
    for one in request.statistics:
        answers |= one.answer(coded, events, source)
    return {result.name: result for result in request.results(answers, events)}


def test_survival_counts_each_patient_once(found: dict[str, Result], rows: pd.DataFrame) -> None:
    table = found["stay"].table.set_index(["sex", "before"])
    weights = 1 / rows.groupby("patient_id")["sex"].transform("size")
    known = rows["readmitted_30d"].notna() | (rows["length_of_stay"].astype(float) >= 15)
    for sex, own in rows[known].groupby("sex"):
        weight = weights[own.index]
        assert table.loc[(sex, 4.0), "at risk"] == pytest.approx(weight.sum(), abs=1)
        early = (own["length_of_stay"].astype(float) < 4) & own["readmitted_30d"].isin([True])
        assert table.loc[(sex, 4.0), "events"] == pytest.approx(weight[early].sum(), abs=1)
    assert (table["lower"] <= table["survival"]).all()
    assert (table["survival"] <= table["upper"]).all()


def test_a_difference_is_that_of_patients_means(
    found: dict[str, Result], rows: pd.DataFrame
) -> None:
    [row] = found["pressure"].table.to_dict("records")
    own = pd.to_numeric(rows["sbp"]).groupby([rows["sex"], rows["patient_id"]]).mean()
    true = own["male"].mean() - own["female"].mean()
    assert row["difference"] == pytest.approx(true, abs=1)
    assert row["people: upper"] - row["people: lower"] > 3 * (row["upper"] - row["lower"])


def test_dependence_is_found(found: dict[str, Result]) -> None:
    assert found["pill"].facts["p-value"] < 0.001
    assert found["pill"].facts["degrees of freedom"] == 3
    assert found["stay"].facts["degrees of freedom"] == 1


def test_a_curve_without_noise_is_that_of_kaplan_and_meier() -> None:
    counts = np.array([10.0, 5, 8, 7, 2, 3, 65])
    survival, lower, upper = kaplan_meier(counts, 0.0, 1.96)
    expected = np.cumprod([90 / 100, 77 / 85, 68 / 70])
    for curve in (survival, lower, upper):
        np.testing.assert_allclose(curve, expected)


def test_curves_fall_and_stay_in_their_bands_under_any_noise() -> None:
    rng = np.random.default_rng(1)
    for sd in (0.5, 5.0, 50.0):
        for counts in rng.poisson(20, (20, 11)) + rng.normal(0, sd, (20, 11)):
            survival, lower, upper = kaplan_meier(counts, sd, 1.96)
            assert (np.diff([1, *survival, 0]) <= 0).all()
            assert (np.diff(lower) <= 0).all() and (np.diff(upper) <= 0).all()
            assert (0 <= lower).all() and (lower <= survival).all()
            assert (survival <= upper).all() and (upper <= 1).all()


def test_bands_hold_the_curve_of_the_source() -> None:
    rng, runs = np.random.default_rng(2), 400
    counts = np.array([60.0, 10, 50, 20, 40, 20, 300])
    true, _, _ = kaplan_meier(counts, 0.0, 1.96)
    held = []
    for noise in rng.normal(0, 6, (runs, 7)):
        _, lower, upper = kaplan_meier(counts + noise, 6.0, 1.96)
        held.append((lower <= true) & (true <= upper))
    assert 0.92 < np.mean(held) < 0.98


def test_log_rank_without_noise_is_the_textbook_statistic() -> None:
    """One interval of 2 x 2: N - 1 over N of Pearson's chi-square."""
    facts = log_rank(np.array([[30.0, 0, 70], [45, 0, 55]]), 0.0)
    pearson = 200 * (30 * 55 - 45 * 70) ** 2 / (100 * 100 * 75 * 125)
    assert facts["chi-square"] == pytest.approx(pearson * 199 / 200, abs=0.001)


def test_independence_without_noise_is_pearsons_statistic() -> None:
    table = np.array([[30.0, 20, 10], [25, 40, 35]])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    pearson = ((table - expected) ** 2 / expected).sum()
    assert independent(table, 0.0)["chi-square"] == pytest.approx(pearson, abs=0.001)


LAW = np.array([0.1, 0.05, 0.1, 0.1, 0.05, 0.1, 0.5])


@pytest.mark.parametrize("sd", [1.0, 12.0])
def test_tests_are_wrong_five_times_in_a_hundred(sd: float) -> None:
    """Seeded: 1,500 extracts of each law without a difference; a broken test has 0.2 or more."""
    rng, runs = np.random.default_rng(3), 1500
    wrong = np.zeros(2)
    for _ in range(runs):
        groups = np.stack([rng.multinomial(size, LAW) for size in (300, 500)])
        wrong[0] += log_rank(groups + rng.normal(0, sd, groups.shape), sd)["p-value"] < 0.05
        table = rng.multinomial(800, np.outer([0.3, 0.7], [0.2, 0.3, 0.5]).ravel()).reshape(2, 3)
        wrong[1] += independent(table + rng.normal(0, sd, table.shape), sd)["p-value"] < 0.05
    assert ((wrong / runs > 0.03) & (wrong / runs < 0.07)).all(), wrong / runs


def test_noise_left_out_makes_a_test_wrong_too_often() -> None:
    """The broken twin: the textbook's statistic on noisy counts."""
    rng, runs = np.random.default_rng(4), 300
    wrong = 0.0
    for _ in range(runs):
        groups = np.stack([rng.multinomial(size, LAW) for size in (300, 500)])
        wrong += log_rank(groups + rng.normal(0, 12, groups.shape), 0.0)["p-value"] < 0.05
    assert wrong / runs > 0.2


def test_where_noise_hides_the_groups_nothing_is_found() -> None:
    assert independent(np.array([[9.0, -4.0], [-3.0, 12.0]]), 10.0)["p-value"] == 1
    assert log_rank(np.array([[9.0, -4.0, 3.0], [0.0, 5.0, 6.0]]), 10.0)["p-value"] == 1
