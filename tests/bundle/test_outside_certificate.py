"""A certificate of another package's generator is held to the schema, without the package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, certify
from dpsynth.encoding import Codec
from dpsynth.models import Domain, outside_events
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS
from dpsynth.privacy import Event, PoissonSgd, PrivacyBudget, PrivacyPlan, epsilon
from dpsynth.schema import Schema

FULL_NAME = "dpsynth-toy==0.1:toy"
DELTA = 1e-6


def certificate(schema: Schema, events: tuple[Event, ...]) -> Certificate:
    cost = epsilon(events, DELTA) * 1.0001
    plan = PrivacyPlan(PrivacyBudget(cost * 1.01, DELTA), events, cost)
    return Certificate.from_dict(certify(schema, plan, model=FULL_NAME, charge=None))


def faults(schema: Schema, events: tuple[Event, ...]) -> list[str]:
    """What is wrong with it, but that no ledger was charged."""
    findings = check_certificate(certificate(schema, events), schema, None)
    return [str(finding) for finding in findings if "no ledger was charged" not in str(finding)]


@pytest.fixture
def counts(every_type: Schema) -> dict[str, Event]:
    domain = Domain.of(every_type, Codec(every_type))
    return {name: event.with_mu(0.3) for name, event in outside_events(domain).items()}


def test_events_that_follow_from_the_schema_are_good(
    every_type: Schema, counts: dict[str, Event]
) -> None:
    steps = PoissonSgd(STEPS, 0.05, 20, 1.5)
    assert faults(every_type, (counts[ONE_WAY],)) == []
    assert faults(every_type, (counts[ONE_WAY], counts[PAIRS], steps)) == []


@pytest.mark.parametrize(
    "change", [{"rows_per_unit": 1}, {"histograms": 3}, {"unit_mass": 100}, {"name": "others"}]
)
def test_an_event_of_another_shape_is_none_that_dpsynth_gives(
    every_type: Schema, counts: dict[str, Event], change: dict[str, Any]
) -> None:
    event: Any = counts[ONE_WAY]
    assert faults(every_type, (replace(event, **change), counts[PAIRS]))


def test_the_counts_of_columns_cannot_be_missing(
    every_type: Schema, counts: dict[str, Event]
) -> None:
    assert any("is missing" in fault for fault in faults(every_type, (counts[PAIRS],)))


def test_the_sentence_about_the_package_cannot_be_left_out(
    every_type: Schema, counts: dict[str, Event]
) -> None:
    whole = certificate(every_type, (counts[ONE_WAY],))
    short = replace(whole, not_covered=tuple(s for s in whole.not_covered if "code of" not in s))
    assert len(short.not_covered) == len(whole.not_covered) - 1
    assert any("not_covered" in str(one) for one in check_certificate(short, every_type, None))
