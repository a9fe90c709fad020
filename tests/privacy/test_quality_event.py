"""The share of a plan for public quality figures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, certify
from dpsynth.errors import InputError
from dpsynth.privacy import PrivacyPlan, quality_event, reserved, targets, with_quality
from dpsynth.privacy.public_quality import QUALITY
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare


def plan_of(schema: Schema, share: float | None, epsilon: float = 2.0) -> PrivacyPlan:
    return prepare(schema, epsilon=epsilon, delta=1e-6, model="mixture", publish_quality=share).plan


def test_a_share_is_a_share_of_mu_squared_and_the_rest_keeps_its_proportions(
    every_type: Schema,
) -> None:
    plain, paid = plan_of(every_type, None), plan_of(every_type, 0.1)
    total = sum(event.mu() ** 2 for event in paid.events)
    assert paid.event(QUALITY).mu() ** 2 / total == pytest.approx(0.1, rel=1e-3)
    one, two = ({e.name: e.mu() for e in plan.events} for plan in (plain, paid))
    ratios = [two[name] / one[name] for name in one]
    assert ratios == pytest.approx([math.sqrt(0.9)] * len(one), rel=5e-3)
    assert paid.epsilon <= 2.0


def test_the_event_counts_its_figures_and_the_rows_of_a_unit(every_type: Schema) -> None:
    event = quality_event(every_type)
    assert event.most == 3 + len(every_type.modelled) + len(targets(every_type))
    assert event.rows_per_unit == every_type.unit.max_rows == event.mass
    assert reserved(plan_of(every_type, None).events) is None
    assert reserved(plan_of(every_type, 0.2).events) == plan_of(every_type, 0.2).event(QUALITY)


@pytest.mark.parametrize("share", [0.0, -0.1, 0.6, 1.0, math.nan, True])
def test_a_share_out_of_range_is_refused(every_type: Schema, share: float) -> None:
    with pytest.raises(InputError, match="publishing quality"):
        with_quality((), every_type, share)


def test_verification_knows_the_event_and_its_size(every_type: Schema) -> None:
    plan = plan_of(every_type, 0.1)
    document = certify(every_type, plan, model="mixture", charge=None)
    certificate = Certificate.from_dict(document)
    messages = [str(one) for one in check_certificate(certificate, every_type, None)]
    assert [text for text in messages if "event" in text] == []
    smaller = Schema.from_dict(
        every_type.to_dict() | {"fields": every_type.to_dict()["fields"][:-1]}
    )
    messages = [str(one) for one in check_certificate(certificate, smaller, None)]
    assert any(f"event '{QUALITY}' is not the one" in text for text in messages)


def test_the_command_line_shows_and_checks_the_share(
    every_type: Schema, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpsynth.cli import main

    path = tmp_path / "s.schema.json"
    every_type.save(path)
    options = [str(path), "--epsilon", "2", "--delta", "1e-6", "--model", "mixture"]
    with pytest.raises(SystemExit) as stop:
        main(["plan", *options, "--publish-quality", "0.1"])
    assert stop.value.code == 0
    assert "public quality figures" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["plan", *options, "--publish-quality", "2"])
    assert stop.value.code == 2
    assert "share for publishing quality" in capsys.readouterr().err
