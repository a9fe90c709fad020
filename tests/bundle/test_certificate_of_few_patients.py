"""Certificates of fits in which products of contrasts come first, and of the time before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, budget_lines, certify
from dpsynth.encoding import Codec
from dpsynth.forecasts.plan_words import describe_event
from dpsynth.models import Domain, shares_of
from dpsynth.models.presets import PAIRS
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy.pair_statistics import DEPARTURES, PRODUCTS
from dpsynth.schema import Declared, Schema

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)


@pytest.fixture
def few() -> Schema:
    size = Declared(4000, "a part of the cohort")
    return replace(Schema.load("diabetes130"), population=size)


def certified(schema: Schema, shares: Sequence[Share]) -> Certificate:
    plan = PrivacyPlan.calibrate(BUDGET, shares)
    return Certificate.from_dict(certify(schema, plan, model="mixture", charge=None))


def faults(schema: Schema, certificate: Certificate) -> list[str]:
    """What is wrong with it, but that no ledger was charged."""
    findings = map(str, check_certificate(certificate, schema, None))
    return [finding for finding in findings if "no ledger was charged" not in finding]


def domain(schema: Schema) -> Domain:
    return Domain.of(schema, Codec(schema))


def test_its_events_are_those_of_the_model(few: Schema) -> None:
    certificate = certified(few, shares_of("mixture", domain(few), BUDGET))
    assert {PRODUCTS, DEPARTURES, PAIRS} < {event.name for event in certificate.events}
    assert faults(few, certificate) == []


def test_a_certificate_without_products_of_contrasts_is_refused(few: Schema) -> None:
    """Pairs alone would be cheaper, and are not what runs on tables of few patients."""
    shares = shares_of("mixture", domain(few), BUDGET)
    kept = [one for one in shares if one.event.name not in (PRODUCTS, DEPARTURES)]
    whole = sum(one.fraction for one in kept)
    alone = [replace(one, fraction=one.fraction / whole) for one in kept]
    assert len(faults(few, certified(few, alone))) == 2


@pytest.mark.parametrize("missing", [PRODUCTS, DEPARTURES, PAIRS])
def test_an_event_that_is_left_out_is_missed(few: Schema, missing: str) -> None:
    """Whichever of both ways the rest is taken for."""
    kept = [
        share for share in shares_of("mixture", domain(few), BUDGET) if share.event.name != missing
    ]
    whole = sum(share.fraction for share in kept)
    shares = [replace(share, fraction=share.fraction / whole) for share in kept]
    assert any(f"event '{missing}'" in fault for fault in faults(few, certified(few, shares)))


def test_both_events_are_said_in_words(few: Schema) -> None:
    certificate = certified(few, shares_of("mixture", domain(few), BUDGET))
    lines = {line.name: line for line in budget_lines(certificate, quality=False)}
    assert "how strongly columns are related" in lines[PRODUCTS].purpose
    assert "one distance for each" in lines[DEPARTURES].purpose
    assert "which values occur together" in lines[PAIRS].purpose
    assert "on each distance" in lines[DEPARTURES].noise
    told = {event.name: describe_event(event) for event in certificate.events}
    assert "sums of products of two columns' scores" in told[PRODUCTS]
    assert "distances, one for each pair of columns" in told[DEPARTURES]
    sd = lines[DEPARTURES].noise.split()[1]
    assert float(told[DEPARTURES].split("sd ")[1].split()[0]) == pytest.approx(float(sd), rel=0.01)
