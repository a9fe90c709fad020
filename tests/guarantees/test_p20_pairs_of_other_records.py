"""P20: a pair that follows from other records moves with them, and no cap on pairs bounds how far.

The mechanism itself is sound: a person who is removed with all their pairs moves a count by 2 k at
most. But where linkage chose candidates, scores or matches by looking at other records, the table
of pairs is another one without that person. Each such way is played here with and without one
person; pairs by their own records alone are within the bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpsynth.privacy import LinkCounts
from dpsynth.privacy.answers import largest_matching

COUNT, CAP, THRESHOLD = 300, 3, 0.5
Pairs = list[tuple[int, int]]
Linked = Callable[[list[int], list[int]], Pairs]
"""Pairs that count, of the records of register A and of B that are there."""


def similarity(a: int, b: int) -> float:
    """How alike two records are; record 0 of A has common values, and is like every record of B."""
    return 0.95 if a == 0 else 0.9 if a == b else 0.0


def by_their_own_records(first: list[int], second: list[int]) -> Pairs:
    return [(a, b) for a in first for b in second if similarity(a, b) >= THRESHOLD]


def best_candidate(first: list[int], second: list[int]) -> Pairs:
    """Top-1 blocking: each record of B keeps the record of A that is most like it."""
    best = [(max(first, key=lambda a: similarity(a, b)), b) for b in second]
    return [(a, b) for a, b in best if similarity(a, b) >= THRESHOLD]


def by_term_frequency(first: list[int], second: list[int]) -> Pairs:
    """An equal value weighs less the more records of A have it; here all have it."""
    weight = COUNT / len(first)
    return [(a, b) for a in first for b in second if a == b and 0.5 * weight >= THRESHOLD]


def one_to_one(first: list[int], second: list[int]) -> Pairs:
    """Each record of A takes the first of two candidates that is free; matches are counted."""
    free, placed = set(second), []
    for a in first:
        b = next((b for b in (a, a + 1) if b in free), None)
        if b is not None:
            free.discard(b)
            placed.append((a, b))
    return [(a, b) for a, b in placed if a == b]


def moved(linked: Linked) -> int:
    """By how much the count of pairs differs without record 0 of A."""
    second, sizes = list(range(1, COUNT + 1)), []
    for first in (list(range(COUNT + 1)), list(range(1, COUNT + 1))):
        pairs = np.array(linked(first, second), dtype=np.int64).reshape(-1, 2)
        sizes.append(largest_matching(pairs[:, 0].copy(), pairs[:, 1].copy(), CAP))
    return abs(sizes[0] - sizes[1])


def test_pairs_by_their_own_records_move_within_the_bound() -> None:
    event = LinkCounts("matches", 1, CAP, 1, sigma=1.5 * 4)
    assert moved(by_their_own_records) <= event.moves == CAP


@pytest.mark.parametrize("linked", [best_candidate, by_term_frequency, one_to_one])
def test_pairs_by_other_records_move_by_hundreds(linked: Linked) -> None:
    """So linkage needs the declaration that pairs are not made so."""
    assert moved(linked) > 100
