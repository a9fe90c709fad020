"""Games on whole fits of histories: an observer hears every release of the plan of `cohort`.

The neighbour is that of the games on the steps of histories (`audit_histories`), with few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
from audit_counts import Blocks
from audit_histories import LAST, ROWS, patients_of, table_of, weighing
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.models import Feature
from dpsynth.models.auditing import Transcript
from dpsynth.models.histories import CohortGenerator, HistoryDomain, one_row_each
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps.events import StepSettings
from dpsynth.models.histories.steps.table import MASS, Steps
from dpsynth.privacy.accounting import gaussian_mu
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.plan import ObservedPlan, PrivacyBudget, PrivacyPlan

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FIT = PrivacyBudget(epsilon=4.0, delta=1e-5)
TINY = HistorySettings(3, 3, 1, 1.0, 1.0, StepSettings(3, 3, 1, 1.0))


def in_full(steps: list[Steps], patients: int) -> list[Ints]:
    """Let each step weigh as much as a patient may: a broken twin."""
    return [np.full(len(part.patients), MASS) for part in steps]


def fit_game(
    name: str,
    source: Entropy,
    *,
    rows: int = 2,
    quartered: bool = False,
    broken: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Game:
    """Make the game of a whole fit of `cohort`; an observer adds up the likelihood ratio.

    The attacker knows all patients and hears every release of the plan (`Transcript`). The patient
    has two rows in one test of both tables, or so many: the more there are, the more cells her
    steps fall into, and she moves the counts by less than she may.
    """
    noise = cast(Entropy, Blocks(source, halved=quartered))
    entropy = cast(Entropy, Blocks(noise, halved=quartered))
    without, within = patients_of(2, 1, own=rows)
    patient = within.take(np.array([4]))
    tables = (table_of("labs"), table_of("visits"))
    domain = HistoryDomain((Feature("age", 3, 0),), (), tables, 0, LAST, 5)
    generator = CohortGenerator(domain)
    with mock.patch.object(HistorySettings, "of", lambda *_: TINY):
        plan = PrivacyPlan.calibrate(FIT, generator.shares(FIT))
    known = [one_row_each(generator.person.codes(one)) for one in (patient, without)]

    def scores(member: bool, runs: int) -> Floats:
        found = []
        with mock.patch.object(HistorySettings, "of", lambda *_: TINY), broken():
            for _ in range(runs):
                heard = Transcript(known[0], known[1], (patient, without))
                terms = ObservedPlan(plan, heard)
                CohortGenerator(domain).fit(within if member else without, terms, entropy)
                found.append(heard.counts.linear[0] - heard.counts.gram[0, 0] / 2)
        return np.array(found)

    curve = GaussianCurve(gaussian_mu(plan.epsilon, FIT.delta))
    return Game(name, scores, curve, plan.epsilon, FIT.delta, cut=0.0, tight=False)


def sound(source: Entropy) -> list[Game]:
    """List the game on the fit as it is."""
    return [fit_game("a whole fit of histories: cohort", source)]


def mutants(source: Entropy) -> list[Game]:
    """List the games on its broken twins."""
    name = "a whole fit of histories, cohort"
    whole = partial(weighing, in_full)
    return [
        fit_game(f"{name}: a quarter of the noise", source, quartered=True),
        fit_game(f"{name}: each step in full", source, rows=ROWS, broken=whole),
    ]
