"""From an attack rate to an epsilon: the plan that is then calibrated keeps to it, for certain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import dpsynth
from dpsynth.errors import InputError
from dpsynth.privacy import AttackRisk, Unit, highest_tpr
from dpsynth.schema import LinkedSchema, Schema, load_any
from dpsynth.synthesis import epsilon_for_risk, prepare

DELTA = 1e-6


def found(schema: Any, epsilon: float, fpr: float, **options: Any) -> float:
    events = prepare(schema, epsilon=epsilon, delta=DELTA, **options).plan.events
    return highest_tpr(events, fpr, Unit.of(schema).max_units)


@pytest.mark.parametrize("model", ["mixture", "autoregressive"])
@pytest.mark.parametrize("text", ["0.05@0.01", "0.012@0.01", "0.3@0.1", "0.9@0.1"])
def test_the_plan_keeps_to_the_risk_and_uses_most_of_it(model: str, text: str) -> None:
    schema, risk = load_any("demo"), AttackRisk.parse(text)
    epsilon = epsilon_for_risk("demo", text, delta=DELTA, model=model)
    assert found(schema, epsilon, risk.fpr, model=model) <= risk.tpr
    assert found(schema, 1.03 * epsilon, risk.fpr, model=model) > risk.tpr
    assert float(f"{epsilon:.3g}") == epsilon


def test_linked_tables_and_auto() -> None:
    schema = load_any("nafld")
    assert isinstance(schema, LinkedSchema)
    epsilon = epsilon_for_risk(schema, "0.05@0.01", delta=DELTA, model="auto")
    assert found(schema, epsilon, 0.01, model="auto") <= 0.05


def test_a_share_for_public_quality_counts() -> None:
    options: dict[str, Any] = {"model": "mixture", "publish_quality": 0.1}
    epsilon = epsilon_for_risk("demo", "0.05@0.01", delta=DELTA, **options)
    assert found(load_any("demo"), epsilon, 0.01, **options) <= 0.05


def test_a_person_with_several_units_is_the_one_whom_the_risk_is_about() -> None:
    schema = load_any("demo")
    assert isinstance(schema, Schema)
    unit = replace(schema.unit, person="patient", max_units=4, max_units_basis="protocol")
    several = replace(schema, unit=unit)
    alone = epsilon_for_risk(schema, "0.05@0.01", delta=DELTA, model="mixture")
    epsilon = epsilon_for_risk(several, "0.05@0.01", delta=DELTA, model="mixture")
    assert found(several, epsilon, 0.01, model="mixture") <= 0.05
    assert alone / 5 < epsilon < alone / 3


@pytest.mark.parametrize("text", ["0.01@0.01", "0.005@0.01", "1.5@0.01", "0.05", "many"])
def test_what_no_noise_can_keep_to_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="risk"):
        epsilon_for_risk("demo", text, delta=DELTA)


def test_a_risk_that_leaves_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="too small: the noise would drown any table"):
        epsilon_for_risk("demo", "2e-15@1e-15", delta=DELTA, model="mixture")


def test_it_is_in_the_face_of_the_package() -> None:
    assert dpsynth.epsilon_for_risk is epsilon_for_risk
