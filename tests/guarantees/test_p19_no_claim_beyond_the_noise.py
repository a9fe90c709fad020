"""P19: a certificate calls exact what is exact: whole counts, and no gradient.

Verification compares the sentences of a certificate with those of the program, so the program's own
have to be held to the events here, by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.certificate import certify
from dpsynth.models import spec_of
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PoissonSgd
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare

NEURAL = [name for name in NAMES if spec_of(name).neural]

STEPS = "DP-SGD steps"
COUNTS = {name: 2 if name == "independent" else 3 for name in NAMES}  # grains, columns, pairs


def certificate(model: str, clinic: Schema) -> tuple[dict[str, Any], bool]:
    """What is said of a fit, and whether it has steps of DP-SGD."""
    plan = prepare(clinic, epsilon=2.0, delta=1e-5, model=model).plan
    trained = any(isinstance(event, PoissonSgd) for event in plan.events)
    return certify(clinic, plan, model=model, charge=None), trained


def claims_too_much(stated: dict[str, Any], trained: bool) -> bool:
    """Whether gradients are called exact, or their floating-point numbers are not named."""
    named = any(STEPS in limit and "floating-point" in limit for limit in stated["floating_point"])
    return any(STEPS in claim for claim in stated["exact"]) or named != trained


@pytest.mark.parametrize("model", COUNTS)
@pytest.mark.usefixtures("quick_plans")
def test_counts_are_called_exact_and_gradients_are_not(model: str, clinic: Schema) -> None:
    stated, trained = certificate(model, clinic)
    assert trained == (model in NEURAL)
    assert not claims_too_much(stated, trained)
    assert len(stated["exact"]) == COUNTS[model]
    assert all("discrete Gaussian noise" in claim for claim in stated["exact"])
    assert "epsilon is computed" in stated["floating_point"][-1]


@pytest.mark.parametrize(
    ("function", "sentences"),
    [
        ("exact_claims", lambda events: [f"event '{e.name}': exact noise" for e in events]),
        ("floating_point_limits", lambda events: ["epsilon is computed in floating point"]),
    ],
)
@pytest.mark.usefixtures("quick_plans")
def test_a_claim_beyond_the_noise_is_caught(
    function: str, sentences: Any, clinic: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twins: every event is called exact; of the gradients nothing is said."""
    monkeypatch.setattr(f"dpsynth.certificate.certificate.{function}", sentences)
    assert claims_too_much(*certificate("tvae", clinic))
