"""Tables with wide rows: public settings of what is measured, and how finely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.models import Feature
from dpsynth.models.histories import (
    FollowUp,
    HistoryDomain,
    HistoryTable,
    PersonTable,
    Series,
    shares_of_histories,
)
from dpsynth.models.histories.persons import Emphasis
from dpsynth.models.histories.persons.emphasis import COUNT, FATE, FIRST, OF_WIDE, OWN, VALUE
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.privacy import PrivacyBudget

BUDGET = PrivacyBudget(3.0, 1e-5)


def domain(values: int, population: int = 50_000) -> HistoryDomain:
    columns = tuple(Feature(f"value {place}", 5, 5, (1,) * 5) for place in range(values))
    table = HistoryTable("visits", (Series("visits", columns, 40),), False, 1, (False,) * values)
    return HistoryDomain((Feature("sex", 2, 0),), (), (table,), 0, 0, population)


def test_what_survival_by_groups_depends_on_weighs_most() -> None:
    """The baseline with an event, and all with the end of follow-up; not two events."""
    columns = (
        Feature("sex", 2, 0),
        Feature("age", 9, 9),
        Feature("end", 50, 50),
        Feature("d", 2, 0),
    )
    end = FollowUp(2, np.arange(50), status=3)
    person = PersonTable(HistoryDomain(columns, ("fall", "fit"), (), -10, 50, 5_000, end))
    weight, sex, age, ended = Emphasis(person).weight_of, 0, 1, person.ended
    fall, fit = range(person.baseline, person.own)
    assert {weight(pair) for pair in ((sex, fall), (age, fit), (sex, ended), (ended, fit))} == {
        FATE
    }
    assert weight((sex, age)) == weight((fall, fit)) == OWN < FATE


@pytest.mark.parametrize(("values", "count", "first"), [(9, OF_WIDE, FIRST), (2, COUNT, VALUE)])
def test_pairs_weigh_by_what_their_columns_are(values: int, count: float, first: float) -> None:
    person = PersonTable(domain(values))
    emphasis, ((hidden,),) = Emphasis(person), person.hidden
    assert emphasis.weight_of((0, hidden.count)) == count
    assert emphasis.weight_of((hidden.count, hidden.values[0])) == count
    assert emphasis.weight_of((0, hidden.values[0])) == first
    assert Emphasis(person, 3.0).weight_of((0, hidden.values[0])) == (3.0 if values > 8 else VALUE)
    assert emphasis.weight_of((hidden.values[0], hidden.values[1])) == 1.0
    kept = [emphasis.is_compared((0, j)) for j in (hidden.count, hidden.values[0])]
    assert kept == [False, values < 8], "what groups are compared by is always measured again"
    assert not emphasis.is_compared((hidden.values[0], hidden.values[1]))


def test_what_became_of_patients_is_tied_more_than_their_values() -> None:
    events = replace(domain(2), events=("stroke",))
    ties = Emphasis(PersonTable(events)).ties(1.0, 0.3)
    assert ties == [0.3, 1.0, 0.3, 0.3, 0.3]


def test_many_rows_of_a_wide_table_count_when_their_number_is_cut_into_bins() -> None:
    person = PersonTable(domain(9))
    ((hidden,),) = person.hidden
    found = Emphasis(person).importance_of(
        hidden.count, person.domain.tables[0].series[0].counts.middles
    )
    assert found is not None
    assert found[3] == 2.0 and found[0] == found[1] > 0
    assert Emphasis(PersonTable(domain(2))).importance_of(1, found) is None


def test_a_column_of_the_baseline_is_cut_more_finely_where_patients_are_few() -> None:
    ages = replace(domain(2), baseline=(Feature("age", 20, 20, (1,) * 20),))
    shares = np.linspace(0.1, 0.0, 20)
    found = Emphasis(PersonTable(ages)).importance_of(0, shares)
    assert found is not None and (np.diff(found) > 0).all()
    in_all = found * shares
    assert (np.diff(in_all) < 0).all(), "but those who are many count more together"


def test_wide_rows_leave_more_of_the_person_table_to_pairs() -> None:
    parts = [
        next(share.fraction for share in found if "one-way" in share.event.name)
        / sum(share.fraction for share in found if share.event.name.startswith("patients"))
        for found in (shares_of_histories(domain(values), BUDGET) for values in (2, 9))
    ]
    assert parts == pytest.approx([0.25, 0.15])


def test_where_noise_is_large_a_round_of_the_fit_is_longer() -> None:
    few, many = (HistorySettings.of(domain(9, size), BUDGET) for size in (10_000, 100_000))
    assert few.first > many.first == FIRST
    assert few.person_steps > many.person_steps
    assert few.components == many.components == 1000


def test_where_rows_are_not_wide_a_fit_is_long_where_noise_is_small() -> None:
    few, many = (HistorySettings.of(domain(2, size), BUDGET) for size in (1_000, 100_000))
    assert (few.components, few.person_steps, few.tie, few.loose_tie) == (500, 300, 0.3, 0.3)
    assert (many.components, many.person_steps, many.tie, many.loose_tie) == (1000, 1200, 1.0, 0.3)
