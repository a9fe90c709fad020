"""The ceiling of a fit: real rows that are only cut into its bins, and drawn within them again.

A generator of dpsynth learns rows of bins, and draws a code within each bin by what the noisy
counts say. So it cannot do better than with the bins of the real rows themselves. `quality.py`
scores such a table like a fit (`--models ceiling`): what it loses against the bootstrap of the
real rows, the bins lose; what a fit loses against it, the generator loses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.encoding.codec import Codec
from dpsynth.encoding.cohort import read_cohort
from dpsynth.models.base import Domain
from dpsynth.models.marginals import InitialModel, cohort_with_visits
from dpsynth.models.presets import Preset, choose, shares_of
from dpsynth.privacy.entropy import OsEntropy
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan
from dpsynth.schema.schema import Schema
from dpsynth.tables import open_table


def ceiling(source: Path | Any, schema: Schema, *, epsilon: float, delta: float) -> Any:
    """Return the real rows as the bins of a fit by ``auto`` leave them.

    Bins come from noisy counts as in a fit, so each call gives others. The rows of the result are
    those of the source, in its order: exact, and for the benchmark alone.

    Args:
        source: the table, as `fit` takes it.
        schema: of the table.
        epsilon: of the fit.
        delta: of the fit.
    """
    codec, entropy = Codec(schema), OsEntropy()
    domain, budget = Domain.of(schema, codec), PrivacyBudget(epsilon, delta)
    model, _ = choose(domain, budget)
    whole = domain.with_visits()
    plan = PrivacyPlan.calibrate(budget, shares_of(model, domain, budget))
    cohort = cohort_with_visits(
        read_cohort(open_table(source, schema), codec, schema, entropy, lambda part: None)
    )
    preset = Preset.of(model, whole, budget)
    binning = InitialModel.fit(cohort, whole, plan, plan.opened(entropy), preset).binning
    bins = binning.coarsen(cohort)[cohort.mask].astype(np.int64)
    rng = entropy.generator()
    return codec.decode(binning.refine(bins, rng, even=True), rng)
