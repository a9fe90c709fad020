"""A short fit of histories whose visits are a wide table."""

from __future__ import annotations

import pytest

from dpsynth.models.histories import DistilledHistories, domain
from dpsynth.models.histories.steps import fit
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from .made_histories import domain_of, histories_of
from .short_training import shorten_histories, shorten_networks

BUDGET = PrivacyBudget(epsilon=300.0, delta=1e-6)
VISITS = 1  # the wide table


def wide_fit(patients: int) -> DistilledHistories:
    """Fit `distilled` to made-up patients, with hardly any noise."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        shorten_networks(patch)
        patch.setattr(domain, "WIDE", 3)
        patch.setattr(fit, "MIN_MASS", 10)
        generator = DistilledHistories(domain_of(patients))
        plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
        return generator.fit(histories_of(patients), plan, SeededEntropy(1))
