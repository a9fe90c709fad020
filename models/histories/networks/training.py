"""Settings of the training of networks of linked tables: public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.presets import EXPECTED_UNITS, STEPS
from dpsynth.privacy import PoissonSgd, PrivacyBudget, Share, round_up
from dpsynth.privacy.events import UNDECIDED

WITH_A_STEP = 4
"""One patient in so many is taken to have two rows or more of a table: a public guess."""

SCORED = 0.2  # of the budget, for noisy gradients at one point
AT_ONCE, MOST_STEPS = 30_000, 20
"""Patients expected in one of these, and how many are taken at most: memory and time."""


def scoring(domain: HistoryDomain) -> Share:
    """Return the event of noisy gradients at one point, with its share of the budget.

    As many are taken as read a patient about once, since their mean is then as precise as one
    gradient of all patients is for the same budget.
    """
    rate = min(1.0, round_up(AT_ONCE / domain.population))
    steps = min(MOST_STEPS, math.ceil(rate**-2 - 1e-9))
    return Share(PoissonSgd(STEPS, rate, steps, UNDECIDED), SCORED)


def trained_tables(domain: HistoryDomain, *, narrow: bool) -> tuple[int, ...]:
    """Return the places of the tables whose steps are drawn by a network: a public fact.

    Where a step draws many columns, a network combines conditions better than a mixture. Tests of
    a long table are left to their mixtures: each would need a network of its own.

    Args:
        domain: of the tables.
        narrow: whether, where no table is so wide, those are taken whose rows are of one kind.
    """
    single = [place for place, table in enumerate(domain.tables) if len(table.series) == 1]
    wide = [place for place in single if domain.tables[place].is_wide]
    return tuple(wide or (single if narrow else []))


@dataclass(frozen=True)
class Training:
    """Settings of DP-SGD over patients.

    Attributes:
        share: of the budget.
        sampling_rate: of patients, in each step.
        steps: private ones.
        learning_rate: of the first step.
        anchor: weight of the gradient on rows that cost nothing beside the private one.
    """

    share: float
    sampling_rate: float
    steps: int
    learning_rate: float
    anchor: float

    @classmethod
    def of(cls, domain: HistoryDomain, budget: PrivacyBudget) -> Training:
        """Return the settings, from public facts."""
        level = 0 if budget.epsilon <= 2 else (1 if budget.epsilon <= 6 else 2)
        rate = EXPECTED_UNITS * WITH_A_STEP / domain.population
        return cls(
            share=0.3,
            sampling_rate=min(0.1, max(0.01, round_up(rate))),
            steps=(300, 600, 800)[level],
            learning_rate=0.005,
            anchor=(2.0, 1.0, 0.5)[level],
        )

    @property
    def event(self) -> Share:
        """Return the event of the private steps, with its share."""
        return Share(PoissonSgd(STEPS, self.sampling_rate, self.steps, UNDECIDED), self.share)
