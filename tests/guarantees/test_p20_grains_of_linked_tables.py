"""P20, P06: how numbers are written in linked tables, where a patient has many rows in many tables.

The check: patients of whole values, and one more with as many rows as there may be, all of them
tenths. All counts of grains of all tables together move by no more than the events account for.
The broken twins: each row counts as a patient does, the rows of each test count as if she had no
other, and several columns are paid as one; with exact counts, one patient shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.errors import InputError
from dpsynth.models import Feature
from dpsynth.models.histories import (
    CohortGenerator,
    HistoryDomain,
    HistoryTable,
    Series,
    row_grains,
    shares_of_histories,
)
from dpsynth.models.histories.roundings import roundings
from dpsynth.models.histories.row_grains import count_grains, counted_of, with_row_grains
from dpsynth.models.histories.steps.table import MASS
from dpsynth.privacy import JointHistograms, PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.bare_counts import Silence

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
TENTHS = ((0, 0), *((int(c % 10 == 0), int(c % 10 > 0)) for c in range(1, 301)))  # 30.0 to 60.0
WARDS, ROWS, ODD = 3, 6, 173
Weights = Callable[..., Any]


def number(name: str) -> Feature:
    return Feature(name, 301, 301, (1,) * 301, grains=TENTHS)


def domain() -> HistoryDomain:
    """Two numbers of patients, three of visits, and two tests of which one is a number."""
    visits = Series("visits", (*map(number, "abc"), Feature("ward", WARDS, 0)), ROWS)
    dose = Series("labs dose", (number("value"), number("volume")), ROWS)
    sign = Series("labs sign", (Feature("value", 2, 0), number("volume")), ROWS)
    tables = (
        HistoryTable("visits", (visits,), False, 1, (True, True, True, False)),
        HistoryTable("labs", (dose, sign), False, 1, (True, True)),
    )
    baseline = (number("height"), Feature("sex", 2, 0), number("weight"))
    return HistoryDomain(baseline, (), tables, 0, 0, 400)


def patients_of(patients: int, *, odd: bool) -> Histories:
    """Return patients of whole values; with ``odd``, one more with tenths in all her rows."""
    rng = np.random.default_rng(5)

    def values(own: Any, columns: int, words: list[int]) -> Any:
        codes = rng.integers(1, 30, (len(own), columns)) * 10
        codes[own] = ODD
        codes[:, words] %= 2
        return codes.astype(np.uint16)

    def series(columns: int, words: list[int]) -> SeriesRows:
        counts = np.append(rng.integers(0, ROWS, patients), ROWS)
        who = np.repeat(np.arange(patients + 1), counts)
        return SeriesRows(
            who, np.zeros(len(who), np.int64), values(who == patients, columns, words)
        )

    baseline = values(np.arange(patients + 1) == patients, 3, [1])
    rows = ((series(4, [3]),), (series(2, []), series(2, [0])))
    empty = np.empty((patients + 1, 0), dtype=np.int64)
    together = Histories(baseline, np.zeros(patients + 1, np.int64), empty, rows)
    return together if odd else together.take(np.arange(patients))


@cache
def plan_of() -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, shares_of_histories(domain(), BUDGET))


def events() -> list[JointHistograms]:
    plan = plan_of()
    found = [plan.event(one.event.name) for one in counted_of(domain())]
    assert all(isinstance(event, JointHistograms) for event in found)
    return found  # type: ignore[return-value]


def counts(histories: Histories) -> list[np.ndarray]:
    """All counts without noise, table by table, in patients."""
    found = []
    for one, event in zip(counted_of(domain()), events(), strict=True):
        rows = one.rows(histories, event.mass)
        parts = [
            np.bincount(cells, rows.weights, minlength=sum(one.sizes(column)))
            for cells, column in zip(rows.cells, one.columns, strict=True)
        ]
        found.append(np.concatenate(parts) / event.mass)
    return found


def shift() -> tuple[list[float], list[float]]:
    """How far one odd patient moves the counts of each table, and what its event accounts for."""
    pairs = zip(*(counts(patients_of(30, odd=odd)) for odd in (False, True)), strict=True)
    moved = [float(np.linalg.norm(more - fewer)) for fewer, more in pairs]
    return moved, [event.sensitivity / event.mass for event in events()]


def test_the_odd_patient_moves_all_tables_by_what_is_accounted_for() -> None:
    moved, paid = shift()
    assert paid == pytest.approx([math.sqrt(2), math.sqrt(3), math.sqrt(2)])
    for of_table, most in zip(moved, paid, strict=True):
        assert of_table <= most + 1e-9
    assert moved[:2] == pytest.approx(paid[:2])  # the worst case is reached, and not only bounded


def each_row(owners: Any, patients: int, mass: int) -> Any:
    """Broken twin: a row counts as a patient does."""
    return np.full(sum(map(len, owners)), mass)


def each_test(owners: Any, patients: int, mass: int) -> Any:
    """Broken twin: the rows of a test share a patient, and other tests share her again."""
    parts = [mass // np.bincount(own, minlength=patients)[own] for own in owners]
    return np.concatenate(parts)


@pytest.mark.parametrize(("twin", "table"), [(each_row, 1), (each_row, 2), (each_test, 2)])
def test_weights_that_do_not_bound_a_patient_are_caught(
    twin: Weights, table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_grains, "weights_of_rows", twin)
    moved, paid = shift()
    assert moved[table] > paid[table] + 0.3
    with pytest.raises(InputError, match="a unit's rows weigh more"):
        count_grains(patients_of(30, odd=True), domain(), plan_of(), SeededEntropy(1))


def test_events_name_each_histogram_and_all_rows_of_a_patient() -> None:
    found = [event.undecided() for event in events()]
    assert [event.histograms for event in found] == [2, 3, 2]
    assert [event.rows_per_unit for event in found] == [1, ROWS, 2 * ROWS]
    assert [event.unit_mass for event in found] == [None, MASS, MASS]
    noise = [event.sigma / event.mass for event in events()]
    assert noise == pytest.approx([noise[0]] * 3, rel=0.01)


def test_shares_of_the_others_shrink_and_all_add_up_to_one() -> None:
    shares = shares_of_histories(domain(), BUDGET)
    assert math.fsum(share.fraction for share in shares) == pytest.approx(1.0)
    assert sum("granularity" in share.event.name for share in shares) == 3
    nothing = HistoryDomain((Feature("sex", 2, 0),), (), (), 0, 0, 400)
    shares = shares_of_histories(nothing, BUDGET)
    assert with_row_grains(shares, nothing) == shares


def tenths_are_seen(odd: bool, entropy: Any) -> bool:
    people = patients_of(400, odd=odd)
    found = count_grains(people, domain(), plan_of(), entropy)
    rates = roundings(found, domain(), people)
    assert rates is not None
    drawn = [rates.patients[0], *(own[0] for (own, *_) in rates.tables)]
    return any(own[1] < 0 for own in drawn)  # some points would become tenths


def test_noise_hides_the_odd_patient_and_exact_counts_show_her() -> None:
    for odd in (False, True):
        assert not any(tenths_are_seen(odd, SeededEntropy(seed)) for seed in range(8))
    exact = [
        count_grains(patients_of(400, odd=odd), domain(), plan_of(), Silence(0))
        for odd in (False, True)
    ]
    tenths = [[one[place][0].counts[0][1] for place in (-1, 0, 1)] for one in exact]
    assert tenths[0] == [0, 0, 0] and min(tenths[1]) > 0


def test_a_fit_runs_each_event_once_with_the_noise_that_was_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def watched(rows: Any, sizes: Any, sigmas: Any, event: Any, entropy: Any) -> Any:
        asked.append((event, set(sigmas)))
        return released(rows, sizes, sigmas, event, entropy)

    released = row_grains.weighted_histograms
    monkeypatch.setattr(row_grains, "weighted_histograms", watched)
    count_grains(patients_of(20, odd=True), domain(), plan_of(), SeededEntropy(1))
    assert asked == [(event, {event.sigma}) for event in events()]
    assert CohortGenerator(domain()).rounding is None


def test_the_cell_of_a_row_is_a_function_of_its_own_code() -> None:
    together = patients_of(20, odd=True)
    alone = together.take(np.array([20]))
    for one in counted_of(domain()):
        rows, own = one.rows(together, MASS), one.rows(alone, MASS)
        mine = rows.units == 20
        assert [cells[mine].tolist() for cells in rows.cells] == [c.tolist() for c in own.cells]
        assert rows.weights[mine].tolist() == own.weights.tolist()
