"""P20: row epsilon sold as patient epsilon, for sums over rows and for choices by scores.

The check of sums: over all ways in which a unit's rows may add to cells, what one unit moves is
within the event's bound, and one way reaches it. Noise is left out, so no outcome is random. The
check of choices: over small worlds, the law of the choice with one unit more is nowhere more than
exp(epsilon) times as likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpsynth.privacy import (
    Contributions,
    LaplaceCounts,
    RowSums,
    TopChoice,
    laplace_counts,
    row_sums,
)
from dpsynth.privacy.answers import NOWHERE

from ..support.bare_counts import Silence

SIZES = [2, 2]
EVENTS = {
    "counts": RowSums("counts", 2, 3, largest=1, signed=False, once=False, shared=False, sigma=9.0),
    "sums": RowSums("sums", 2, 3, largest=5, signed=True, once=False, shared=False, sigma=99.0),
    "shares": RowSums("shares", 2, 3, 6, signed=True, once=False, shared=True, sigma=99.0),
    "patients": RowSums(
        "patients", 2, 3, largest=1, signed=False, once=True, shared=False, sigma=9.0
    ),
}
Bound = Callable[[RowSums], float]
TWINS: dict[str, tuple[str, Bound]] = {
    "a row for a patient": ("counts", lambda event: event.sensitivity / event.rows_per_unit),
    "a part for all": ("sums", lambda event: event.sensitivity / event.parts**0.5),
    "a part for all that is shared": ("shares", lambda event: float(event.largest)),
    "rows as if independent": ("sums", lambda event: event.sensitivity / event.rows_per_unit**0.5),
    "cells of one part": ("patients", lambda event: event.rows_per_unit**0.5),
    "one cell for a patient": ("patients", lambda event: event.parts**0.5),
}


def units(event: RowSums) -> Iterator[Contributions]:
    """Every unit: 1 to k rows, each in any cell of each part, with any extreme value."""
    cells = [NOWHERE, 0, 1]
    for rows in range(1, event.rows_per_unit + 1):
        most = event.largest // rows if event.shared else event.largest
        values = (-most, most) if event.signed else (most,)
        row_kinds = list(product(product(cells, repeat=2), product(values, repeat=2)))
        for chosen in combinations_with_replacement(row_kinds, rows):
            places = np.array([cell for cell, _ in chosen], np.int64)
            numbers = np.array([value for _, value in chosen], np.int64)
            plain = event.once or event.largest == 1
            yield Contributions(np.zeros(rows, np.int64), places, None if plain else numbers)


def farthest(event: RowSums) -> float:
    """How far one unit moves all parts, at most: L2."""
    moves = (np.concatenate(row_sums(unit, SIZES, event, Silence(0))) for unit in units(event))
    return max(float(np.linalg.norm(move)) for move in moves)


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    return {name: farthest(event) for name, event in EVENTS.items()}


@pytest.mark.parametrize("name", EVENTS)
def test_no_unit_moves_sums_further_than_declared(name: str, found: dict[str, float]) -> None:
    bound = EVENTS[name].sensitivity
    assert found[name] <= bound * (1 + 1e-12)
    if not EVENTS[name].once:  # three rows cannot fill six cells of two parts of two cells each
        assert found[name] == pytest.approx(bound)


@pytest.mark.parametrize("twin", TWINS)
def test_a_smaller_bound_is_caught(twin: str, found: dict[str, float]) -> None:
    name, bound = TWINS[twin]
    if twin == "cells of one part":
        assert bound(EVENTS[name]) < EVENTS[name].sensitivity
    assert found[name] > bound(EVENTS[name]) * (1 + 1e-9)


@pytest.mark.parametrize("name", EVENTS)
def test_no_unit_that_takes_another_place_moves_sums_further_than_stated(name: str) -> None:
    """Substitution: all pairs of units of two rows; a smaller factor is caught."""
    event = replace(EVENTS[name], rows_per_unit=2)
    moves = np.array([np.concatenate(row_sums(u, SIZES, event, Silence(0))) for u in units(event)])
    squares = (moves**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * moves @ moves.T
    most = float(np.sqrt(apart.max()))
    assert most <= event.replacement * event.sensitivity * (1 + 1e-12)
    assert most <= event.substituted().sensitivity * (1 + 1e-12)
    assert most > 1.2 * event.sensitivity or event.once  # epsilon of adding a unit does not hold
    assert most == pytest.approx(event.replacement * event.sensitivity) or event.once


@pytest.mark.parametrize("once", [True, False])
def test_no_unit_moves_counts_with_laplace_noise_further_than_declared(once: bool) -> None:
    """In L1; and where the cheaper account is taken, each cell by 1 at most."""
    event, moves = LaplaceCounts("counts", 3, once, scale=4.0), []
    for cells in product([NOWHERE, 0, 1, 2], repeat=3):
        unit = Contributions(np.zeros(3, np.int64), np.array(cells, np.int64)[:, None])
        moves.append(laplace_counts(unit, 3, event, Silence(0))[0])
    found = np.array(moves)
    assert found.sum(axis=1).max() == 3 == event.loss.parameter * event.loss.times * event.scale
    assert event.unit_steps == (found.max() == 1)
    assert found.sum(axis=1).max() > 1  # the broken twin: a row for a patient


def law(scores: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((scores - scores.max()) / scale)
    return np.asarray(weights / weights.sum())


def worst_loss(changes: list[tuple[int, ...]], scale: float) -> float:
    """Largest log ratio of the choice's law, over small scores, changes and both directions."""
    losses = []
    for scores in product(range(0, 60, 20), repeat=3):
        for change in changes:
            before, after = law(np.array(scores), scale), law(np.add(scores, change), scale)
            losses.append(np.abs(np.log(after / before)).max())
    return float(max(losses))


MONOTONE = list(product((0, 1), repeat=3))
ANY = list(product((-1, 0, 1), repeat=3))
CHOICE = TopChoice("best", 1, 3, sensitivity=1, monotone=True, scale=2.0)


def test_a_choice_is_as_private_as_accounted() -> None:
    assert worst_loss(MONOTONE, CHOICE.scale) <= CHOICE.epsilon_each
    assert worst_loss(MONOTONE, CHOICE.scale) > 0.99 * CHOICE.epsilon_each
    general = replace(CHOICE, monotone=False)
    assert worst_loss(ANY, general.scale) <= general.epsilon_each
    assert worst_loss(ANY, general.scale) > 0.99 * general.epsilon_each


def test_a_choice_where_a_unit_takes_another_place_is_as_private_as_stated() -> None:
    other = CHOICE.substituted()
    assert worst_loss(ANY, CHOICE.scale) <= other.epsilon_each
    assert other.epsilon_each == CHOICE.replacement * CHOICE.epsilon_each
    general = replace(CHOICE, monotone=False)
    twice = list(product((-2, 0, 2), repeat=3))
    assert worst_loss(twice, general.scale) <= general.substituted().epsilon_each
    assert worst_loss(twice, general.scale) > 1.9 * general.epsilon_each


def test_scores_that_fall_charged_as_monotone_are_caught() -> None:
    """The mistake of AIM's selection: a unit raises one score and lowers another."""
    assert worst_loss(ANY, CHOICE.scale) > 1.5 * CHOICE.epsilon_each
