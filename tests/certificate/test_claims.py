"""What a certificate says in words: what was spent on the patients, as budgets are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpsynth.certificate import OWN_ROWS, Certificate, not_covered
from dpsynth.schema import LinkedSchema, Schema

from ..support.schema_fields import schema_field


@pytest.mark.parametrize(
    ("fits", "epsilon", "delta", "words"),
    [
        (1, 3.0, 1e-6, "the ledger held 1 fit on dataset 'cohort', with epsilon 3 and delta 1e-6"),
        (2, 6.0, 2e-6, "held 2 fits on dataset 'cohort', with epsilon 6 and delta 2e-6"),
        (3, 0.30001, 3e-10, "with epsilon 0.3001 and delta 3e-10"),
        (4, 9.0, 1.23412e-6, "delta 1.235e-6"),  # never less than it is
    ],
)
def test_what_all_fits_spent_is_a_sum(
    forger: Any, every_type: Schema, fits: int, epsilon: float, delta: float, words: str
) -> None:
    charge = Certificate.from_dict(forger.read("privacy.json")).ledger
    assert charge is not None
    charge = replace(charge, fits=fits, epsilon_total=epsilon, delta_total=delta)
    sentences = not_covered(every_type, charge)[0]
    assert f"{words} in sum" in sentences and "composed" not in sentences


def test_those_that_share_the_budget_are_named(forger: Any, every_type: Schema) -> None:
    """The sum is over all of them, and a reader of the bundle has to know it."""
    charge = Certificate.from_dict(forger.read("privacy.json")).ledger
    assert charge is not None and "share its budget" not in not_covered(every_type, charge)[0]
    joined = replace(charge, dataset="Cohort", scope=("cohort", "icu", "ward"))
    sentences = not_covered(every_type, joined)[0]
    assert "'Cohort' and those that share its budget (icu, ward), with epsilon" in sentences


@pytest.mark.parametrize("policy", ["refuse", "missing"])
def test_a_cell_that_may_stop_a_fit_is_named(policy: str) -> None:
    sex = schema_field(
        "sex", "string", {"bounds_basis": "form", "on_unknown": policy}, enum=["F", "M"]
    )
    facts = {name: {"value": 900, "basis": "report"} for name in ("population", "rows")}
    schema = Schema.from_dict({"name": "t", "fields": [sex], "dpsynth": {"version": 1, **facts}})
    assert schema.may_refuse is (policy == "refuse")
    sentences = not_covered(schema, None)[-1]
    assert ("or a cell that its column refuses, stops a fit" in sentences) is schema.may_refuse


def test_every_certificate_says_what_is_assumed_of_rows(every_type: Schema) -> None:
    """Of a single table and of linked ones, whatever was charged."""
    for schema in (every_type, LinkedSchema.load("clinic")):
        assert OWN_ROWS in not_covered(schema, None)


def test_schema_check_says_what_is_assumed_of_rows(command_line: Callable[..., Any]) -> None:
    for name in ("cardio", "clinic"):
        shown = command_line("schema", "check", name)
        assert shown.code == 0 and OWN_ROWS in shown.out
        assert command_line("schema", "check", name, "--json").json["assumed"] == [OWN_ROWS]
