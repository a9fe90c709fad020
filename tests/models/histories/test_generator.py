"""`cohort`: what a fit keeps of histories, and that drawn ones are as the domain says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories
from dpsynth.models.histories import CohortGenerator
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import DAYS, domain_of, histories_of

BUDGET = PrivacyBudget(epsilon=200.0, delta=1e-6)
PATIENTS = 2_000


@pytest.fixture(scope="module")
def fitted() -> CohortGenerator:
    """Fitted with all settings as they are shipped but a smaller mixture, in fewer steps."""
    generator = CohortGenerator(domain_of(PATIENTS))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    shipped = HistorySettings.of(generator.domain, BUDGET)
    with pytest.MonkeyPatch.context() as patch:
        few = replace(shipped, components=300, person_steps=300)
        patch.setattr(HistorySettings, "of", lambda *_: few)
        return generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1))


@pytest.fixture(scope="module")
def drawn(fitted: CohortGenerator) -> Histories:
    return fitted.sample(PATIENTS, np.random.default_rng(2))


def lag(histories: Histories, table: int, series: int, column: int) -> float:
    """Correlation of consecutive values of a patient."""
    rows = histories.rows[table][series]
    same = rows.patients[1:] == rows.patients[:-1]
    values = rows.values[:, column].astype(float)
    return float(np.corrcoef(values[:-1][same], values[1:][same])[0, 1])


def test_the_shares_of_a_fit_are_the_whole_budget() -> None:
    shares = CohortGenerator(domain_of()).shares(BUDGET)
    assert sum(share.fraction for share in shares) == pytest.approx(1.0)
    names = [share.event.name for share in shares]
    assert len(set(names)) == len(names) == 2 + 5 + 3  # no line, no gaps: no changes, no days


@pytest.mark.long
def test_no_row_lies_outside_the_window_or_after_the_end(drawn: Histories) -> None:
    for rows in drawn.rows[0]:
        ends = drawn.ends[rows.patients]
        assert (rows.days <= ends).all() and (rows.days >= -1_000).all()
        same = rows.patients[1:] == rows.patients[:-1]
        assert (np.diff(rows.days)[same] >= 0).all()
    happened = drawn.onsets != NEVER
    late = drawn.onsets > drawn.ends[:, None]
    assert not late[happened].any() and happened.any()
    assert (drawn.ends <= DAYS).all()


@pytest.mark.long
def test_numbers_of_rows_are_kept_and_capped(fitted: CohortGenerator, drawn: Histories) -> None:
    real = histories_of(PATIENTS)
    for table, rows, sources in zip(fitted.domain.tables, drawn.rows, real.rows, strict=True):
        for series, one, source in zip(table.series, rows, sources, strict=True):
            counts = one.counts(PATIENTS)
            assert counts.max() <= series.max_rows
            assert counts.mean() == pytest.approx(source.counts(PATIENTS).mean(), rel=0.1)


@pytest.mark.long
def test_codes_lie_within_their_columns(fitted: CohortGenerator, drawn: Histories) -> None:
    for table, rows in zip(fitted.domain.tables, drawn.rows, strict=True):
        for series, one in zip(table.series, rows, strict=True):
            assert (one.values < [value.size for value in series.values]).all()
            assert (np.diff(one.patients) >= 0).all()


def test_a_patient_s_values_stay_alike_and_follow_her_baseline(drawn: Histories) -> None:
    real = histories_of(PATIENTS)
    assert lag(drawn, 0, 0, 0) == pytest.approx(lag(real, 0, 0, 0), abs=0.1)
    assert lag(drawn, 0, 0, 0) > 0.75
    kept = [
        np.mean(one.values[1:, 1][same] == one.values[:-1, 1][same])
        for one in (drawn.rows[1][0], real.rows[1][0])
        for same in [one.patients[1:] == one.patients[:-1]]
    ]
    assert kept[0] == pytest.approx(kept[1], abs=0.12)
    rows = drawn.rows[0][0]
    age = drawn.baseline[rows.patients, 0].astype(float)
    assert np.corrcoef(age, rows.values[:, 0].astype(float))[0, 1] > 0.5


def test_a_generator_is_rebuilt_from_its_arrays(fitted: CohortGenerator) -> None:
    rebuilt = CohortGenerator.restore(fitted.domain, fitted.config(), fitted.arrays())
    one, other = (g.sample(300, np.random.default_rng(5)) for g in (fitted, rebuilt))
    assert np.array_equal(one.baseline, other.baseline)
    assert np.array_equal(one.onsets, other.onsets)
    for table, others in zip(one.rows, other.rows, strict=True):
        for rows, same in zip(table, others, strict=True):
            assert np.array_equal(rows.days, same.days)
            assert np.array_equal(rows.values, same.values)


def test_patients_vary_less_than_independent_ones(fitted: CohortGenerator) -> None:
    spread = {}
    for even in (True, False):
        drawn = [fitted.sample(250, np.random.default_rng(seed), even=even) for seed in range(40)]
        spread[even] = np.var([one.baseline[:, 1].mean() for one in drawn])
    share = 0.25 / 250  # the variance of half of 250 independent patients
    assert 0.5 < spread[False] / share < 1.7
    assert spread[True] < 0.5 * spread[False]
