"""Plans for `mixture` and `independent`, and a model restored from its arrays."""

from __future__ import annotations

import json

from dpsynth.models import Domain
from dpsynth.models.generators import Independent, Mixture
from dpsynth.privacy import PrivacyBudget, PrivacyPlan

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


def plan_for(model: type[Mixture] | type[Independent], domain: Domain) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, model(domain).shares(BUDGET))


def restored(model: Mixture, domain: Domain) -> Mixture:
    config = json.loads(json.dumps(model.config()))
    return Mixture.restore(domain, config, {k: v.copy() for k, v in model.arrays().items()})
