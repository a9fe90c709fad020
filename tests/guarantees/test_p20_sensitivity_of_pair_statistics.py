"""P20: row epsilon sold as patient epsilon, for products of contrasts and departures of pairs.

The check: over all ways to spread 1 to 4 rows over the cells of a small table, what one unit moves,
over all numbers together and each in units of its own noise, is within what was declared. Noise is
left out, so no outcome is random. The hidden column, the number of rows, counts like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.models.marginals import cohort_with_visits
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    SeededEntropy,
    contrast_products,
    departures,
    pair_statistics,
    products_of_units,
)
from dpsynth.privacy.events import SMOOTHING

from ..support.bare_counts import Silence

CAP = 4
COLUMNS = (2, 3)
CELLS = list(product(*(range(size) for size in COLUMNS)))
SIZES = (CAP, *COLUMNS)
PAIRS = list(combinations(range(3), 2))
SCORES = [
    np.array([[-40], [-9], [10], [50]]),
    np.array([[-30], [60]]),
    np.array([[-25, 20], [3, -60], [50, 45]]),
]
WIDTHS = [scores.shape[1] for scores in SCORES]
WANTED = pair_statistics.pairs_asked(WIDTHS)
NUMBERS = 5  # products of scores of different columns: 1 x 1, 1 x 2 and 1 x 2
PRODUCTS = ChosenHistograms("products", NUMBERS, CAP, noise_multiplier=3.0, unit_mass=2000)
DEPARTURES = ChosenHistograms("departures", 3, CAP, noise_multiplier=3.0, unit_mass=840)
EXPECTS = {"units": 1.25}  # of each cell; if 0, a unit moves all departures the same way


def expected() -> list[np.ndarray]:
    return [np.full((SIZES[i], SIZES[j]), EXPECTS["units"]) for i, j in PAIRS]


@dataclass(frozen=True)
class Release:
    """Bare numbers, with the noise that each of them gets."""

    numbers: np.ndarray
    sigma: float
    event: ChosenHistograms


Mechanism = Callable[[Cohort], Release]


def of_products(cohort: Cohort) -> Release:
    silence = Silence(0)
    numbers = contrast_products(cohort_with_visits(cohort), SCORES, PRODUCTS, silence)
    [(sigma, size)] = silence.asked
    assert size == NUMBERS
    return Release(numbers, sigma, PRODUCTS)


def of_departures(cohort: Cohort) -> Release:
    silence = Silence(0)
    rows = cohort_with_visits(cohort)
    numbers = departures(rows, SIZES, PAIRS, expected(), DEPARTURES, silence)
    [(sigma, size)] = silence.asked
    assert size == 3
    return Release(numbers, sigma, DEPARTURES)


def products_by_hand(
    cohort: Cohort, part: Callable[[int], float], *, bound: Callable[[float, int], float]
) -> Release:
    """A loop over rows; ``bound`` says by what a row's products are divided, of norm and rows."""
    return all_products_by_hand(
        cohort, part, bound=bound, length=lambda added: float(np.linalg.norm(added))
    )


def all_products_by_hand(
    cohort: Cohort,
    part: Callable[[int], float],
    *,
    bound: Callable[[float, int], float],
    length: Callable[[np.ndarray], float],
) -> Release:
    rows = cohort_with_visits(cohort)
    total = np.zeros(NUMBERS)
    for codes, mask in zip(rows.codes.astype(int), rows.mask, strict=True):
        for row in codes[mask]:
            count = int(mask.sum())
            scores = [np.rint(s[c] * part(count)) for s, c in zip(SCORES, row, strict=True)]
            added = np.concatenate([np.outer(scores[i], scores[j]).ravel() for i, j in PAIRS])
            total += np.trunc(added / bound(length(added), count))
    return Release(total.astype(np.int64), PRODUCTS.sigma_for(1.0), PRODUCTS)


def not_shrunk(cohort: Cohort) -> Release:
    """Broken twin: long rows are added as they are."""
    return products_by_hand(cohort, lambda rows: rows**-0.5, bound=lambda norm, rows: 1.0)


def each_row_in_full(cohort: Cohort) -> Release:
    """Broken twin: every row may be as long as a unit."""
    limit = float(PRODUCTS.mass)
    return products_by_hand(
        cohort, lambda rows: 1.0, bound=lambda norm, rows: max(1.0, norm / limit)
    )


def by_the_root(cohort: Cohort) -> Release:
    """Broken twin: a row of r may be M / sqrt(r) long, as if rows of a unit were independent."""
    limit = float(PRODUCTS.mass)
    return products_by_hand(
        cohort, lambda rows: 1.0, bound=lambda norm, rows: max(1.0, norm * rows**0.5 / limit)
    )


def each_score_a_column(cohort: Cohort) -> Release:
    """Broken twin: a row's longest product counts, as if a column had one score."""
    limit = float(PRODUCTS.mass)
    return all_products_by_hand(
        cohort,
        lambda rows: rows**-0.5,
        bound=lambda norm, rows: max(1.0, norm * rows / limit),
        length=lambda added: float(np.sqrt((added[[0, 1, 3]] ** 2).sum())),
    )


def charged_as_one(cohort: Cohort) -> Release:
    """Broken twin: the departures of P pairs get the noise of a single answer."""
    release = of_departures(cohort)
    return Release(release.numbers, DEPARTURES.sigma_for(1.0), DEPARTURES)


def departures_of_rows(cohort: Cohort) -> Release:
    """Broken twin: each row counts the whole mass."""
    apart = Cohort(
        cohort_with_visits(cohort).codes[cohort.mask][:, None],
        np.ones((cohort.mask.sum(), 1), bool),
    )
    silence = Silence(0)
    numbers = departures(apart, SIZES, PAIRS, expected(), DEPARTURES, silence)
    return Release(numbers, silence.asked[0][0], DEPARTURES)


def background() -> Cohort:
    """Units that stay: of one row to ``CAP`` rows, all over the table."""
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, size, (12, CAP)) for size in COLUMNS], axis=-1)
    mask = np.arange(CAP) < rng.integers(1, CAP + 1, (12, 1))
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


def with_unit(cohort: Cohort, cells: tuple[tuple[int, ...], ...]) -> Cohort:
    codes = np.zeros((1, CAP, len(COLUMNS)), np.uint16)
    codes[0, : len(cells)] = cells
    mask = (np.arange(CAP) < len(cells))[None]
    return Cohort(np.concatenate([cohort.codes, codes]), np.concatenate([cohort.mask, mask]))


def worst(mechanism: Mechanism) -> float:
    """The most that a unit moves, 1 where the declared bound is reached."""
    kept = background()
    before, found = mechanism(kept), 0.0
    for rows in range(1, CAP + 1):
        for cells in combinations_with_replacement(CELLS, rows):
            after = mechanism(with_unit(kept, cells))
            moved = (after.numbers - before.numbers).astype(float)
            smooth = math.sqrt(after.sigma**2 - SMOOTHING**2)
            found = max(found, float(np.linalg.norm(moved)) / smooth / after.event.mu())
    return found


def test_no_unit_moves_the_products_by_more_than_declared() -> None:
    """Long rows come close to the bound: they are truncated, and no more."""
    assert 0.97 < worst(of_products) <= 1


@pytest.mark.parametrize("twin", [not_shrunk, each_row_in_full, by_the_root])
def test_products_beyond_the_bound_are_caught(twin: Mechanism) -> None:
    assert worst(twin) > 1.5


def test_scores_of_one_column_that_are_not_counted_are_caught() -> None:
    """All scores of a column count for how long a row is."""
    assert worst(each_score_a_column) > 1.2


def test_no_unit_moves_the_departures_by_more_than_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert worst(of_departures) <= 1
    monkeypatch.setitem(EXPECTS, "units", 0.0)
    assert 0.9999 < worst(of_departures) <= 1


@pytest.mark.parametrize(("twin", "least"), [(charged_as_one, 1.7), (departures_of_rows, 2.5)])
def test_departures_beyond_the_bound_are_caught(
    monkeypatch: pytest.MonkeyPatch, twin: Mechanism, least: float
) -> None:
    """Three pairs charged as one; four rows of a unit charged as one."""
    monkeypatch.setitem(EXPECTS, "units", 0.0)
    assert worst(twin) > least


def test_a_row_is_shrunk_by_itself_and_by_the_rows_of_its_unit_alone() -> None:
    """What a unit adds does not depend on who else is there."""
    kept = background()
    alone = [
        products_of_units(
            cohort_with_visits(Cohort(kept.codes[i : i + 1], kept.mask[i : i + 1])),
            SCORES,
            PRODUCTS,
        )[0]
        for i in range(len(kept.mask))
    ]
    assert (np.array(alone).sum(axis=0) == of_products(kept).numbers).all()
    norms = np.linalg.norm(alone, axis=1)
    assert norms.max() <= PRODUCTS.mass < 60 * 50


def test_rounding_that_leaves_a_row_beyond_the_bound_makes_it_nothing() -> None:
    """A factor that is a little too large: the check in whole numbers holds all the same."""
    rows = np.array([[3, 1, 2]] * 3, dtype=np.uint16)
    counts = np.array([1, 2, 4])
    with patch.object(np, "trunc", np.ceil):
        scores = pair_statistics._bounded_scores(rows, counts, SCORES, 3000, WANTED)
    lengths = pair_statistics._twice_squares(scores, WANTED)
    assert (lengths * counts**2 <= 2 * 3000**2).all()


@pytest.mark.parametrize("many", [3, 2**20])
def test_sums_are_exact_where_floats_would_round(many: int) -> None:
    """The sum of as many equal rows as a table may have is a multiple of one of them."""
    scores = [np.array([[0], [30011]]), np.array([[0], [-29989]]), np.array([[0], [10007]])]
    event = ChosenHistograms("products", 3, 1, noise_multiplier=1e6, unit_mass=10**6)
    one = products_of_units(cohort_of(1), scores, event)[0].astype(np.int64)
    sums = contrast_products(cohort_of(many), scores, event, Silence(0))
    assert (sums == many * one).all()


def cohort_of(rows: int) -> Cohort:
    return Cohort(np.ones((rows, 1, 3), np.uint16), np.ones((rows, 1), bool))


# Refusals -------------------------------------------------------------------------------------


def test_what_the_event_does_not_pay_for_is_refused_before_noise() -> None:
    silence: Entropy = Silence(0)
    rows = cohort_with_visits(background())
    too_few = ChosenHistograms("products", NUMBERS - 1, CAP, 3.0, unit_mass=2000)
    no_mass = ChosenHistograms("products", NUMBERS, CAP, 3.0)
    for event in (too_few, no_mass):
        with pytest.raises(InputError, match="does not pay"):
            contrast_products(rows, SCORES, event, silence)
    for event in (replace(too_few, most=2), no_mass):
        with pytest.raises(InputError, match="does not pay"):
            departures(rows, SIZES, PAIRS, expected(), event, silence)
    others: list[list[Any]] = [[score / 2 for score in SCORES], [score[:, 0] for score in SCORES]]
    for other in others:
        with pytest.raises(InputError, match="whole numbers"):
            contrast_products(rows, other, PRODUCTS, silence)
    with pytest.raises(InputError, match="too large"):
        contrast_products(rows, [score * 2**10 for score in SCORES], PRODUCTS, silence)
    with pytest.raises(InputError, match="does not fit its pair"):
        departures(rows, SIZES, PAIRS, expected()[::-1], DEPARTURES, silence)
    with pytest.raises(InputError, match="two columns"):
        departures(rows, SIZES, [(0, 0)], expected()[:1], DEPARTURES, silence)
    with pytest.raises(InputError, match="does not pay"):
        departures(rows, SIZES, PAIRS, expected()[:2], DEPARTURES, silence)
    assert isinstance(silence, Silence) and silence.asked == []


def test_noise_is_drawn_for_each_number_at_the_scale_that_is_charged() -> None:
    """Of the true mechanism: numbers differ from the bare ones by fresh noise of that scale."""
    rows = cohort_with_visits(background())
    bare = of_products(background()).numbers
    far = of_departures(background()).numbers
    entropy = SeededEntropy(5)
    seen = np.array([contrast_products(rows, SCORES, PRODUCTS, entropy) for _ in range(400)])
    gone = np.array(
        [departures(rows, SIZES, PAIRS, expected(), DEPARTURES, entropy) for _ in range(400)]
    )
    assert (seen - bare).std(axis=0) == pytest.approx(3 * 2000, rel=0.15)
    assert (gone - far).std(axis=0) == pytest.approx(3 * 840 * math.sqrt(3), rel=0.15)
    for noise in (seen - bare, gone - far):
        assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.2


def test_a_long_row_keeps_nearly_the_whole_bound() -> None:
    """Shrunk by one factor, not left out: the most that the noise pays for is used."""
    rows = np.array([[3, 1, 2]] * 4, dtype=np.uint16)
    counts = np.array([1, 2, 3, 4])
    scores = pair_statistics._bounded_scores(rows, counts, SCORES, 3000, WANTED)
    norms = np.sqrt(pair_statistics._twice_squares(scores, WANTED) / 2) * counts
    assert (norms > 0.9 * 3000).all() and (norms <= 3000).all()
