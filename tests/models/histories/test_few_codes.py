"""A value of two codes keeps what it has to do with the one before, though few patients have it."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories import CohortGenerator, HistoryDomain, HistoryTable, Series
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

PATIENTS, ROWS = 2_000, 4


def domain() -> HistoryDomain:
    tests = tuple(
        Series(name, (Feature("value", cells, cells, (1,) * cells),), 8)
        for name, cells in (("pressure", 150), ("smoker", 2))
    )
    labs = HistoryTable("labs", tests, False, 1, (True,))
    return HistoryDomain((Feature("sex", 2, 0),), (), (labs,), 0, 0, PATIENTS)


def histories() -> Histories:
    """A smoker's next answer is no, and the other way round: it is noted when it changes."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(PATIENTS), ROWS)
    first = rng.integers(0, 2, PATIENTS)
    smoker = (first[who] + np.arange(len(who)) % ROWS) % 2
    pressure = np.clip(rng.normal(75, 10, PATIENTS)[who] + rng.normal(0, 3, len(who)), 0, 149)
    none = np.zeros(len(who), dtype=np.int64)
    rows = tuple(
        SeriesRows(who, none, values.astype(np.uint16)[:, None]) for values in (pressure, smoker)
    )
    baseline = rng.integers(0, 2, (PATIENTS, 1)).astype(np.uint16)
    none = np.empty((PATIENTS, 0), dtype=np.int64)
    return Histories(baseline, np.zeros(PATIENTS, dtype=np.int64), none, (rows,))


@pytest.mark.long
def test_an_answer_that_is_noted_when_it_changes_changes_in_every_drawn_row() -> None:
    generator, budget = CohortGenerator(domain()), PrivacyBudget(3.0, 1e-6)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    generator.fit(histories(), plan, SeededEntropy(2))
    restored = CohortGenerator.restore(domain(), generator.config(), generator.arrays())
    rows = restored.sample(1_000, np.random.default_rng(3)).rows[0][1]
    later = np.flatnonzero(np.diff(rows.patients) == 0)
    assert (rows.values[later, 0] == rows.values[later + 1, 0]).mean() < 0.1
