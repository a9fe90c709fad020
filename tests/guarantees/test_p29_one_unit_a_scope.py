"""P29: a ledger adds epsilons of different units, so that nobody's epsilon is what it says.

A fit per row and a fit per patient, each within a cap of 1.0, cost a patient of many rows far more
than 1.0. All fits of a budget count one unit; another is refused before the charge, or is counted
by what group privacy proves for a declared number of units.
"""

from __future__ import annotations

import ast
import json
import math
import multiprocessing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from dpsynth.certificate.certificate import Certificate
from dpsynth.certificate.interpretation import protected, readings
from dpsynth.errors import ArtifactError, BudgetError, InputError, SchemaError
from dpsynth.ledger.actions import adopt, void
from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.ledger.statements.balances import accounts
from dpsynth.policy import one_unit
from dpsynth.policy.one_unit import conflict, kinds
from dpsynth.policy.policy import Policy
from dpsynth.privacy.gaussian import gaussian_mu
from dpsynth.privacy.group_privacy import group_cost
from dpsynth.privacy.unit import EACH_ROW, Unit
from dpsynth.privacy.unit_terms import described
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting, preparation

from ..support import reservations

ROW = EACH_ROW
KEYED = replace(ROW, name="patient_id", max_rows=4)
STAY = replace(ROW, name="encounter_id")
PATIENT = replace(KEYED, person="patient")
NUMBERED = replace(PATIENT, name="patient_nbr")
ROWS_OF_ONE = replace(ROW, person="patient", max_units=5, max_units_basis="form 7")


def policy(epsilon: float = 1.0, **keys: Any) -> Policy:
    caps = {name: {"epsilon": epsilon, "basis": "test"} for name in ("year", "total")}
    document = {"dpsynth_policy": 1, "name": "t", "delta": 1e-4, "caps": caps}
    return Policy.from_dict(document | keys, "test")


def reserve(ledger: Ledger, unit: Unit, epsilon: float = 0.5, **changes: Any) -> Entry:
    settings = {"dataset": "ward", "policy": policy(), "unit": unit, "epsilon": epsilon}
    return reservations.reserve(ledger, **(settings | changes))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    return Ledger.create(tmp_path / "ledger.sqlite")


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
        found = conflict(second, [first])
        assert found is not None and described(second) in found and described(first) in found
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
        found = conflict(order[-1], order[:-1])
        assert found is not None and "of different units" in found
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


# Group privacy.

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


def test_events_of_rows_are_not_summed_as_those_of_patients(ledger: Ledger) -> None:
    """The Renyi sum of a fit's events is about one row: it may not let a patient's fits pass."""
    schema = clinic(person={"name": "patient", "max_units": {"value": 50, "basis": "form 7"}})
    plan = preparation.prepare(schema, epsilon=0.01, delta=1e-8, model="independent").plan
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
        preparation.require_small_delta(schema, epsilon, delta)
    with pytest.raises(InputError, match="0.034 for a patient"):
        fitting.fit(visits(), schema, epsilon=epsilon, delta=delta, dataset="ward")
    preparation.require_small_delta(schema, epsilon, 1e-9)
    preparation.require_small_delta(clinic(), epsilon, delta)


def test_a_small_population_is_one_of_persons(ledger: Ledger) -> None:
    least = policy(minimum_population={"value": 3000, "basis": "test"})
    with pytest.raises(BudgetError, match="minimum population"):
        reserve(ledger, ROWS_OF_ONE, 0.01, policy=least)  # 9000 rows may be 1800 patients
    reserve(ledger, replace(ROWS_OF_ONE, max_units=3), 0.01, policy=least)


def past_now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


# Schemas, fits, documents.


def clinic(key: str | None = None, **facts: Any) -> Schema:
    basis = {"bounds_basis": "form"}
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "string", "dpsynth": {"role": "unit" if name == key else "drop"}}
        for name in ("patient_id", "encounter_id")
    ]
    fields += [
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": basis}
    ]
    own: dict[str, Any] = {"version": 1, **facts}
    own |= {name: {"value": 900, "basis": "report"} for name in ("population", "rows")}
    if key is not None:
        own["max_rows"] = {"value": 3, "basis": "choice"}
    return Schema.from_dict({"name": "clinic", "fields": fields, "dpsynth": own})


def visits() -> pd.DataFrame:
    keys = [f"p{number // 2}" for number in range(60)]
    stays = [f"s{number}" for number in range(60)]
    return pd.DataFrame({"patient_id": keys, "encounter_id": stays, "sex": ["F", "M", "F"] * 20})


def fit(ledger: Ledger, schema: Schema, **settings: Any) -> Any:
    return fitting.fit(
        visits(),
        schema,
        epsilon=settings.pop("epsilon", 0.5),
        delta=1e-6,
        dataset="ward",
        model="independent",
        ledger=ledger,
        **settings,
    )


def test_every_fit_gives_its_unit(ledger: Ledger) -> None:
    fit(ledger, clinic("patient_id"))
    [entry] = ledger.entries()
    assert entry.unit == Unit.of(clinic("patient_id")) and entry.unit.name == "patient_id"
    for other in (clinic(), clinic("encounter_id"), clinic("patient_id", missing_key="own")):
        with pytest.raises(BudgetError, match="Nothing was charged"):
            fit(ledger, other)
    assert len(ledger.entries()) == 1


def test_one_place_reserves_and_gives_the_schemas_unit() -> None:
    """Fits, audits on real rows and refits go through `charged`; nothing else reserves."""
    root = Path(one_unit.__file__).parents[1]
    calls = [
        (path.name, {word.arg for word in node.keywords})
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "reserve"
    ]
    assert {name for name, _ in calls} == {"charging.py", "fit_stage.py"}
    assert all("unit" in words for name, words in calls if name == "charging.py")
    assert "unit=Unit.of(schema)," in (root / "ledger/charging.py").read_text()


@pytest.mark.parametrize("key", [None, "encounter_id"])
def test_nobody_is_called_a_patient_where_none_was_counted(
    key: str | None, ledger: Ledger, tmp_path: Path
) -> None:
    from dpsynth.bundle.writer import release
    from dpsynth.ledger.statements.page import page
    from dpsynth.ledger.statements.snapshot import Snapshot

    fit(ledger, clinic(key), output=tmp_path / "run")
    release(tmp_path / "run", tmp_path / "bundle", rows=50, seed=1, ledger=ledger)
    texts = {
        path.name: path.read_text().replace("patient_id", "").lower()
        for path in (tmp_path / "bundle").rglob("*")
        if path.suffix in (".html", ".md", ".json", ".csv")
    }
    assert len(texts) > 4 and [name for name, text in texts.items() if "patient" in text] == []
    unit = "row of the source table" if key is None else "encounter_id"
    assert unit in texts["report.html"]
    shown = page(Snapshot.of(ledger, past_now()))
    assert "patient" not in shown.replace("such as a patient or a row", "").lower()


def test_documents_say_patient_where_one_was_counted(ledger: Ledger) -> None:
    named = clinic("patient_id", person={"name": "patient"})
    certificate = Certificate.from_dict(fit(ledger, named).certificate)
    text = protected(certificate.unit)
    assert "The guarantee protects a patient, identified by column 'patient_id'" in text
    assert "in sum for each patient" in certificate.not_covered[0]


def test_an_assumed_number_of_units_stands_in_every_document(ledger: Ledger) -> None:
    schema = clinic(person={"name": "patient", "max_units": {"value": 3, "basis": "form 7"}})
    certificate = Certificate.from_dict(fit(ledger, schema, epsilon=0.2).certificate)
    text = " ".join(certificate.not_covered)
    assert "is an assumption, which nothing checks (why: form 7)" in text
    assert certificate.ledger is not None and certificate.ledger.epsilon_total == 0.6
    assert (certificate.epsilon, certificate.cost[0]) == (0.2, 0.6)
    assert "at most 3 rows" in protected(certificate.unit)
    [reading] = readings(certificate)  # the only fit: no sum beside it
    assert reading.epsilon == pytest.approx(3 * certificate.composed_epsilon)
    assert reading.delta == group_cost(certificate.composed_epsilon, 1e-6, 3)[1]
    [entry] = ledger.entries()
    assert entry.unit.max_units_basis == "form 7"
    json.dumps(entry.to_dict())


def test_a_schema_says_how_many_where_one_may_have_several() -> None:
    for facts in ({"key": None}, {"key": "patient_id", "missing_key": "own"}):
        with pytest.raises(SchemaError, match="max_units"):
            clinic(**facts, person={"name": "patient"})
    for person in ({"name": "Ms Miller"}, {}, {"name": "patient", "max_units": {"value": 2}}):
        with pytest.raises(SchemaError, match="person"):
            clinic("patient_id", person=person)
    several = {"value": 2, "basis": "form"}
    person = {"name": "patient", "same_as": ["mrn"], "max_units": several}
    schema = clinic("encounter_id", person=person)
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["dpsynth"]["person"] == person
