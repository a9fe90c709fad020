"""Events: what counts as a mechanism, noise for a GDP parameter, and strict documents."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import JointHistograms, PoissonSgd, event_from_dict, round_up
from dpsynth.privacy.events import UNDECIDED

COUNTS = JointHistograms("counts", histograms=12, rows_per_unit=1, sigma=20.0)
MANY = JointHistograms("counts", histograms=9, rows_per_unit=5, sigma=20.0)
STEPS = PoissonSgd("steps", sampling_rate=0.1, steps=300, noise_multiplier=2.0)


def test_mu_by_hand() -> None:
    assert COUNTS.mu() == pytest.approx(math.sqrt(12) / 20)
    assert MANY.sensitivity == 15.0
    assert MANY.mu() == pytest.approx(15 / math.sqrt(400 - 2.25))
    assert STEPS.mu() == pytest.approx(0.1 * math.sqrt(300 * (math.exp(0.25) - 1)))
    assert PoissonSgd("steps", 1.0, 49, 14.0).mu() == pytest.approx(0.5)
    assert replace(STEPS, noise_multiplier=UNDECIDED).mu() == 0
    assert replace(MANY, sigma=UNDECIDED).mu() == 0
    assert replace(STEPS, noise_multiplier=0.01).mu() == math.inf


@given(
    st.floats(1e-4, 2.0), st.sampled_from([COUNTS, MANY, STEPS, replace(STEPS, sampling_rate=1)])
)
def test_noise_for_a_mu_is_never_too_small(mu: float, event: JointHistograms | PoissonSgd) -> None:
    reached = event.with_mu(mu).mu()
    assert mu * (1 - 1e-4) <= reached <= mu * (1 + 1e-12)


def test_least_noise() -> None:
    assert COUNTS.with_mu(1e5).sigma == 0.3
    assert MANY.with_mu(1e5).sigma == 3.0
    assert STEPS.with_mu(1e5).noise_multiplier == 0.3
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError):
            COUNTS.with_mu(bad)


@given(st.floats(1e-12, 1e12))
def test_rounding_is_upwards_to_six_digits(value: float) -> None:
    rounded = round_up(value)
    assert value <= rounded <= value * (1 + 1.0001e-5)
    assert float(f"{rounded:.5e}") == rounded


@pytest.mark.parametrize("event", [COUNTS, MANY, STEPS])
def test_documents_round_trip(event: JointHistograms | PoissonSgd) -> None:
    document = json.loads(json.dumps(event.to_dict()))
    assert event_from_dict(document) == event
    assert document["kind"] == ("poisson_sgd" if event is STEPS else "joint_histograms")


BROKEN = [
    ({"kind": "laplace"}, "kind"),
    ({"kind": None}, "kind"),
    ({"extra": 1}, "exactly"),
    ({"name": ""}, "name"),
    ({"name": 3}, "name"),
    ({"histograms": 0}, "histograms"),
    ({"histograms": 2.0}, "histograms"),
    ({"histograms": True}, "histograms"),
    ({"rows_per_unit": -1}, "rows_per_unit"),
    ({"sigma": 0}, "sigma"),
    ({"sigma": "20"}, "sigma"),
    ({"sigma": math.nan}, "sigma"),
    ({"sigma": math.inf}, "no noise"),
    ({"sigma": 2.9, "rows_per_unit": 2}, "at least 3"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_a_document_that_is_not_an_event_is_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        event_from_dict(COUNTS.to_dict() | change)


@pytest.mark.parametrize(
    "change",
    [
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.1},
        {"sampling_rate": "0.1"},
        {"steps": 0},
        {"steps": 1.5},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": None},
    ],
)
def test_steps_that_are_no_mechanism_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        event_from_dict(STEPS.to_dict() | change)


def test_a_missing_key_or_another_shape_is_refused() -> None:
    document = COUNTS.to_dict()
    del document["sigma"]
    for broken in (document, [], None, "counts"):
        with pytest.raises(InputError):
            event_from_dict(broken)  # type: ignore[arg-type]


def test_undecided_noise_is_not_written() -> None:
    for event in (replace(COUNTS, sigma=UNDECIDED), replace(STEPS, noise_multiplier=UNDECIDED)):
        assert not event.decided
        with pytest.raises(InputError, match="not decided"):
            event.to_dict()
