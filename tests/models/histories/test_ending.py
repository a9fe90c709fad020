"""When and how follow-up ended is one column: who died is drawn with when, and on the last day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding import NEVER, Histories
from dpsynth.models import Feature
from dpsynth.models.histories import CohortGenerator, FollowUp, HistoryDomain, PersonTable
from dpsynth.models.histories.persons.ending import Ending
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

BUDGET = PrivacyBudget(50.0, 1e-6)
DAYS = 200
AGE, END, DIED = (
    Feature("age", 2, 0),
    Feature("end", DAYS, DAYS, (1,) * DAYS),
    Feature("died", 2, 0),
)


def patients(count: int = 6_000) -> Histories:
    """Old patients die early, young ones are lost early: each pair of columns is unrelated."""
    rng = np.random.default_rng(1)
    old, early = rng.integers(0, 2, count), rng.integers(0, 2, count)
    died = (old == early).astype(np.int64)
    ends = np.where(early == 1, rng.integers(5, 40, count), rng.integers(150, 190, count))
    baseline = np.stack([old, ends, died], axis=1).astype(np.uint16)
    return Histories(baseline, ends, np.empty((count, 0), dtype=np.int64), ())


def by_column(**status: int | None) -> HistoryDomain:
    end = FollowUp(1, np.arange(DAYS), **status)
    return HistoryDomain((AGE, END, DIED), (), (), 0, DAYS, 6_000, end)


def by_event() -> tuple[HistoryDomain, Histories]:
    made = patients()
    onsets = np.where(made.baseline[:, 2:] == 1, made.ends[:, None], NEVER)
    stroke = np.full_like(onsets, NEVER)
    end = FollowUp(1, np.arange(DAYS), event=1)
    domain = HistoryDomain((AGE, END), ("stroke", "death"), (), 0, DAYS, 6_000, end)
    return domain, replace(made, baseline=made.baseline[:, :2], onsets=np.hstack([stroke, onsets]))


def fitted(domain: HistoryDomain, histories: Histories) -> CohortGenerator:
    generator = CohortGenerator(domain)
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    return generator.fit(histories, plan, SeededEntropy(3))


def death_by_age_and_time(old: np.ndarray, ends: np.ndarray, died: np.ndarray) -> float:
    return float((died == (old == (ends < 100))).mean())


@given(st.data())
def test_joint_codes_are_one_to_one(data: st.DataObject) -> None:
    cells, loose = data.draw(st.integers(1, 200)), data.draw(st.integers(0, 2))
    states = data.draw(st.integers(1, 4))
    ending = Ending(Feature("end", cells + loose, cells, (1,) * cells), Feature("s", states, 0))
    ends, status = (part.ravel() for part in np.mgrid[0 : cells + loose, 0:states])
    joint = ending.joined(ends, status)
    assert len(np.unique(joint)) == len(joint) and joint.max() < ending.feature.size
    back = ending.parted(joint)
    assert np.array_equal(back[0], ends) and np.array_equal(back[1], status)
    every = ending.parted(np.arange(ending.feature.size))  # noise may draw any code
    assert every[0].max() < cells + loose and every[1].max() < states


@pytest.mark.long
def test_who_died_when_is_learned_where_the_column_is_named() -> None:
    drawn = fitted(by_column(status=2), patients()).sample(4_000, np.random.default_rng(1))
    assert death_by_age_and_time(*drawn.baseline.T.astype(int)) > 0.9
    apart = fitted(by_column(), patients()).sample(4_000, np.random.default_rng(1))
    assert death_by_age_and_time(*apart.baseline.T.astype(int)) < 0.7  # pairs say nothing of it


@pytest.mark.long
def test_an_event_that_ends_follow_up_is_on_its_last_day_or_never() -> None:
    domain, made = by_event()
    generator = fitted(domain, made)
    for one in (generator, CohortGenerator.restore(domain, generator.config(), generator.arrays())):
        drawn = one.sample(4_000, np.random.default_rng(1))
        assert drawn.onsets.shape == (4_000, 2)
        died = drawn.onsets[:, 1] != NEVER
        assert 0.4 < died.mean() < 0.6 and (drawn.onsets[died, 1] == drawn.ends[died]).all()
        old, ends = drawn.baseline.T.astype(int)
        assert death_by_age_and_time(old, ends, died) > 0.9
        assert (drawn.onsets[:, 0] == NEVER).mean() > 0.99


def test_a_patients_row_is_a_function_of_her_own_history() -> None:
    domain, made = by_event()
    person = PersonTable(domain)
    codes = person.codes(made)
    assert codes.shape[1] == len(person.features) == 3  # age, end and death, stroke
    alone = person.codes(Histories(made.baseline[:1], made.ends[:1], made.onsets[:1], ()))
    assert np.array_equal(alone[0], codes[0])
    assert np.array_equal(person.baseline_of(codes), made.baseline)


def test_a_fit_of_an_earlier_version_has_columns_of_their_own() -> None:
    generator = fitted(by_column(), patients(600))
    old = CohortGenerator.restore(by_column(status=2), {}, generator.arrays())
    drawn = old.sample(50, np.random.default_rng(1))
    assert drawn.baseline.shape == (50, 3) and old.config() == {"ending": False}


@pytest.mark.parametrize("status", [0, 1])
def test_bins_of_the_joint_column_give_each_way_of_ending_its_part(status: int) -> None:
    ending = Ending(END, DIED)
    shares = np.zeros(ending.feature.size)
    shares[: ending.block], shares[ending.block : 2 * ending.block] = 0.95, 0.05
    shares[:] /= ending.block
    worth = (ending.importance(shares) * shares[: ending.feature.cells]).reshape(2, -1).sum(axis=1)
    assert worth[status] == pytest.approx(1.0)
