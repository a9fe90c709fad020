"""Games on numbers about all pairs: products of contrasts, departures, and a fit that runs both.

As for counts, the attacker knows everything but whether one more unit is there, whose rows are all
alike: a long row, and cells that nothing is expected in, so that it moves each number as far as it
can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from unittest import mock

import numpy as np
from audit_counts import CLAIM, COLUMNS, Counts, Office, game, rows_as_units
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.encoding.cohort import Cohort
from dpsynth.models.contrast_settings import PARTS_OF_A_UNIT, PARTS_OF_PRODUCTS, products_of
from dpsynth.models.marginals.measurement import cohort_with_visits
from dpsynth.privacy import pair_statistics
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED, ChosenHistograms
from dpsynth.privacy.pair_statistics import departures
from dpsynth.privacy.plan import PrivacyPlan, Share

LONG = 800  # of a score; a row of five columns is then more than three times as long as it may be
SCORES = 3  # of each column


def _paid(pairs: int, cap: int, mass: int) -> ChosenHistograms:
    event = ChosenHistograms("pairs", pairs, cap, UNDECIDED, unit_mass=mass)
    paid = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("pairs")
    assert isinstance(paid, ChosenHistograms)
    return paid


def products_office(columns: tuple[int, ...], cap: int) -> Office:
    """Release products of contrasts; the code that the unit has is far out in every column."""
    sizes = (cap, *columns) if cap > 1 else columns
    first = [np.array([-LONG // 3, LONG, *[LONG // 2] * (size - 2)])[:size] for size in sizes]
    if cap > 1:
        first[0] = np.linspace(-LONG // 2, LONG, cap).astype(np.int64)  # most rows: most of all
    scores = [np.stack([one, -one[::-1], one // 2], axis=1) for one in first]
    event = _paid(products_of([SCORES] * len(sizes)), cap, PARTS_OF_PRODUCTS)

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        return [
            pair_statistics.contrast_products(cohort_with_visits(cohort), scores, event, entropy)
        ]

    return Office(release, [event.sigma_for(1.0)], columns, cap, GaussianCurve(event.mu()))


def departures_office(columns: tuple[int, ...], cap: int) -> Office:
    """Release departures of all pairs from nothing: a unit adds to each of them."""
    sizes = (cap, *columns) if cap > 1 else columns
    pairs = list(combinations(range(len(sizes)), 2))
    nothing = [np.zeros((sizes[i], sizes[j])) for i, j in pairs]
    event = _paid(len(pairs), cap, PARTS_OF_A_UNIT)

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        return [departures(cohort_with_visits(cohort), sizes, pairs, nothing, event, entropy)]

    sigma = event.sigma_for(len(pairs) ** -0.5)
    return Office(release, [sigma], columns, cap, GaussianCurve(event.mu()))


def not_shrunk(office: Office) -> Office:
    """Broken twin: long rows are added as they are."""

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        with mock.patch.object(
            pair_statistics, "_twice_squares", lambda scores, _: np.zeros(len(scores))
        ):
            return office.release(cohort, entropy)

    return replace(office, release=release)


def charged_as_one(office: Office) -> Office:
    """Broken twin: all departures get the noise of a single one."""

    def release(cohort: Cohort, entropy: Entropy) -> Counts:
        with mock.patch.object(ChosenHistograms, "sigma_for", _alone):
            with mock.patch.object(ChosenHistograms, "covers", lambda *_: True):
                return office.release(cohort, entropy)

    return replace(office, release=release)


_sigma_for = ChosenHistograms.sigma_for


def _alone(event: ChosenHistograms, part: float) -> float:
    return _sigma_for(event, 1.0)


OFFICES: dict[str, Callable[[], Office]] = {
    "products of contrasts": lambda: products_office(COLUMNS, 1),
    "products of contrasts, five rows": lambda: products_office(COLUMNS[:3], 5),
    "departures of pairs": lambda: departures_office(COLUMNS, 1),
    "departures of pairs, five rows": lambda: departures_office(COLUMNS[:3], 5),
}


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanisms as they are."""
    return [game(name, make(), source) for name, make in OFFICES.items()]


def mutants(source: Entropy) -> list[Game]:
    """List the games on their broken twins."""
    games = []
    for name, make in OFFICES.items():
        games.append(game(f"{name}: half the noise", make(), source, halved=True))
        if "five" in name:
            games.append(game(f"{name}: each row in full", rows_as_units(make()), source))
        elif "products" in name:
            games.append(game(f"{name}: long rows not shrunk", not_shrunk(make()), source))
        else:
            games.append(game(f"{name}: charged as one", charged_as_one(make()), source))
    return games
