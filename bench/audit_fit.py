"""Games on whole fits: all that a tiny fit gets from its mechanisms, against what its plan claims.

The attacker knows every clipped gradient (`audit_transcript`). The networks are tiny and the steps
few; mechanisms, plan and engine are the real ones. The clipping norm is a quantile of gradients on
drawn rows: where the unit's own is below it, the unit moves a step by less than it may, and less
than the claim can be shown.
"""

from __future__ import annotations

from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from audit_counts import Blocks
from audit_transcript import Transcript
from distinguishing_game import Game
from torch import Tensor
from tradeoff_curves import GaussianCurve, StepsCurve, TradeoffCurve

from dpsynth.encoding.cohort import Cohort
from dpsynth.models.base import Domain, Feature
from dpsynth.models.dpsgd.optimizer import DpSgd
from dpsynth.models.generators import training
from dpsynth.models.marginals.measurement import cohort_with_visits
from dpsynth.models.presets import Preset
from dpsynth.models.registry import generator_class
from dpsynth.privacy.accounting import gaussian_mu
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import PoissonSgd
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan

Floats = npt.NDArray[np.float64]

BUDGET = PrivacyBudget(epsilon=4.0, delta=1e-5)
UNITS = 80
DOMAIN = Domain((Feature("a", 3, 0), Feature("b", 4, 0)), population=UNITS, max_rows=2)
SETTINGS: dict[str, Any] = {"bins": 4, "one_way": 0.25, "components": 3, "mixture_steps": 1}
STEPS: dict[str, Any] = {
    "training": 0.5,
    "hidden": 4,
    "warm_steps": 1,
    "sampling_rate": 0.25,
    "steps": 6,
    "learning_rate": 0.01,
    "anchor": 1.0,
}


def tiny(model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
    """Return settings of a fit that takes some milliseconds."""
    if model == "mixture":
        return Preset(training=0.0, **SETTINGS)
    return Preset(**SETTINGS | STEPS | ({"latent": 2} if model == "tvae" else {}))


def game(
    name: str,
    model: str,
    source: Entropy,
    *,
    unclipped: bool = False,
) -> Game:
    """Make the game of a generator's fit.

    Args:
        name: of the game.
        model: the generator's name.
        source: of noise.
        unclipped: the broken twin: a unit counts five times what the noise was made for.
    """
    within = _cohort()
    without = Cohort(within.codes[:-1], within.mask[:-1])
    with mock.patch.object(Preset, "of", tiny):
        shares = generator_class(model)(DOMAIN).shares(BUDGET)
        plan = PrivacyPlan.calibrate(BUDGET, shares)
    known = [cohort_with_visits(each) for each in (without, within)]

    def scores(member: bool, runs: int) -> Floats:
        found, cohort = [], within if member else without
        with (
            mock.patch.object(Preset, "of", tiny),
            mock.patch.object(training, "WARM_BATCH", 8),
            mock.patch.object(DpSgd, "clipped_sum", _unclipped if unclipped else CLIPPED_SUM),
        ):
            for _ in range(runs):
                transcript = Transcript(DOMAIN.with_visits(), *known)
                with transcript.listening():
                    generator_class(model)(DOMAIN).fit(cohort, plan, source)
                found.append(transcript.score)
        return np.array(found)

    curve = _curve(plan)
    tight = model == "mixture"
    return Game(name, scores, curve, plan.epsilon, BUDGET.delta, cut=0.0, tight=tight)


def _cohort() -> Cohort:
    """Return units of one or two rows, most of them alike; the last is like none."""
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, 2, (UNITS, 2)), rng.integers(0, 3, (UNITS, 2))], axis=-1)
    mask = np.ones((UNITS, 2), bool)
    mask[: UNITS // 2, 1] = False
    codes[-1] = (2, 3)
    return Cohort(codes.astype(np.uint16), mask)


def _curve(plan: PrivacyPlan) -> TradeoffCurve:
    """Return the trade-off of a plan: one Gaussian mechanism, and the steps where there are any."""
    steps = [event for event in plan.events if isinstance(event, PoissonSgd)]
    if not steps:
        return GaussianCurve(gaussian_mu(plan.epsilon, BUDGET.delta))
    others = [event.mu() for event in plan.events if not isinstance(event, PoissonSgd)]
    (event,) = steps
    mu = float(np.hypot.reduce(others))
    return StepsCurve(event.noise_multiplier, event.sampling_rate, event.steps, mu)


CLIPPED_SUM = DpSgd.clipped_sum


def _unclipped(self: DpSgd, loss: Any, batch: Any, mask: Tensor) -> Tensor:
    return 5 * CLIPPED_SUM(self, loss, batch, mask)


def sound(source: Entropy) -> list[Game]:
    """List the games on fits as they are."""
    torch.set_num_threads(1)
    models = ("mixture", "autoregressive", "tvae")
    return [game(f"a whole fit: {model}", model, source) for model in models]


def mutants(source: Entropy) -> list[Game]:
    """List the games on fits with a broken part."""
    quiet = cast(Entropy, Blocks(source, halved=True))
    return [
        game("a whole fit, mixture: half the noise", "mixture", quiet),
        *(
            game(
                f"a whole fit, {model}: five times the clipping norm",
                model,
                source,
                unclipped=True,
            )
            for model in ("autoregressive", "tvae")
        ),
    ]
