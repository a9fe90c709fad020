"""Games on choices: pairs that are measured again because they stood out, and a known mistake.

**Our own**: a wide table is measured in three events: columns, all pairs, and again those pairs
that stood out of the noise. The attacker sees all noisy tables, and with them every choice.

**The exponential mechanism**, which no generator here uses, shows that the games can see a choice
that is paid for too cheaply. It picks candidate c with probability proportional to
exp(eps u_c / (2 D)), where one unit moves each score u_c by at most D, and is eps-private. Where
all scores move in the same direction the 2 may be dropped. A published generator drops it for
scores that move both ways: a round then costs twice the epsilon, and four times the Renyi
divergence, that it is accounted at (bounded range, Cesar and Rogers, arXiv 2004.07223: eps^2 / 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast
from unittest import mock

import numpy as np
import numpy.typing as npt
from audit_counts import CLAIM, Blocks
from audit_transcript import Transcript
from distinguishing_game import Game
from tradeoff_curves import ConcentratedCurve, GaussianCurve, PureCurve

from dpsynth.encoding.cohort import Cohort
from dpsynth.models import presets
from dpsynth.models.base import Domain, Feature
from dpsynth.models.marginals.measurement import measure
from dpsynth.models.presets import AGAIN, ONE_WAY, PAIRS, shares_of
from dpsynth.privacy.accounting import epsilon, gaussian_mu
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.plan import PrivacyPlan

Floats = npt.NDArray[np.float64]

# The exponential mechanism -------------------------------------------------------------------

CANDIDATES = 40


@dataclass(frozen=True)
class Selection:
    """Rounds of the exponential mechanism on scores of sensitivity 1.

    Attributes:
        name: of the game.
        factor: of eps u: 1/2, or 1 where scores are taken to move in one direction.
        rounds: independent choices.
        epsilon: of one of them, as accounted.
    """

    name: str
    factor: float
    rounds: int
    epsilon: float

    def laws(self) -> tuple[Floats, Floats]:
        """Return the probabilities without and with the unit: one score rises, the others fall."""
        first = np.arange(CANDIDATES) == 0
        share = 0.1 if self.rounds == 1 else 0.4  # of the first candidate, without the unit
        odds = share / (1 - share) * (CANDIDATES - 1)
        without = np.where(first, math.log(odds) / (self.factor * self.epsilon), 0.0)
        within = without + np.where(first, 1.0, -1.0)
        return self._law(without), self._law(within)

    def _law(self, scores: Floats) -> Floats:
        weights = np.exp(self.factor * self.epsilon * scores)
        return np.asarray(weights / weights.sum())

    def game(self, source: Entropy) -> Game:
        """Make the game: one round at its pure epsilon, several at their Renyi divergence."""
        laws = self.laws()
        ratio = np.log(laws[1] / laws[0])
        rng = source.generator()

        def scores(member: bool, runs: int) -> Floats:
            chosen = rng.choice(CANDIDATES, size=(runs, self.rounds), p=laws[member])
            return np.asarray(ratio[chosen].sum(axis=1))

        if self.rounds == 1:
            curve = PureCurve(self.epsilon)
            return Game(self.name, scores, curve, self.epsilon, 0.0, tight=False)
        concentrated = ConcentratedCurve(self.rounds * self.epsilon**2 / 8)
        claimed = concentrated.epsilon(1.0, CLAIM.delta)
        return Game(self.name, scores, concentrated, claimed, CLAIM.delta, cut=0.0, tight=False)


# Our own choice of pairs ---------------------------------------------------------------------

UNITS = 1500
COLUMNS = (Feature("a", 3, 0), Feature("b", 2, 0), Feature("c", 4, 0), Feature("d", 2, 0))


def again(name: str, source: Entropy, *, unpaid: bool = False) -> Game:
    """Measure columns, pairs, and again the pairs that stood out.

    Args:
        name: of the game.
        source: of noise.
        unpaid: the broken twin: the second look at the pairs is not accounted for.
    """
    domain = Domain(COLUMNS, population=2000, max_rows=1)
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, each.size, (UNITS, 1)) for each in COLUMNS], axis=-1)
    codes[:, 0, 1] = codes[:, 0, 0] > 0  # a relation that stands out now and then
    codes[-1] = 1
    within = Cohort(codes.astype(np.uint16), np.ones((UNITS, 1), bool))
    without = Cohort(within.codes[:-1], within.mask[:-1])
    with mock.patch.object(presets, "FEW_PAIRS", 1):
        plan = PrivacyPlan.calibrate(CLAIM, shares_of("mixture", domain, CLAIM))
    assert [event.name for event in plan.events] == [ONE_WAY, PAIRS, AGAIN]
    entropy = Blocks(source)

    def scores(member: bool, runs: int) -> Floats:
        found = []
        with mock.patch.object(presets, "FEW_PAIRS", 1):
            for _ in range(runs):
                transcript = Transcript(domain, without, within)
                with transcript.listening():
                    cohort = within if member else without
                    measure(cohort, domain, plan, cast(Entropy, entropy), most_bins=8)
                found.append(transcript.score)
        return np.array(found)

    events = plan.events[:-1] if unpaid else plan.events
    claimed = epsilon(events, CLAIM.delta)
    curve = GaussianCurve(gaussian_mu(claimed, CLAIM.delta))
    return Game(name, scores, curve, claimed, CLAIM.delta, cut=0.0)


def sound(source: Entropy) -> list[Game]:
    """List the games on choices as they should be."""
    return [
        again("pairs, and again those that stood out", source),
        Selection("exponential mechanism, one choice", 0.5, 1, 1.0).game(source),
        Selection("exponential mechanism, 60 choices", 0.5, 60, 0.5).game(source),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on choices that cost more than they are accounted at."""
    return [
        again("pairs again: the second look not paid", source, unpaid=True),
        Selection("exponential mechanism as if scores moved one way", 1.0, 1, 1.0).game(source),
        Selection("60 choices as if scores moved one way", 1.0, 60, 0.5).game(source),
    ]
