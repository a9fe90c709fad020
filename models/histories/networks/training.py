"""Settings of the training of networks of linked tables: public facts alone."""

from __future__ import annotations

import math

from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.presets import STEPS
from dpsynth.privacy import PoissonSgd, Share, round_up
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


def trained_tables(domain: HistoryDomain) -> tuple[int, ...]:
    """Return the places of the tables whose steps are drawn by a network: a public fact.

    Where a step draws many columns, a network combines conditions better than a mixture. Tests of
    a long table are left to their mixtures: each would need a network of its own.
    """
    return tuple(
        place
        for place, table in enumerate(domain.tables)
        if len(table.series) == 1 and table.is_wide
    )
