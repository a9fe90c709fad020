"""P20: a record of either register moves a count of linked pairs by more than was accounted for.

Exhaustive: all sets of pairs of three records and three, every record and every two removed. Broken
twins: the first pairs of each record are kept, one matching is counted by cell, one register is
capped alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from dpsynth.privacy import LinkCounts, Links, link_counts
from dpsynth.privacy.answers import largest_matching

from ..support.bare_counts import Silence

SIDE = 3
PAIRS = list(product(range(SIDE), repeat=2))
GRAPHS = range(2 ** len(PAIRS))
RECORDS = [(side, place) for side in (0, 1) for place in range(SIDE)]
Count = Callable[[int, int], tuple[int, ...]]
"""The cells of a set of pairs (a bit for each) under a cap."""


def pairs_of(graph: int) -> list[tuple[int, int]]:
    return [pair for place, pair in enumerate(PAIRS) if graph >> place & 1]


def without(graph: int, *records: tuple[int, int]) -> int:
    """Remove all pairs of records."""
    for place, pair in enumerate(PAIRS):
        if any(pair[side] == record for side, record in records):
            graph &= ~(1 << place)
    return graph


def fits(graph: int, cap: int) -> bool:
    pairs = pairs_of(graph)
    return all(sum(pair[side] == place for pair in pairs) <= cap for side, place in RECORDS)


@cache
def by_hand(graph: int, cap: int) -> int:
    """The size of a largest b-matching, by leaving out one pair after the other."""
    if fits(graph, cap):
        return graph.bit_count()
    places = [place for place in range(len(PAIRS)) if graph >> place & 1]
    return max(by_hand(graph & ~(1 << place), cap) for place in places)


@cache
def honest(graph: int, cap: int) -> tuple[int, ...]:
    first, second = np.array(pairs_of(graph), dtype=np.int64).reshape(-1, 2).T
    return (largest_matching(first, second, cap),)


def by_cell(kept: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Count pairs in two cells: those of one and the same place, and all others."""
    same = [a == b for a, b in kept]
    return sum(same), len(same) - sum(same)


def first_pairs(graph: int, cap: int) -> tuple[int, ...]:
    kept: list[tuple[int, int]] = []
    for pair in pairs_of(graph):
        if all(sum(other[side] == pair[side] for other in kept) < cap for side in (0, 1)):
            kept.append(pair)
    return by_cell(kept)


@cache
def one_matching(graph: int, cap: int) -> tuple[int, ...]:
    """Of the largest matchings of all pairs, the one with the most pairs of different places."""
    size = by_hand(graph, cap)
    inside = (part for part in GRAPHS if part & graph == part and part.bit_count() == size)
    cells = [by_cell(pairs_of(part)) for part in inside if fits(part, cap)]
    return max(cells, key=lambda cell: cell[1])


def one_register(graph: int, cap: int) -> tuple[int, ...]:
    return (sum(min(cap, sum(a == one for a, _ in pairs_of(graph))) for one in range(SIDE)),)


def farthest(count: Count, cap: int, together: int, graphs: Iterable[int] = GRAPHS) -> int:
    """How far the removal of records moves one cell, at most."""
    removed = [
        one for one in combinations(RECORDS, together) if len({s for s, _ in one}) == together
    ]
    return max(
        abs(before - after)
        for graph in graphs
        for gone in removed
        for before, after in zip(count(graph, cap), count(without(graph, *gone), cap), strict=True)
    )


@pytest.mark.parametrize("cap", [1, 2])
def test_a_cell_is_a_largest_matching_and_moves_by_what_is_accounted(cap: int) -> None:
    assert all(honest(graph, cap) == (by_hand(graph, cap),) for graph in GRAPHS)
    for records in (1, 2):
        event = LinkCounts("pairs", cells=1, cap=cap, records=records, sigma=9.0)
        assert farthest(honest, cap, records) == event.moves == event.sensitivity


CASCADE = sum(1 << PAIRS.index(pair) for pair in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)])


@pytest.mark.parametrize(
    ("twin", "graphs"),
    [(first_pairs, GRAPHS), (one_matching, [CASCADE]), (one_register, GRAPHS)],
    ids=["first pairs", "one matching", "one register"],
)
def test_what_is_not_stable_is_caught(twin: Count, graphs: Iterable[int]) -> None:
    assert farthest(twin, 1, 1, graphs) > 1


def test_all_cells_of_a_person_are_accounted_for_together() -> None:
    """A record with all of its pairs in every cell: the shift that sensitivity is about."""
    event = LinkCounts("pairs", cells=4, cap=2, records=2, sigma=9.0)
    first = np.array([0, 0, 1, 2, 3, 3], dtype=np.int64)
    second = np.array([0, 1, 9, 9, 7, 8], dtype=np.int64)
    links = Links(first, second, np.ones((6, 4), bool))
    here = (first != 0) & (second != 9)  # a person with record 0 in the one and 9 in the other
    fewer = Links(first[here], second[here], links.cells[here])
    moved = link_counts(links, event, Silence()) - link_counts(fewer, event, Silence())
    assert np.linalg.norm(moved) == pytest.approx(event.sensitivity)
