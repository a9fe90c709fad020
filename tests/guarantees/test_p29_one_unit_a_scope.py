"""P29: a ledger adds epsilons of different units, so that nobody's epsilon is what it says.

A fit per row and a fit per patient, each within a cap of 1.0, cost a patient of many rows far more
than 1.0. All fits of a budget count one unit; another is refused before the charge, or is counted
by what group privacy proves for a declared number of units.
"""

from __future__ import annotations

import math
import multiprocessing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, adopt, void
from dpsynth.policy import conflict, kinds
from dpsynth.privacy import Unit, described, gaussian_mu

from .units import KEYED, NUMBERED, PATIENT, ROW, ROWS_OF_ONE, STAY, policy, reserve

# What a sum of different units is worth: nothing.


def spent_by_a_patient(fits: list[tuple[float, int]], delta: float) -> float:
    """Exact epsilon of Gaussian fits for a patient of so many units each, without dpsynth's sums.

    Each fit is the Gaussian mechanism that is (epsilon, 1e-6)-private for one unit of it; the units
    of the patient move its answer by as many times its sensitivity.
    """
    mu = math.sqrt(sum((units * gaussian_mu(epsilon, 1e-6)) ** 2 for epsilon, units in fits))

    def chance(epsilon: float) -> float:
        gain = float(log_ndtr(mu / 2 - epsilon / mu))
        return math.exp(gain) - math.exp(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)))

    low, high = 0.0, 200.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > delta else (low, middle)
    return high


def test_a_sum_of_rows_and_patients_costs_a_patient_far_more_than_the_cap(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = [(0.5, 20), (0.5, 1)]  # per row, of a patient with 20 rows; per patient
    assert spent_by_a_patient([(0.5, 1), (0.5, 1)], 1e-4) <= 1.0  # one unit: the sum holds
    assert spent_by_a_patient(fits, 1e-4) > 3.86
    reserve(ledger, ROW)
    with pytest.raises(BudgetError, match="of different units do not add up"):
        reserve(ledger, PATIENT)
    assert [entry.unit for entry in ledger.entries()] == [ROW]
    monkeypatch.setattr("dpsynth.ledger.ledger.conflict", lambda *_: None)  # the broken version
    monkeypatch.setattr("dpsynth.policy.rules.conflict", lambda *_: None)
    reserve(ledger, PATIENT)
    assert ledger.spent("ward").epsilon_sum == 1.0  # within the cap, it says


# What counts the same.

SAME = {
    "rows": (ROW, replace(ROW, keep="window")),
    "other numbers of rows": (KEYED, replace(KEYED, max_rows=9, keep="window")),
    "named later": (KEYED, PATIENT),
    "named alike": (PATIENT, NUMBERED),
    "named by another extract": (KEYED, replace(NUMBERED, same_as=("patient_id",))),
    "rows of a patient": (PATIENT, ROWS_OF_ONE),
    "rows of a patient whose key another extract has": (
        KEYED,
        replace(ROWS_OF_ONE, same_as=("patient_id",)),
    ),
    "stays of a patient": (
        PATIENT,
        replace(STAY, person="patient", max_units=3, max_units_basis=""),
    ),
    "other numbers of units": (ROWS_OF_ONE, replace(ROWS_OF_ONE, max_units=2)),
}
DIFFERENT = {
    "rows and keys": (ROW, KEYED),
    "rows and patients": (ROW, PATIENT),
    "rows and rows of a patient": (ROW, ROWS_OF_ONE),
    "keys and rows of whom knows": (KEYED, ROWS_OF_ONE),
    "patients and stays": (KEYED, STAY),
    "stays, and stays of whom has several": (
        STAY,
        replace(STAY, person="patient", max_units=3, max_units_basis="form 7"),
    ),
    "two columns": (KEYED, replace(KEYED, name="patient_nbr")),
    "named, and another column": (KEYED, NUMBERED),
    "two persons": (PATIENT, replace(PATIENT, person="practice")),
    "case": (KEYED, replace(KEYED, case=True)),
    "case of patients": (PATIENT, replace(NUMBERED, case=True)),
    "blanks": (KEYED, replace(KEYED, trim=False)),
    "zeros": (KEYED, replace(KEYED, leading_zeros=False)),
    "rows without a key": (KEYED, replace(KEYED, missing_key="own")),
    "rows without a key of patients": (PATIENT, replace(PATIENT, missing_key="own")),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_these_add_up(pair: tuple[Unit, Unit], ledger: Ledger) -> None:
    for first, second in (pair, pair[::-1]):
        assert conflict(second, [first]) is None
    reserve(ledger, pair[0], 0.1)
    reserve(ledger, pair[1], 0.1)


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_these_do_not(pair: tuple[Unit, Unit], ledger: Ledger) -> None:
    for first, second in (pair, pair[::-1]):
        message = conflict(second, [first])
        assert message is not None and described(second) in message and described(first) in message
    reserve(ledger, pair[0], 0.1)
    with pytest.raises(BudgetError, match="do not add up"):
        reserve(ledger, pair[1], 0.1)
    with pytest.raises(BudgetError, match="do not add up"):  # no policy: sums are published too
        reserve(ledger, pair[1], 0.1, policy=None)
    assert len(ledger.entries()) == 1


def test_a_chain_of_declarations_connects() -> None:
    linked = replace(NUMBERED, same_as=("patient_id",))
    assert conflict(ROWS_OF_ONE, [KEYED, linked]) is None
    assert conflict(ROW, [KEYED, linked]) is not None
    assert len(kinds([KEYED, replace(KEYED, name="b"), replace(PATIENT, name="b")])) == 2


@given(st.permutations([KEYED, PATIENT, replace(NUMBERED, same_as=("patient_id",)), ROWS_OF_ONE]))
def test_the_order_of_fits_decides_nothing(units: list[Unit]) -> None:
    assert len(kinds(units)) == 1
    assert len(kinds([*units, ROW])) == len(kinds([ROW, *units])) == 2


STAYS = replace(STAY, person="patient", max_units=3, max_units_basis="form 7")
CONTRARY = {
    "one stay, then three": [replace(STAY, person="patient"), STAYS],
    "another extract's stays are patients": [replace(PATIENT, same_as=("encounter_id",)), STAYS],
    "stays that nobody named": [replace(PATIENT, same_as=("encounter_id",)), STAY, STAYS],
}


@pytest.mark.parametrize("units", CONTRARY.values(), ids=CONTRARY)
def test_a_column_is_not_one_patient_here_and_several_there(
    units: list[Unit], ledger: Ledger
) -> None:
    """A patient of three stays would pay 3 epsilon for a fit that the ledger counts as epsilon."""
    persons = {unit.person for unit in units} - {None}
    assert len(persons) == 1  # the broken version: whoever names the same person counts the same
    assert spent_by_a_patient([(0.3, 3)] * 3, 1e-4) > 1.0  # and adds up to 3 * 0.3
    for order in (units, units[::-1]):
        assert len(kinds(order)) == 2
        message = conflict(order[-1], order[:-1])
        assert message is not None and "of different units" in message
    for unit in units[:-1]:
        reserve(ledger, unit, 0.1)
    with pytest.raises(BudgetError, match="treats a value of a key column as one patient"):
        reserve(ledger, units[-1], 0.1)


def test_rows_without_a_key_may_be_several_where_the_key_is_one() -> None:
    keyless = replace(PATIENT, missing_key="own", max_units=4, max_units_basis="form 7")
    assert conflict(keyless, [PATIENT]) is None and conflict(PATIENT, [keyless]) is None


def test_a_scope_is_the_policys_group(ledger: Ledger) -> None:
    reserve(ledger, ROW, 0.1, dataset="a", policy=None)
    reserve(ledger, PATIENT, 0.1, dataset="b", policy=None)  # another budget
    joined = policy(datasets={"all": ["a", "b"]})
    for unit in (ROW, PATIENT):  # under a policy that joins them, nothing adds up any more
        for dataset in ("a", "b", "all"):
            with pytest.raises(BudgetError, match=f"dataset '{dataset}': this fit counts"):
                reserve(ledger, unit, 0.1, dataset=dataset, policy=joined)
    with pytest.raises(BudgetError, match="group 'all' joins fits that count a row"):
        adopt(ledger, joined)
    void(ledger, ledger.entries("a")[0].id, "never read")
    adopt(ledger, joined)  # what does not count does not stand in the way
    reserve(ledger, PATIENT, 0.1, dataset="a", policy=None)


def ask(location: str, unit: Unit, start: Any, won: Any) -> None:
    ledger = Ledger(location)
    start.wait(60)
    try:
        reserve(ledger, unit, 0.1)
    except BudgetError:
        return
    with won.get_lock():
        won.value += 1


def test_first_fits_that_race_count_one_unit(ledger: Ledger) -> None:
    context = multiprocessing.get_context("fork")
    start, won = context.Barrier(4), context.Value("i", 0)
    workers = [
        context.Process(target=ask, args=(ledger.location, unit, start, won))
        for unit in (ROW, PATIENT, STAY, replace(PATIENT, case=True))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert won.value == 1 and len(ledger.entries()) == 1
