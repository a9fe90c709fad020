"""What a certificate says of each event, held to the event by hand; nothing stronger is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from dpsynth.certificate import exact_claims, floating_point_limits
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    KeyCounts,
    LaplaceCounts,
    LinkCounts,
    PoissonSgd,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
)

SUMS = RowSums("e", 1, 1, largest=5, signed=False, once=False, shared=False, sigma=50.0)
LINKS = LinkCounts("e", cells=1, cap=3, records=2, sigma=30.0)
KEYS = KeyCounts("e", 1, once=True, delta=2e-7, sigma=4.0)
CODES = CodeDiscovery("e", 1, 1, delta=3e-7, noise_multiplier=4.0)
BEST = TopChoice("e", 10, 700, sensitivity=1, monotone=True, scale=20.0)
GAUSS, LAPLACE, GUMBEL = "discrete Gaussian noise", "discrete Laplace noise", "Gumbel noise"
FURTHER = "moves the answer at most {} times as far"

SAID: list[tuple[Event, list[str]]] = [
    (JointHistograms("e", 2, 1, sigma=3.0), [GAUSS]),
    (ChosenHistograms("e", 2, 1, noise_multiplier=4.0), [GAUSS]),
    (PoissonSgd("e", 0.1, 10, 1.0), []),
    (CODES, [GAUSS, "part of delta that is set aside, 3e-07; a code that no unit has"]),
    (
        KEYS,
        [
            GAUSS,
            f"at least {KEYS.threshold:,}, a threshold that follows from the part of delta that is "
            "set aside, 2e-07",
            FURTHER.format("1.414") + ", and takes twice the part of delta",
        ],
    ),
    (SUMS, [GAUSS, FURTHER.format("1.414")]),
    (replace(SUMS, signed=True), [GAUSS, FURTHER.format("2")]),
    (LaplaceCounts("e", 1, once=False, scale=2.0), [LAPLACE, FURTHER.format("2")]),
    (StaySums("e", 5, longest=3, stays_per_unit=1, sigma=1e4), [GAUSS, FURTHER.format("2")]),
    (BEST, [f"10 of 700 values are named, by the exponential mechanism ({GUMBEL}", "2 times as"]),
    (TeacherVotes("e", 3, 2, 2, sigma=3.0), [GAUSS, FURTHER.format("2")]),
    (LINKS, [GAUSS, "one person with a record in each register, or in one of them"]),
    (replace(LINKS, records=1), [GAUSS, "epsilon is for one record of either register"]),
]


def test_every_kind_of_event_is_here() -> None:
    assert {type(event) for event, _ in SAID} == set(get_args(Event))


@pytest.mark.parametrize(("event", "words"), SAID)
def test_what_is_said_of_an_event_is_what_it_is(event: Event, words: list[str]) -> None:
    said = exact_claims((event,))
    assert len(said) == len(words) and all(line.startswith("event 'e': ") for line in said)
    assert [line for line, part in zip(said, words, strict=True) if part not in line] == []
    for noise in (GAUSS, LAPLACE, GUMBEL):
        assert any(noise in line for line in said) == any(noise in part for part in words)
    gradients = any("gradients" in line for line in floating_point_limits((event,)))
    assert gradients == isinstance(event, PoissonSgd)


def test_linkage_says_whether_a_person_has_one_record_or_two() -> None:
    """A claim about persons with two records is more than counts of one record keep."""
    (_, one), (_, two) = (exact_claims((replace(LINKS, records=n),)) for n in (1, 2))
    assert "is an assumption" in one and "at most twice as far" in one
    assert "assumption" not in two and "all pairs of these records" in two
    assert all("at most 3 pairs of each record count" in line for line in (one, two))


def test_each_figure_is_the_events_own() -> None:
    """Two events beside each other: neither borrows the other's threshold, delta or number."""
    more: list[Any] = [
        (CODES, replace(CODES, name="f", delta=1e-9, noise_multiplier=9.0)),
        (KEYS, replace(KEYS, name="f", delta=1e-9, sigma=9.0)),
        (BEST, replace(BEST, name="f", chosen=3, candidates=50)),
        (LINKS, replace(LINKS, name="f", cap=7, records=1)),
        (SUMS, replace(SUMS, name="f", signed=True)),
    ]
    for pair in more:
        alone = sorted(line for event in pair for line in exact_claims((event,)))
        assert sorted(exact_claims(pair)) == alone
