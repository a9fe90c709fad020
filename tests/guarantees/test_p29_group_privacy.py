"""P29: a person with several units pays for all of them, by what group privacy proves.

The bound is held against exact Gaussian costs and against a chain that attains each step; simpler
formulas are shown to be wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

import dpsynth
from dpsynth.certificate import Certificate, certify
from dpsynth.errors import ArtifactError, BudgetError, InputError
from dpsynth.ledger import Ledger, accounts, adopt
from dpsynth.privacy import Unit, gaussian_mu, worst_case_rates
from dpsynth.privacy.unit import group_cost
from dpsynth.synthesis import prepare, require_small_delta

from .units import PATIENT, ROW, ROWS_OF_ONE, clinic, fit, past_now, policy, reserve, visits

GRID = [(0.1, 1e-9), (0.5, 1e-6), (1.0, 1e-5), (2.0, 1e-8), (0.01, 1e-3)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
@pytest.mark.parametrize("units", [2, 3, 5, 20])
def test_group_privacy_covers_what_units_cost_together(
    epsilon: float, delta: float, units: int
) -> None:
    """Of the Gaussian mechanism that is just (epsilon, delta), so many units show exactly this."""
    mu = units * gaussian_mu(epsilon, delta)
    total, stated = group_cost(epsilon, delta, units)
    assert total == pytest.approx(units * epsilon) and total >= units * epsilon * (1 - 1e-15)
    exact = math.exp(float(log_ndtr(mu / 2 - total / mu)))
    exact -= math.exp(total + float(log_ndtr(-mu / 2 - total / mu)))
    assert exact <= stated


def test_simpler_formulas_are_wrong() -> None:
    """Delta as it is, or times the number of units, is less than what the Gaussian shows."""
    mu, total = 3 * gaussian_mu(1.0, 1e-5), 3.0
    exact = math.exp(float(log_ndtr(mu / 2 - total / mu)))
    exact -= math.exp(total + float(log_ndtr(-mu / 2 - total / mu)))
    assert exact > 3 * 1e-5 > 1e-5
    assert exact <= group_cost(1.0, 1e-5, 3)[1]


@pytest.mark.parametrize("units", [1, 2, 4, 7])
def test_group_privacy_is_exact_for_a_chain_that_attains_each_step(units: int) -> None:
    """The worst law of a chain: each unit multiplies by e^epsilon and adds delta."""
    epsilon, delta = 0.3, 1e-7
    chance = 0.0
    for _ in range(units):
        chance = math.exp(epsilon) * chance + delta
    total, stated = group_cost(epsilon, delta, units)
    assert total == pytest.approx(units * epsilon)
    assert chance <= stated * (1 + 1e-15) and stated <= chance * (1 + 1e-9)


@given(st.floats(1e-3, 3.0), st.integers(2, 50))
def test_the_cost_of_several_is_rounded_up(epsilon: float, units: int) -> None:
    exact = units * Fraction(repr(epsilon))
    assert Fraction(repr(group_cost(epsilon, 1e-9, units)[0])) >= exact
    nearest = Fraction(repr(float(3 * Fraction("0.1000000000000001"))))  # the broken version
    assert nearest <= Fraction(repr(group_cost(0.1000000000000001, 1e-9, 3)[0]))


@pytest.mark.parametrize("lost", ["person", "max_units_basis"])
def test_several_units_are_of_a_person_and_have_a_basis(lost: str) -> None:
    document = ROWS_OF_ONE.to_dict()
    assert Unit.from_dict(document, "unit") == ROWS_OF_ONE
    with pytest.raises(ArtifactError, match="is about a person, and has a basis"):
        Unit.from_dict(document | {lost: None}, "unit")


def test_a_certificate_counts_all_fits_of_its_budget(ledger: Ledger) -> None:
    """Those of other datasets of the group too: a patient is in all of them."""
    adopt(ledger, policy(datasets={"all": ["ward", "icu"]}))
    reserve(ledger, PATIENT, 0.1, dataset="ICU", policy=None)
    run = fit(ledger, clinic("patient_id", person={"name": "patient"}), epsilon=0.2)
    charge = Certificate.from_dict(run.certificate).ledger
    assert charge is not None and charge.scope == ("all", "icu", "ward")
    assert (charge.fits, charge.epsilon_total) == (2, 0.3)


def test_a_group_joins_datasets_however_they_are_written(ledger: Ledger) -> None:
    reserve(ledger, ROW, 0.1, dataset="Ward", policy=None)
    reserve(ledger, PATIENT, 0.1, dataset="ICU", policy=None)
    with pytest.raises(BudgetError, match="group 'all' joins fits"):
        adopt(ledger, policy(datasets={"all": ["wARD", "icu"]}))


def test_group_privacy_at_its_ends() -> None:
    assert group_cost(0.3, 1e-7, 1) == (0.3, 1e-7)
    assert group_cost(0.1, 1e-9, 3)[0] == 0.3  # as written, not 0.30000000000000004
    assert group_cost(1000.0, 1e-9, 2)[1] == 1.0
    assert group_cost(0.0, 1e-9, 4) == (0.0, pytest.approx(4e-9))


def test_whoever_has_several_units_pays_for_all(ledger: Ledger) -> None:
    """A fit of rows counts its group cost, in sums, caps and rooms; its events count no less."""
    reserve(ledger, PATIENT, 0.4)
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(ledger, ROWS_OF_ONE, 0.13)  # 0.4 + 5 * 0.13 > 1
    entry = reserve(ledger, ROWS_OF_ONE, 0.12)
    assert entry.epsilon == 0.12 and entry.cost == group_cost(0.12, 1e-6, 5)
    assert ledger.spent("ward").epsilon_sum == 1.0
    assert ledger.spent("ward").delta_sum == pytest.approx(1e-6 + entry.cost[1])
    past = ledger.state().past()[-1]
    assert (past.spend.epsilon, past.spend.delta, past.spend.events) == (*entry.cost, ())
    with pytest.raises(InputError, match="guarantees nothing"):
        reserve(ledger, ROWS_OF_ONE, 9.0, policy=None)
    [account] = accounts(ledger.state(), past_now(), dataset="ward", compose=False)
    assert account.counts == "patient"


def test_the_certificate_states_attack_rates_of_the_person() -> None:
    """Gaussian noise moves a patient of five rows five times as far as one row."""
    schema = clinic(person={"name": "patient", "max_units": {"value": 5, "basis": "form 7"}})
    plan = prepare(schema, epsilon=0.5, delta=1e-6, model="independent").plan
    certificate = certify(schema, plan, model="independent", charge=None)
    of_a_row = worst_case_rates(plan.events).tpr_at_1_percent  # the broken version
    mu = 5 * (norm.isf(0.01) - norm.isf(of_a_row))
    truth = norm.sf(norm.isf(0.01) - mu)
    assert of_a_row < 0.5 * truth
    assert certificate["attack_rates"]["tpr_at_1_percent"] == pytest.approx(truth, rel=0.01)


def test_events_of_rows_are_not_summed_as_those_of_patients(ledger: Ledger) -> None:
    """The Renyi sum of a fit's events is about one row: it may not let a patient's fits pass."""
    schema = clinic(person={"name": "patient", "max_units": {"value": 50, "basis": "form 7"}})
    plan = prepare(schema, epsilon=0.01, delta=1e-8, model="independent").plan
    entry = reserve(ledger, Unit.of(schema), 0.01, delta=1e-8, plan=plan.to_dict(), policy=policy())
    assert entry.cost[0] == 0.5 and ledger.state().past()[0].spend.events == ()
    reserve(ledger, PATIENT, 0.5)
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(ledger, PATIENT, 0.05)


def test_delta_is_small_for_whoever_has_several_units() -> None:
    """Of 900 people, one in 30 could be published whole: the delta of a row does not show it."""
    epsilon, delta, people = 0.5, 1e-6, 900
    schema = clinic(person={"name": "patient", "max_units": {"value": 20, "basis": "form 7"}})
    assert delta * people < 1  # the broken version: the delta of a row
    assert group_cost(epsilon, delta, 20)[1] > 1 / 30
    with pytest.raises(InputError, match=r"delta 1e-06 \(0.034 for a patient\) is not below 1"):
        require_small_delta(schema, epsilon, delta)
    with pytest.raises(InputError, match="0.034 for a patient"):
        dpsynth.fit(visits(), schema, epsilon=epsilon, delta=delta, dataset="ward")
    require_small_delta(schema, epsilon, 1e-9)
    require_small_delta(clinic(), epsilon, delta)


def test_a_small_population_is_one_of_persons(ledger: Ledger) -> None:
    least = policy(minimum_population={"value": 3000, "basis": "test"})
    with pytest.raises(BudgetError, match="minimum population"):
        reserve(ledger, ROWS_OF_ONE, 0.01, policy=least)  # 9000 rows may be 1800 patients
    reserve(ledger, replace(ROWS_OF_ONE, max_units=3), 0.01, policy=least)
