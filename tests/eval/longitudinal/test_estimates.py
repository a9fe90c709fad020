"""The statistics of histories: against truth and lifelines, with intervals over patients."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories, SeriesRows
from dpsynth.eval.core import jackknife_error
from dpsynth.eval.longitudinal import count_labels, gap_labels
from dpsynth.eval.longitudinal.cohort import (
    Cohort,
    Compared,
    HistoryFacts,
    chosen,
    count_bins,
    gap_bins,
    ratio,
)
from dpsynth.eval.longitudinal.rows import following, likeness
from dpsynth.eval.longitudinal.survival import outcome, survival_by_day

from ...support.history_cohorts import LAST, codec, cohort, with_rows

CODEC = codec()
FACTS = HistoryFacts.of(CODEC)


def dealt(histories: Histories, groups: int = 20) -> Cohort:
    """A cohort with groups."""
    return Cohort.of(FACTS, histories, groups, np.random.default_rng(0))


def test_curves_are_those_of_lifelines() -> None:
    from lifelines import KaplanMeierFitter

    own = dealt(cohort(400, seed=1), 0)
    for event, group, level in (("mi", -1, 0), ("1", -1, 0), ("mi", 0, 1)):
        follow = outcome(own, event)
        member = follow.at_risk
        if group >= 0:
            member = member & (own.codes(FACTS.groups[group].place) == level)
        fitted = KaplanMeierFitter().fit(follow.days[member], follow.happened[member])
        curve = survival_by_day(own, event, group, level)[0]
        at = fitted.survival_function_.index.to_numpy().astype(int)
        assert curve[at] == pytest.approx(fitted.survival_function_.to_numpy()[:, 0])


def test_an_event_is_had_before_or_comes_or_is_censored() -> None:
    baseline = np.zeros((4, 4), dtype=np.uint16)
    onsets = np.array([[-3], [5], [NEVER], [90]])
    ends = np.array([10, 10, 10, 10])
    empty = cohort(0)
    own = Cohort.of(FACTS, Histories(baseline, ends, onsets, empty.rows))
    follow = outcome(own, "mi")
    assert follow.at_risk.tolist() == [False, True, True, True]
    assert follow.days[1:].tolist() == [5, 10, 10]
    assert follow.happened.tolist() == [False, True, False, False]
    curve = survival_by_day(own, "mi")[0]
    assert curve[[0, 4, 5, LAST]] == pytest.approx([1.0, 1.0, 2 / 3, 2 / 3])


@pytest.mark.parametrize("steady", [0.2, 0.8])
def test_likeness_is_the_share_of_variation_between_patients(steady: float) -> None:
    own = dealt(cohort(4000, seed=2, steady=steady, serial=0.0, sex_effect=0.0))
    found = likeness(own, own.series[0], 0)
    error = jackknife_error(found[1:])
    assert 0.003 < error < 0.05
    assert found[0] == pytest.approx(steady, abs=4 * error)
    assert following(own, own.series[0], 0)[0] == pytest.approx(steady, abs=4 * error + 0.03)


def test_likeness_by_hand() -> None:
    values = np.array([1, 3, 2, 6, 9, 50], dtype=np.uint16)[:, None]
    rows = SeriesRows(np.array([0, 0, 1, 1, 1, 2]), np.arange(6), values)
    own = dealt(with_rows(cohort(3), 0, 0, rows), 0)
    first, second = np.array([1.0, 3.0]), np.array([2.0, 6.0, 9.0])
    inside = (((first - 2) ** 2).sum() + ((second - 17 / 3) ** 2).sum()) / 3
    whole = np.concatenate([first, second]).mean()
    between = 2 * (2 - whole) ** 2 + 3 * (17 / 3 - whole) ** 2
    size = 5 - (4 + 9) / 5
    expected = (between - inside) / (between + (size - 1) * inside)
    assert likeness(own, own.series[0], 0)[0] == pytest.approx(expected)


def test_kappa_of_categories_by_hand() -> None:
    wards = np.array([[0, 0], [0, 0], [1, 0], [2, 0], [2, 0]], dtype=np.uint16)
    rows = SeriesRows(np.array([0, 0, 0, 1, 1]), np.zeros(5, dtype=np.int64), wards)
    own = dealt(with_rows(cohort(3), 1, 0, rows), 0)
    # steps a-a and a-b weigh a half each, c-c one
    expected = 0.5 * 0.25 + 0.0 + 0.5 * 0.5
    kappa = (0.75 - expected) / (1 - expected)
    assert following(own, own.series[2], 0)[0] == pytest.approx(kappa)


def test_nothing_is_said_of_patients_with_one_row() -> None:
    rows = SeriesRows(
        np.arange(3), np.zeros(3, dtype=np.int64), np.full((3, 1), 4, dtype=np.uint16)
    )
    own = dealt(with_rows(cohort(3), 0, 0, rows), 0)
    assert np.isnan(likeness(own, own.series[0], 0)).all()
    assert np.isnan(following(own, own.series[0], 0)).all()


def repeated(histories: Histories, times: int) -> Histories:
    """Write every row several times: no patient more, and nothing new."""
    rows = histories.rows[0][0]
    series = SeriesRows(*(np.repeat(one, times, axis=0) for one in vars(rows).values()))
    return with_rows(histories, 0, 0, series)


def mean_and_error(own: Cohort) -> tuple[float, float]:
    """The mean of hdl over patients, and its error."""
    series = own.series[0]
    values = series.numbers(0)
    found = ratio(
        own.sums(series.weights * values, series.patients),
        own.sums(series.weights, series.patients),
    ).reshape(-1)
    return float(found[0]), jackknife_error(found[1:])


def test_rows_that_are_written_twice_make_no_interval_shorter() -> None:
    drawn = cohort(1000, seed=3)
    once, often = mean_and_error(dealt(drawn)), mean_and_error(dealt(repeated(drawn, 9)))
    assert often == pytest.approx(once)
    values = repeated(drawn, 9).rows[0][0].values[:, 0]
    assert values.std() / len(values) ** 0.5 < 0.3 * once[1]  # as if rows were independent


def test_intervals_hold_the_truth_of_patients() -> None:
    """Errors over patients are those that fresh cohorts show."""
    found = [mean_and_error(dealt(cohort(300, seed=seed))) for seed in range(30)]
    means, errors = map(np.array, zip(*found, strict=True))
    assert 0.7 < errors.mean() / means.std(ddof=1) < 1.4


def test_a_bootstrap_draws_patients_with_all_their_rows() -> None:
    drawn = cohort(50, seed=4)
    who = np.array([7, 7, 3])
    some = chosen(drawn, who)
    for table in range(len(drawn.rows)):
        for one, whole in zip(some.rows[table], drawn.rows[table], strict=True):
            for place, patient in enumerate(who):
                mine = one.values[one.patients == place]
                assert (mine == whole.values[whole.patients == patient]).all()
    assert (some.onsets == drawn.onsets[who]).all() and (some.ends == drawn.ends[who]).all()


def test_bins_are_public() -> None:
    assert FACTS.series[0].fields[0].numbers.tolist() == list(range(20, 80))
    bins = FACTS.series[0].fields[0].bins
    assert (bins[0], bins[-1], len(np.unique(bins))) == (0, 31, 32)
    stay = FACTS.series[2].fields[1]
    assert stay.bins[stay.missing] == len(np.unique(stay.bins)) - 1
    assert [group.names[0] for group in FACTS.groups] == ["F", "20 to 33"]
    assert FACTS.ending == ("1", 3, 1)
    days = FACTS.day_bins(np.array([-LAST, -1, 0, 1, LAST]))
    assert days.tolist() == [0, 15, 16, 17, 32]
    compared = [Compared.of(CODEC, cohort(200, s), cohort(200, s + 1), None,
                            np.random.default_rng(0)).facts for s in (0, 5)]  # fmt: skip
    assert all((compared[0].series[0].fields[0].bins == one.series[0].fields[0].bins).all()
               for one in compared)  # fmt: skip


def test_counts_and_gaps_have_a_bin_and_a_name() -> None:
    assert len(count_labels()) == count_bins(np.array([10**6]))[0] + 1
    assert len(gap_labels()) == gap_bins(np.array([10**6]))[0] + 1
    assert gap_bins(np.array([-5, 0, 1, 7, 8, 365, 366])).tolist() == [0, 0, 1, 2, 3, 10, 11]
